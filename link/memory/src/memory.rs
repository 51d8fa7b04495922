//! A region of device-visible memory, as the host uses it.

use beeline_contract_link::DmaMemory;
use beeline_spec::WORD_BYTES;

use crate::MemoryLink;

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
