//! What a queue has of its own: its window in the BAR, and memory on the bus.

use beeline_spec::{LINE_BYTES, regs};

use super::store::Store;

/// A queue's number, its window and its memory.
#[derive(Clone, Copy, Debug)]
pub struct QueueResources {
    pub queue: u16,
    pub window_lines: u64,
    /// Offset of the queue's window in the BAR.
    pub window: u64,
    /// Bus address of 256 KiB of its own.
    pub memory: u64,
    /// Bus address of its credit word.
    pub credits: u64,
}

impl QueueResources {
    /// Bytes of a queue's memory.
    pub const MEMORY_BYTES: u64 = 0x4_0000;

    /// Where the line of a position lies.
    pub(super) fn line(&self, position: u64) -> u64 {
        self.window + position % self.window_lines * LINE_BYTES as u64
    }

    /// A doorbell that says how far the host has come.
    pub(super) fn doorbell(&self, tail: u64) -> Store {
        let offset = regs::DOORBELL + u32::from(self.queue) * regs::DOORBELL_STRIDE + regs::doorbell::TX_TAIL;
        Store::whole(offset.into(), &tail.to_le_bytes())
    }
}
