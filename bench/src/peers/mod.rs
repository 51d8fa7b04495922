//! Rivals, each built as if it were ours: batched, prefetched, in the same memory, with the same work at both ends.

pub mod descriptor;
pub mod spsc;
