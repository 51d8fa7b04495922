//! What stands in the device's place in a build without the RTL: a type of which there is no value.

use std::convert::Infallible;
use std::path::Path;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, Write};

use crate::{RtlConfig, RtlError};

/// The Verilated NIC, which this build does not have: there is no value of this type.
#[derive(Debug)]
pub struct RtlNic {
    none: Infallible,
}

impl RtlNic {
    /// Says how to get one.
    ///
    /// # Errors
    /// Always [`RtlError::NotBuilt`].
    pub fn new(_config: &RtlConfig) -> Result<Self, RtlError> {
        Err(RtlError::NotBuilt)
    }

    /// Clock cycles since it was made.
    pub fn cycles(&self) -> u64 {
        match self.none {}
    }

    /// Makes each question take one cycle, for a caller that counts cycles.
    pub fn set_stepped(&mut self, _is_stepped: bool) {
        match self.none {}
    }

    /// Writes a wave dump from here on.
    ///
    /// # Errors
    /// There is nothing to dump.
    pub fn trace(&mut self, _path: &Path) -> Result<(), RtlError> {
        match self.none {}
    }

    /// Whether an assertion of the RTL has failed.
    pub fn has_failed(&self) -> bool {
        match self.none {}
    }
}

impl Device for RtlNic {
    fn write_arrived(&mut self, _write: Write<'_>) -> Accept {
        match self.none {}
    }

    fn read_arrived(&mut self, _offset_bytes: u64, _tag: ReadTag) {
        match self.none {}
    }

    fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {
        match self.none {}
    }

    fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
        match self.none {}
    }

    fn time_passed(&mut self, _now: SimTime) {
        match self.none {}
    }

    fn wire_ready(&mut self, _ready: bool) {
        match self.none {}
    }

    fn next(&mut self) -> Option<Want<'_>> {
        match self.none {}
    }

    fn wake_at(&self) -> Option<SimTime> {
        match self.none {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_the_rtl_says_how_to_get_it() {
        let error = RtlNic::new(&RtlConfig::default()).err().map(|error| error.to_string());
        assert!(error.is_some_and(|text| text.contains("make rtl-tools") && text.contains("--features rtl")));
    }
}
