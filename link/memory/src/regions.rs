//! Device-visible memory of the bus: regions with holes between, so that an access past a region's end is found.

use beeline_contract_device::HostMemory;
use beeline_spec::WORD_BYTES;

/// Regions begin at multiples of this, and never at 0.
const REGION_ALIGN: u64 = 1 << 20;

/// All regions of a bus.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    regions: Vec<(u64, Vec<u8>)>,
}

impl Regions {
    /// A new zeroed region: its index and address.
    pub(crate) fn add(&mut self, bytes: usize) -> (usize, u64) {
        let end = self.regions.last().map_or(0, |(base, memory)| base + memory.len() as u64);
        let address = (end + 1).next_multiple_of(REGION_ALIGN);
        self.regions.push((address, vec![0; bytes]));
        (self.regions.len() - 1, address)
    }

    /// The bytes at a bus address; `None` unless they lie in one region.
    pub(crate) fn find(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let after = self.regions.partition_point(|(base, _)| *base <= address);
        let (base, memory) = self.regions.get_mut(after.checked_sub(1)?)?;
        let at = usize::try_from(address - *base).ok()?;
        memory.get_mut(at..at.checked_add(bytes)?)
    }

    pub(crate) fn of(&mut self, region: usize) -> &mut [u8] {
        &mut self.regions[region].1
    }
}

impl HostMemory for Regions {
    fn word(&mut self, address: u64) -> Option<u64> {
        let bytes = self.find(address, WORD_BYTES)?;
        Some(u64::from_le_bytes((&*bytes).try_into().expect("a word has 8 bytes")))
    }

    fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
        let found = self.find(address, data.len());
        found.map(|bytes| data.copy_from_slice(bytes)).is_some()
    }
}
