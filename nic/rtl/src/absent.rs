//! What stands in the devices' place in a build without the RTL: types of which there is no value.

use std::convert::Infallible;
use std::path::Path;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, Write};

use crate::{ClockPeriod, RtlConfig, RtlError};

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

    /// One cycle a question, for who counts cycles.
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

/// The Verilated NIC on a clock, which this build does not have: there is no value of this type.
#[derive(Debug)]
pub struct ClockedNic {
    none: Infallible,
}

impl ClockedNic {
    /// Says how to get one.
    ///
    /// # Errors
    /// Always [`RtlError::NotBuilt`].
    pub fn new(_config: &RtlConfig, _clock: ClockPeriod) -> Result<Self, RtlError> {
        Err(RtlError::NotBuilt)
    }

    /// From here on it sleeps after so many silent cycles.
    pub fn sleep_after_cycles(&mut self, _cycles: u64) {
        match self.none {}
    }

    /// Clock cycles that were made.
    pub fn cycles(&self) -> u64 {
        match self.none {}
    }

    /// Whether an assertion of the RTL has failed.
    pub fn has_failed(&self) -> bool {
        match self.none {}
    }
}

/// The device that there is not.
macro_rules! no_device {
    ($name:ident) => {
        impl Device for $name {
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
    };
}

no_device!(RtlNic);
no_device!(ClockedNic);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_the_rtl_says_how_to_get_it() {
        let error = RtlNic::new(&RtlConfig::default()).err().map(|error| error.to_string());
        assert!(ClockedNic::new(&RtlConfig::default(), ClockPeriod::USPLUS).is_err());
        assert!(error.is_some_and(|text| text.contains("make rtl-tools") && text.contains("--features rtl")));
    }
}
