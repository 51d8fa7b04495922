//! Host memory that the device may read and write.

use std::sync::{Arc, Mutex};

use beeline_contract_link::DmaMemory;
use beeline_mmio::DmaRegion;

use super::window::NicWaker;

/// Regions whose owner is gone, to be taken from the device at the next opportunity.
pub(crate) type Dropped = Arc<Mutex<Vec<u32>>>;

/// A region of memory that the host made and the NIC process mapped.
///
/// Dropping it makes it invisible to the device when the link next registers memory: a device that still uses it
/// then gets a bad address, as behind an IOMMU.
#[derive(Debug)]
pub struct ShmMemory {
    pub(crate) region: DmaRegion,
    pub(crate) number: u32,
    pub(crate) dropped: Dropped,
    pub(crate) waker: NicWaker,
}

impl Drop for ShmMemory {
    fn drop(&mut self) {
        if let Ok(mut dropped) = self.dropped.lock() {
            dropped.push(self.number);
        }
    }
}

impl DmaMemory for ShmMemory {
    #[inline]
    fn address(&self) -> u64 {
        self.region.address()
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.region.bytes()
    }

    #[inline]
    fn load(&mut self, offset_bytes: usize) -> u64 {
        self.region.load(offset_bytes)
    }

    #[inline]
    fn load_acquire(&mut self, offset_bytes: usize) -> u64 {
        self.region.load_acquire(offset_bytes)
    }

    #[inline]
    fn store(&mut self, offset_bytes: usize, value: u64) {
        self.region.store(offset_bytes, value);
    }

    #[inline]
    fn store_release(&mut self, offset_bytes: usize, value: u64) {
        self.region.store_release(offset_bytes, value);
    }

    /// The NIC's core looks at watched lines as long as it is awake.
    #[inline]
    fn store_watched(&mut self, offset_bytes: usize, value: u64) {
        self.region.store_release(offset_bytes, value);
        self.waker.stored();
    }

    #[inline]
    fn copy_in(&mut self, offset_bytes: usize, bytes: &[u8]) {
        self.region.copy_in(offset_bytes, bytes);
    }

    #[inline]
    fn copy_out(&mut self, offset_bytes: usize, bytes: &mut [u8]) {
        self.region.copy_out(offset_bytes, bytes);
    }

    #[inline]
    fn prefetch(&mut self, offset_bytes: usize) {
        self.region.prefetch(offset_bytes);
    }
}
