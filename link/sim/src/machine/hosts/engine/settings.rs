//! What an engine is in time.

use crate::des::Picoseconds;
use crate::device::Rate;

/// The parameters of a DMA engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// From the store that tells it of a transfer to its first access: what it has to do to begin one.
    pub start: Picoseconds,
    /// From one packet to the next.
    pub interval: Picoseconds,
    /// The path that data take through it before their packets leave.
    pub rate: Rate,
    /// Packets of data that it has read, or is reading, and that have not left.
    pub buffers: usize,
    /// Requests across that may be unanswered.
    pub tags: u16,
}

impl EngineSettings {
    /// Transfers that an engine keeps, those that have begun included.
    pub const TRANSFERS: usize = 64;
}
