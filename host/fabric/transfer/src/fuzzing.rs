//! What another end of a message queue can write, reachable for the fuzz target alone (`fuzz/`).
//!
//! Compiled only with `--cfg fuzzing`, so none of it is part of the crate's interface.

use beeline_mmio::Region;

use crate::queue::fuzzed;

/// What two ends of a message queue do, of which the other has written these words over its segment: bytes that were received; nothing if
/// the segment is no queue.
pub fn queue(words: &[(u16, u64)], later: &[(u16, u64)]) -> Option<usize> {
    fuzzed::exchange(&Region::private(fuzzed::BYTES), words, later)
}
