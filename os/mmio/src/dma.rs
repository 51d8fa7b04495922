//! Host memory that a device reads and writes: rings, buffers, credit words.
//!
//! The host's half of the contract in `contract/link`; the device's half goes through [`crate::Region`] in the NIC's
//! process, or through the IOMMU.

use beeline_contract_link::DmaMemory;

use crate::arch::{prefetch, prefetch_to_write, words};
use crate::span::{Span, reaches_outside};
use crate::{copy, fence};

/// A range of a region that a device knows by bus address.
#[derive(Debug)]
pub struct DmaRegion {
    span: Span,
    address: u64,
}

impl DmaRegion {
    pub(crate) fn new(span: Span, address: u64) -> Self {
        DmaRegion { span, address }
    }

    /// The address of `bytes` bytes at an offset; panics when they are not inside. One compare, well predicted: an
    /// offset computed wrong would otherwise be an access outside the mapping.
    #[inline(always)]
    #[track_caller]
    fn at(&self, offset_bytes: usize, bytes: usize) -> *mut u8 {
        let whole = self.span.bytes();
        if offset_bytes > whole || bytes > whole - offset_bytes {
            reaches_outside(bytes, offset_bytes, whole);
        }
        self.span.start().wrapping_add(offset_bytes)
    }

    #[inline(always)]
    #[track_caller]
    fn word_at(&self, offset_bytes: usize) -> *mut u8 {
        assert!(offset_bytes.is_multiple_of(8), "offset {offset_bytes} of a word is not a multiple of 8");
        self.at(offset_bytes, 8)
    }
}

impl DmaMemory for DmaRegion {
    #[inline(always)]
    fn address(&self) -> u64 {
        self.address
    }

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.span.bytes()
    }

    #[inline(always)]
    fn load(&mut self, offset_bytes: usize) -> u64 {
        // SAFETY: `word_at` checked bounds and alignment; spans for DMA start on lines.
        unsafe { words::load_word(self.word_at(offset_bytes)) }
    }

    #[inline(always)]
    fn load_acquire(&mut self, offset_bytes: usize) -> u64 {
        let word = self.load(offset_bytes);
        // The fence makes the relaxed load above an acquire: pairs with the device's ordered writes.
        fence::order_dma_loads();
        word
    }

    #[inline(always)]
    fn store(&mut self, offset_bytes: usize, value: u64) {
        // SAFETY: as for `load`; mappings are writable.
        unsafe { words::store_word(self.word_at(offset_bytes), value) }
    }

    #[inline(always)]
    fn store_release(&mut self, offset_bytes: usize, value: u64) {
        // The fence makes the relaxed store below a release: pairs with the device's read of this word.
        fence::order_dma_stores();
        self.store(offset_bytes, value);
    }

    #[inline]
    fn copy_in(&mut self, offset_bytes: usize, bytes: &[u8]) {
        // SAFETY: `at` checked that these bytes are mapped.
        unsafe { copy::copy_in(self.at(offset_bytes, bytes.len()), bytes) }
    }

    #[inline]
    fn copy_out(&mut self, offset_bytes: usize, bytes: &mut [u8]) {
        // SAFETY: `at` checked that these bytes are mapped.
        unsafe { copy::copy_out(self.at(offset_bytes, bytes.len()), bytes) }
    }

    /// An offset outside the memory is taken as a hint about nothing.
    #[inline(always)]
    fn prefetch(&mut self, offset_bytes: usize) {
        prefetch(self.span.start().wrapping_add(offset_bytes));
    }

    /// An offset outside the memory is taken as a hint about nothing.
    #[inline(always)]
    fn prefetch_to_write(&mut self, offset_bytes: usize) {
        prefetch_to_write(self.span.start().wrapping_add(offset_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;

    #[test]
    fn dma_memory_is_its_part_of_the_region() {
        let region = Region::private(4096);
        let mut dma = region.dma_memory(128, 256, 0x4000);
        assert_eq!((dma.address(), dma.bytes()), (0x4000, 256));
        dma.store(0, 1);
        dma.store_release(248, 2);
        dma.copy_in(3, b"abc");
        dma.prefetch(64);
        assert_eq!((region.word(128).load(), region.word(376).load()), (1 | 0x0063_6261 << 24, 2));
        let mut bytes = [0; 4];
        dma.copy_out(2, &mut bytes);
        assert_eq!((&bytes, dma.load(248), dma.load_acquire(248)), (b"\0abc", 2, 2));
    }

    #[test]
    #[should_panic(expected = "8 bytes at offset 256 reach outside a region of 256 bytes")]
    fn a_word_past_the_end_is_refused() {
        Region::private(4096).dma_memory(128, 256, 0).store(256, 0);
    }

    #[test]
    #[should_panic(expected = "bus address 0x20 is not a multiple of 64")]
    fn a_bus_address_starts_a_line() {
        Region::private(4096).dma_memory(0, 64, 0x20);
    }
}
