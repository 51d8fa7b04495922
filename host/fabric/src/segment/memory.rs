//! Where the memory of a segment is.

use crate::ids::Slot;

/// The memory of a segment. Whoever maps it has it from the segment's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In the bank of the member, which each of its pairs has.
    Bank {
        /// Where in the bank it begins.
        offset: u64,
    },
    /// A memory of its own, which the member knows by the entry of its board.
    Own { slot: Slot },
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where in the segment it begins.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
}

impl Part {
    /// Whether it is a part of a segment of `bytes`, and not nothing.
    pub(crate) fn is_within(self, bytes: u64) -> bool {
        self.bytes != 0 && self.offset.checked_add(self.bytes).is_some_and(|end| end <= bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_ends_where_the_segment_ends() {
        let is_within = |offset, bytes| Part { offset, bytes }.is_within(100);
        assert!(is_within(0, 100) && is_within(99, 1));
        assert!(!is_within(0, 101) && !is_within(100, 1) && !is_within(5, 0) && !is_within(u64::MAX, 2));
    }
}
