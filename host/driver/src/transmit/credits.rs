//! Credits that a device pushes into host memory by DMA.

use beeline_contract_link::DmaMemory;
use beeline_contract_memory::CreditSource;

/// A credit word in device-visible memory: the absolute count of lines the device has freed.
///
/// The word has a line of its own, so that polling it disturbs nothing. The device is not trusted: users check that
/// the count neither runs backwards nor ahead.
#[derive(Debug)]
pub struct DmaCredits<M> {
    memory: M,
}

impl<M: DmaMemory> DmaCredits<M> {
    /// The word at the start of `memory`, which is zero.
    pub(crate) fn new(memory: M) -> Self {
        DmaCredits { memory }
    }

    /// Bus address of the word.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Zeroes the count for a new epoch; only while the device has the queue stopped.
    pub(crate) fn restart(&mut self) {
        self.memory.store_release(0, 0);
    }
}

impl<M: DmaMemory> CreditSource for DmaCredits<M> {
    #[inline]
    fn freed_lines(&mut self) -> u64 {
        // Acquire, pairs with the device's ordered writes: it re-blanks a line before it pushes its credit, so a store
        // made after this load cannot be overtaken by the re-blanking.
        self.memory.load_acquire(0)
    }
}
