//! Reads whose answers nobody waits for.

use std::collections::HashSet;

/// Reads that are under way and that nobody waits for any more.
#[derive(Debug, Default)]
pub(crate) struct Forgotten(HashSet<u16>);

impl Forgotten {
    /// Whether the answer to this read is thrown away.
    pub(crate) fn take(&mut self, tag: u16) -> bool {
        self.0.remove(&tag)
    }

    /// The answer to this read will be thrown away.
    pub(crate) fn add(&mut self, tag: u16) {
        self.0.insert(tag);
    }
}
