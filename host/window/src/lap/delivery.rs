//! What is known of a message in a receiver's hands.

use beeline_spec::lap::{LapHeader, lines_of};

use crate::payload::HEAD_BYTES;

/// Length and tops of a delivered message, in one register: fields of a header would be stored one by one on the way from the
/// poll to the handle and loaded together, which waits for the stores to leave the core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery(u64);

impl Delivery {
    #[inline(always)]
    pub(super) fn new(header: LapHeader) -> Self {
        Delivery(u64::from(header.tops) << 32 | u64::from(header.length_bytes))
    }

    #[inline(always)]
    pub(super) fn length_bytes(self) -> usize {
        self.0 as u32 as usize
    }

    /// Bit 63 of the payload words in the header's line, bit i for payload word i.
    #[inline(always)]
    pub(super) fn tops(self) -> u64 {
        self.0 >> 32
    }

    #[inline(always)]
    pub(super) fn is_one_line(self) -> bool {
        self.length_bytes() <= HEAD_BYTES
    }

    pub(super) fn lines(self) -> u32 {
        lines_of(self.0 as u32)
    }
}
