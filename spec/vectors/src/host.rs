//! The host's memory in a case: a few areas at fixed bus addresses, which the device reads and writes.
//!
//! A case names areas, so that its files say what lies where and not at which address; only an entry that names a
//! frame by its address has to know where `buffers` begins.

use std::collections::VecDeque;

use beeline_contract_device::{self as contract, DmaError, DmaTag};

/// Bytes of the memory; addresses from here on are nobody's.
const MEMORY_BYTES: usize = 1 << 20;

/// A part of the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// The word that takes the transmit head.
    Head,
    /// The transmit ring or pipe.
    Ring,
    /// The receive ring or pipe.
    Received,
    /// The ring of notifications.
    Notifications,
    /// Frames that entries name by address, from bus address 0x80000 on.
    Buffers,
}

impl Area {
    /// Every area, with the name it has in a case.
    pub const ALL: [(&str, Area); 5] = [
        ("head", Area::Head),
        ("ring", Area::Ring),
        ("received", Area::Received),
        ("notifications", Area::Notifications),
        ("buffers", Area::Buffers),
    ];

    /// Bus address of its first byte.
    pub const fn address(self) -> u64 {
        match self {
            Area::Head => 0x2000,
            Area::Notifications => 0x3000,
            Area::Ring => 0x1_0000,
            Area::Received => 0x4_0000,
            Area::Buffers => 0x8_0000,
        }
    }

    /// Returns the size of the area.
    pub const fn bytes(self) -> u64 {
        match self {
            Area::Head | Area::Notifications => 0x1000,
            Area::Ring => 0x3_0000,
            Area::Received => 0x4_0000,
            Area::Buffers => 0x8_0000,
        }
    }
}

/// The memory, and the reads of it that are not answered yet.
#[derive(Debug)]
pub(crate) struct HostMemory {
    memory: Vec<u8>,
    /// Whether there is any; without, every access is a fault.
    pub(crate) is_there: bool,
    asked: VecDeque<(DmaTag, u64, u32)>,
    /// Whether reads are answered now.
    pub(crate) is_ready: bool,
}

impl HostMemory {
    /// Zeros, and not there yet.
    pub(crate) fn new() -> Self {
        HostMemory { memory: vec![0; MEMORY_BYTES], is_there: false, asked: VecDeque::new(), is_ready: true }
    }

    fn range(&self, address: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(bytes)?;
        (self.is_there && end <= self.memory.len()).then_some(start..end)
    }

    /// Stores bytes; `false` when they would lie outside.
    pub(crate) fn store(&mut self, address: u64, bytes: &[u8]) -> bool {
        let range = self.range(address, bytes.len());
        if let Some(range) = range.clone() {
            self.memory[range].copy_from_slice(bytes);
        }
        range.is_some()
    }

    pub(crate) fn load(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        Some(&self.memory[self.range(address, bytes)?])
    }

    /// The device asked for a read.
    pub(crate) fn ask(&mut self, tag: DmaTag, address: u64, bytes: u32) {
        self.asked.push_back((tag, address, bytes));
    }

    /// The next answer, in the order of asking, while reads are answered.
    pub(crate) fn answer(&mut self) -> Option<(DmaTag, Result<Vec<u8>, DmaError>)> {
        if !self.is_ready {
            return None;
        }
        let (tag, address, bytes) = self.asked.pop_front()?;
        Some((tag, self.load(address, bytes as usize).map(<[u8]>::to_vec).ok_or(DmaError::BadAddress)))
    }
}

impl contract::HostMemory for HostMemory {
    fn word(&mut self, address: u64) -> Option<u64> {
        let bytes = self.load(address, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().expect("a word has 8 bytes")))
    }

    fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
        self.load(address, data.len()).map(|bytes| data.copy_from_slice(bytes)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_do_not_meet() {
        let mut areas = Area::ALL.map(|(_, area)| (area.address(), area.address() + area.bytes()));
        areas.sort_unstable();
        assert!(areas.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{areas:x?}");
        assert!(areas.iter().all(|(_, end)| *end <= MEMORY_BYTES as u64));
    }

    #[test]
    fn reads_are_answered_in_order_and_not_outside() {
        let mut host = HostMemory::new();
        assert!(!host.store(0, &[1]), "it is not there yet");
        host.is_there = true;
        assert!(host.store(MEMORY_BYTES as u64 - 2, &[1, 2]));
        assert!(!host.store(MEMORY_BYTES as u64 - 1, &[1, 2]) && !host.store(u64::MAX, &[1]));
        host.is_ready = false;
        host.ask(DmaTag(1), MEMORY_BYTES as u64 - 2, 2);
        host.ask(DmaTag(2), MEMORY_BYTES as u64 - 1, 2);
        assert_eq!(host.answer(), None);
        host.is_ready = true;
        assert_eq!(host.answer(), Some((DmaTag(1), Ok(vec![1, 2]))));
        assert_eq!(host.answer(), Some((DmaTag(2), Err(DmaError::BadAddress))));
        assert_eq!(host.answer(), None);
    }
}
