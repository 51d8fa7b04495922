//! Entries: a frame or its address behind a fixed head, in a ring, in a push, or in the BAR (`inline`, `niq`).
//!
//! One head for both interfaces, so that host, model and RTL have one parser: two words, the payload from byte 16 on.
//! An entry of a ring takes as many lines as its length needs; an entry in the BAR has a fixed size, chosen when the
//! queue is set up, and is written whole. What an entry says of itself (epoch, position) is compared with what the
//! reader expects, so that a stale one is never taken for a new one.
//!
//! Sources: HotOS'25 §2.4 (inlining, BlueFlame); Flajslik & Rosenblum, ATC'13 (small packets whole in the entry).

use crate::formats::{
    ENTRY_HEAD_BYTES, NIQ_ENTRY_MAX_BYTES, PUSH_HALF_BYTES, RING_ENTRY_MAX_BYTES, entry_header as f,
    entry_kind,
};
use crate::{LINE_BYTES, WORD_BYTES};

/// Lines of a half of a push window.
pub const PUSH_HALF_LINES: u32 = (PUSH_HALF_BYTES / LINE_BYTES) as u32;
/// Longest frame that can be pushed with its entry, in bytes.
pub const PUSH_MAX_FRAME_BYTES: usize = PUSH_HALF_BYTES - ENTRY_HEAD_BYTES;
/// Longest frame that an entry of a ring can hold whole, in bytes.
pub const RING_MAX_FRAME_BYTES: usize = RING_ENTRY_MAX_BYTES - ENTRY_HEAD_BYTES;
/// Most lines of an entry in the BAR.
pub const NIQ_MAX_LINES: u32 = (NIQ_ENTRY_MAX_BYTES / LINE_BYTES) as u32;

const _: () = assert!(ENTRY_HEAD_BYTES == 2 * WORD_BYTES);
const _: () = assert!(PUSH_HALF_BYTES.is_power_of_two() && NIQ_ENTRY_MAX_BYTES.is_power_of_two());

/// Where the frame of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Behind the head.
    Whole,
    /// At the address in the second word.
    Address,
    Nothing,
}

impl EntryKind {
    /// The value that stands in the header.
    pub const fn code(self) -> u8 {
        match self {
            EntryKind::Whole => entry_kind::WHOLE,
            EntryKind::Address => entry_kind::ADDRESS,
            EntryKind::Nothing => entry_kind::NOTHING,
        }
    }
}

/// A decoded entry header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryHeader {
    /// Bytes of the frame.
    pub length_bytes: u16,
    pub kind: EntryKind,
    /// Whether the host wants an interrupt when the entry is done.
    pub wants_irq: bool,
    /// Epoch of the queue the entry was written for.
    pub epoch: u8,
    /// Line at which the entry starts, modulo 2^31.
    pub position: u32,
}

/// Why a word is not the header of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryError {
    /// The tag bit or a reserved bit is set: the word as read.
    Reserved(u64),
    /// The kind is unknown: its value.
    Kind(u8),
    /// The epoch is another one: epoch read, epoch in force.
    Epoch {
        /// Epoch in the header.
        found: u8,
        /// Epoch in force.
        expected: u8,
    },
}

/// Lines that head and frame of a whole entry take.
#[inline]
pub const fn lines_of(length_bytes: u16) -> u32 {
    (ENTRY_HEAD_BYTES as u32 + length_bytes as u32).div_ceil(LINE_BYTES as u32)
}

/// The position that stands in a header for an absolute count.
#[inline]
pub const fn position_of(count: u64) -> u32 {
    (count & f::POSITION_MASK) as u32
}

impl EntryHeader {
    /// Lines of the entry in a ring.
    #[inline]
    pub const fn lines(&self) -> u32 {
        match self.kind {
            EntryKind::Whole => lines_of(self.length_bytes),
            EntryKind::Address | EntryKind::Nothing => 1,
        }
    }

    /// The word.
    #[inline]
    pub const fn encode(self) -> u64 {
        debug_assert!(self.position as u64 <= f::POSITION_MASK);
        (self.length_bytes as u64) << f::LENGTH_BYTES_LSB
            | (self.kind.code() as u64) << f::KIND_LSB
            | (self.wants_irq as u64) << f::WANTS_IRQ_LSB
            | (self.epoch as u64) << f::EPOCH_LSB
            | (self.position as u64) << f::POSITION_LSB
    }

    /// Reads a word written by somebody who is not trusted; what it says of length and position is for the caller to
    /// judge.
    #[inline]
    pub const fn decode(word: u64, epoch: u8) -> Result<Self, EntryError> {
        if word >> f::RESERVED_LSB & f::RESERVED_MASK != 0 || word >> f::TAG_LSB != 0 {
            return Err(EntryError::Reserved(word));
        }
        let kind = match (word >> f::KIND_LSB & f::KIND_MASK) as u8 {
            entry_kind::WHOLE => EntryKind::Whole,
            entry_kind::ADDRESS => EntryKind::Address,
            entry_kind::NOTHING => EntryKind::Nothing,
            other => return Err(EntryError::Kind(other)),
        };
        let found = (word >> f::EPOCH_LSB & f::EPOCH_MASK) as u8;
        if found != epoch {
            return Err(EntryError::Epoch { found, expected: epoch });
        }
        Ok(EntryHeader {
            length_bytes: (word >> f::LENGTH_BYTES_LSB & f::LENGTH_BYTES_MASK) as u16,
            kind,
            wants_irq: word >> f::WANTS_IRQ_LSB & f::WANTS_IRQ_MASK == 1,
            epoch,
            position: (word >> f::POSITION_LSB & f::POSITION_MASK) as u32,
        })
    }
}

impl core::fmt::Display for EntryError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            EntryError::Reserved(word) => write!(out, "reserved bits set in entry header {word:#018x}"),
            EntryError::Kind(kind) => write!(out, "unknown kind of entry {kind}"),
            EntryError::Epoch { found, expected } => write!(out, "epoch {found}, expected {expected}"),
        }
    }
}

impl core::error::Error for EntryError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_never_a_blank_and_comes_back() {
        for kind in [EntryKind::Whole, EntryKind::Address, EntryKind::Nothing] {
            for (length_bytes, position) in [(0, 0), (48, 1), (u16::MAX, position_of(u64::MAX))] {
                let header = EntryHeader { length_bytes, kind, wants_irq: true, epoch: 0xa5, position };
                assert_eq!(header.encode() >> 63, 0);
                assert_eq!(EntryHeader::decode(header.encode(), 0xa5), Ok(header));
            }
        }
    }

    #[test]
    fn a_line_holds_48_bytes_and_a_half_240() {
        assert_eq!([0, 48, 49, 112, 113, 240, 241].map(lines_of), [1, 1, 2, 2, 3, 4, 5]);
        assert_eq!((PUSH_MAX_FRAME_BYTES, RING_MAX_FRAME_BYTES), (240, 496));
        assert_eq!(lines_of(PUSH_MAX_FRAME_BYTES as u16), PUSH_HALF_LINES);
    }

    #[test]
    fn hostile_words_are_refused() {
        let good =
            EntryHeader { length_bytes: 64, kind: EntryKind::Whole, wants_irq: false, epoch: 3, position: 9 };
        for bit in [21, 23, 63] {
            assert!(matches!(EntryHeader::decode(good.encode() | 1 << bit, 3), Err(EntryError::Reserved(_))));
        }
        assert_eq!(EntryHeader::decode(good.encode(), 4), Err(EntryError::Epoch { found: 3, expected: 4 }));
        assert_eq!(EntryHeader::decode(good.encode() | 0xf << 16, 3), Err(EntryError::Kind(15)));
        assert_eq!(EntryHeader::decode(0, 0), Err(EntryError::Kind(0)), "nothing was written");
    }
}
