//! Host memory that the device reads and writes.

/// A region of host memory that the device may read and write by bus address: rings, buffers, credit words.
///
/// Offsets are bytes from the start of the region and are checked; an access outside it panics, because every offset
/// is computed from the driver's own ring sizes, never from what a device wrote.
pub trait DmaMemory {
    /// Bus address of the first byte; a multiple of 64.
    fn address(&self) -> u64;

    /// Bytes of the region.
    fn bytes(&self) -> usize;

    /// Loads an aligned word; relaxed.
    fn load(&mut self, offset_bytes: usize) -> u64;

    /// Loads an aligned word; acquire: pairs with the device's ordered DMA writes, so that what was written before
    /// this word is seen by later loads.
    fn load_acquire(&mut self, offset_bytes: usize) -> u64;

    /// Stores an aligned word; relaxed.
    fn store(&mut self, offset_bytes: usize, value: u64);

    /// Stores an aligned word; release: a device that sees it sees every earlier store of this region.
    fn store_release(&mut self, offset_bytes: usize, value: u64);

    /// Stores an aligned word that a device may watch the line of (`Want::WatchLine` of `contract/device`); release, as
    /// [`DmaMemory::store_release`]. Over a coherent interconnect that is all, because the store itself is the signal;
    /// where the device is a core that may sleep, it is woken.
    #[inline]
    fn store_watched(&mut self, offset_bytes: usize, value: u64) {
        self.store_release(offset_bytes, value);
    }

    /// Copies bytes into the region with cached stores.
    fn copy_in(&mut self, offset_bytes: usize, bytes: &[u8]);

    /// Copies bytes out of the region.
    fn copy_out(&mut self, offset_bytes: usize, bytes: &mut [u8]);

    /// Hints that a line will be loaded soon.
    #[inline]
    fn prefetch(&mut self, _offset_bytes: usize) {}

    /// Hints that a line will be stored to soon.
    #[inline]
    fn prefetch_to_write(&mut self, _offset_bytes: usize) {}
}
