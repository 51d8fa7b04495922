//! What a root complex is, with the memory behind it.

use crate::des::Picoseconds;
use crate::device::Rate;
use crate::pcie::Answers;

/// The parameters of a root complex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootSettings {
    /// From a piece that leaves a core to the first symbol that may go on the wire.
    pub write_latency: Picoseconds,
    /// Added to it at random, up to this much for each piece: lines overtake each other on their way. Uncached accesses do
    /// not overtake what left their core before.
    pub write_jitter: Picoseconds,
    /// From one packet to the next, of all cores together.
    pub write_interval: Picoseconds,
    /// Pieces and loads of cores that it holds; when there are as many, cores keep theirs.
    pub write_places: usize,
    /// Whether two lines that make up 128 aligned bytes, and both wait, leave as one packet.
    pub merges: bool,
    /// From a read request that is there to its first completion, the data being in the last-level cache. What memory,
    /// another socket or a translation add is part of it.
    pub read_latency: Picoseconds,
    /// From 64 bytes of completions to the next.
    pub read_interval: Picoseconds,
    /// How completions are cut.
    pub answers: Answers,
    /// From a write of the device that is there to the time at which loads see it.
    pub write_visible: Picoseconds,
    /// From 64 bytes of writes of the device to the next.
    pub write_ingest: Picoseconds,
    /// Lines of memory that devices read and write and that cores fill, all together. What one that waits for no other takes
    /// is in the times above; this is only how long they wait for each other.
    pub memory_rate: Rate,
}
