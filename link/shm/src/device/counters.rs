//! What the link did for one port.

use serde::{Deserialize, Serialize};

/// Absolute counts since the port was opened. The device has its own, by cause; these are the link's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortCounters {
    /// Lines that were found whole and delivered as one write.
    pub whole_lines: u64,
    /// Writes delivered with byte enables, because only a part of the line had arrived.
    pub partial_writes: u64,
    /// Lines of which a part was delivered before the rest.
    pub split_lines: u64,
    /// Writes delivered for lines beyond one that was still incomplete afterwards: disorder that really happened.
    pub ahead_writes: u64,
    /// Writes that the device refused; each is offered again.
    pub refused_writes: u64,
    /// Doorbell values delivered.
    pub doorbells: u64,
    /// Register accesses delivered.
    pub register_accesses: u64,
    /// DMA reads carried out.
    pub dma_reads: u64,
    pub dma_read_bytes: u64,
    /// DMA writes carried out.
    pub dma_writes: u64,
    pub dma_write_bytes: u64,
    /// DMA accesses outside the memory that the host registered.
    pub bad_addresses: u64,
    /// Interrupts raised.
    pub interrupts: u64,
    /// Times the host slept and was woken.
    pub host_wakes: u64,
    /// Frames given back to the port they came from (hairpin).
    pub returned_frames: u64,
    /// Frames given back for which the device had no room, dropped.
    pub returned_drops: u64,
}

impl PortCounters {
    /// Writes to transmit windows: each is one `write_arrived` of the device's reorder unit.
    pub fn window_writes(&self) -> u64 {
        self.whole_lines + self.partial_writes
    }
}
