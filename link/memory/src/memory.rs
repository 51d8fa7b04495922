//! Device-visible memory of the link: regions with holes between, so that an access past a region's end is found.

use beeline_contract_device::HostMemory;
use beeline_contract_link::DmaMemory;
use beeline_spec::WORD_BYTES;

use crate::MemoryLink;

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

    fn of(&mut self, region: usize) -> &mut [u8] {
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

/// A region of device-visible memory.
pub struct MemoryRegion<D> {
    link: MemoryLink<D>,
    region: usize,
    address: u64,
    bytes: usize,
}

impl<D> MemoryRegion<D> {
    pub(crate) fn new(link: MemoryLink<D>, region: usize, address: u64, bytes: usize) -> Self {
        MemoryRegion { link, region, address, bytes }
    }

    fn with<T>(&self, offset: usize, bytes: usize, f: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut bus = self.link.bus.borrow_mut();
        f(&mut bus.regions.of(self.region)[offset..offset + bytes])
    }
}

impl<D> DmaMemory for MemoryRegion<D> {
    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn load(&mut self, offset_bytes: usize) -> u64 {
        assert!(offset_bytes.is_multiple_of(WORD_BYTES), "a load of a word at byte {offset_bytes}");
        self.with(offset_bytes, WORD_BYTES, |bytes| {
            u64::from_le_bytes(bytes.try_into().expect("a word has 8 bytes"))
        })
    }

    fn load_acquire(&mut self, offset_bytes: usize) -> u64 {
        self.load(offset_bytes)
    }

    fn store(&mut self, offset_bytes: usize, value: u64) {
        assert!(offset_bytes.is_multiple_of(WORD_BYTES), "a store of a word at byte {offset_bytes}");
        self.with(offset_bytes, WORD_BYTES, |bytes| bytes.copy_from_slice(&value.to_le_bytes()));
    }

    fn store_release(&mut self, offset_bytes: usize, value: u64) {
        self.store(offset_bytes, value);
    }

    fn copy_in(&mut self, offset_bytes: usize, bytes: &[u8]) {
        self.with(offset_bytes, bytes.len(), |memory| memory.copy_from_slice(bytes));
    }

    fn copy_out(&mut self, offset_bytes: usize, bytes: &mut [u8]) {
        let count = bytes.len();
        self.with(offset_bytes, count, |memory| bytes.copy_from_slice(memory));
    }
}
