//! Where a delivered message lies.

use beeline_spec::WORD_BYTES;
use beeline_spec::batch::Record;
use beeline_spec::header::MAX_PAYLOAD_BYTES;

use crate::payload;

/// Where the bytes of a delivered message lie, in one register: two fields would be stored one by one on the way from
/// the poll to the handle and loaded together, which waits for both stores to leave the core.
///
/// Length in bytes in the lower half, beside [`PLAIN`]. Above it, for a plain message (the bit set), the window line in which
/// it starts; otherwise the offset of the first byte from the start of the message, header word included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery(u64);

/// A data message without escapes: its payload begins after the header word, and its words are as stored. Above every length,
/// so that a line is what a shift leaves.
const PLAIN: u64 = 1 << 31;
const _: () = assert!(MAX_PAYLOAD_BYTES < 1 << 31);

impl Delivery {
    /// A plain message that starts in this line.
    #[inline(always)]
    pub(crate) fn plain(line: u32, length_bytes: u64) -> Self {
        Delivery(PLAIN | u64::from(line) << 32 | length_bytes)
    }

    /// A whole message.
    pub(crate) fn message(length_bytes: u32) -> Self {
        Delivery((WORD_BYTES as u64) << 32 | u64::from(length_bytes))
    }

    /// A record of a batch.
    pub(crate) fn record(record: Record) -> Self {
        let first_byte = WORD_BYTES as u64 + u64::from(record.offset_bytes);
        Delivery(first_byte << 32 | u64::from(record.length_bytes))
    }

    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & PLAIN != 0
    }

    /// Whether it is a plain message of one line, as most are.
    #[inline(always)]
    pub(crate) fn is_one_line(self) -> bool {
        self.is_plain() && self.length_bytes() <= payload::HEAD_BYTES
    }

    /// Whether it is a plain message that fills one line.
    #[inline(always)]
    pub(crate) fn is_full_line(self) -> bool {
        self.0 as u32 == (PLAIN | payload::HEAD_BYTES as u64) as u32
    }

    /// The window line in which a plain message starts.
    #[inline(always)]
    pub(crate) fn line(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    pub(crate) fn first_byte(self) -> usize {
        if self.is_plain() { WORD_BYTES } else { (self.0 >> 32) as usize }
    }

    #[inline(always)]
    pub(crate) fn length_bytes(self) -> usize {
        (self.0 as u32 & !(PLAIN as u32)) as usize
    }
}
