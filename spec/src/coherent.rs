//! Entries of coherent lines: a header that passes the entry to its consumer and back, and frames in it or named by it
//! (`coherent`).
//!
//! One format for both directions. A ring of entries of one size (64, 128 or 256 bytes) lies in host memory; the header
//! word is signal, descriptor and owner at once, so no other word is polled or written. What it says of itself (epoch,
//! position) is compared with what the reader expects, so that neither what an earlier lap left nor garbage is taken for
//! an entry. An entry of buffers names up to 31 frames, so that one transfer of its lines announces them all.
//!
//! Sources: Schuh et al., ASPLOS'24 (CC-NIC): signals inside descriptors, descriptors in groups, no head or tail
//! registers; decision 0013 says what differs.

use crate::formats::{LINE_ENTRY_MAX_BYTES, line_buffer as b, line_header as h, line_kind};
use crate::{LINE_BYTES, WORD_BYTES};

/// Most lines of an entry.
pub const MAX_ENTRY_LINES: u32 = (LINE_ENTRY_MAX_BYTES / LINE_BYTES) as u32;
/// Most buffers that an entry of the longest kind names.
pub const MAX_BUFFERS: usize = buffers_in(LINE_ENTRY_MAX_BYTES);

const _: () = assert!(LINE_ENTRY_MAX_BYTES.is_power_of_two() && MAX_BUFFERS as u64 <= h::BUFFERS_MASK);

/// Longest frame that lies whole in an entry of so many bytes.
#[inline]
pub const fn frame_bytes_in(entry_bytes: usize) -> usize {
    entry_bytes - WORD_BYTES
}

/// Buffers that an entry of so many bytes can name.
#[inline]
pub const fn buffers_in(entry_bytes: usize) -> usize {
    entry_bytes / WORD_BYTES - 1
}

/// The position that stands in a header for an absolute count.
#[inline]
pub const fn position_of(count: u64) -> u32 {
    (count & h::POSITION_MASK) as u32
}

/// Where the frames of an entry are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// One frame of this many bytes, behind the header.
    Whole(u16),
    /// In so many buffers, one a frame.
    Buffers(u8),
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineHeader {
    pub kind: LineKind,
    /// Epoch of the queue the entry was written for.
    pub epoch: u8,
    /// Number of the entry, modulo 2^24.
    pub position: u32,
}

/// Why a word passes no entry of this queue and place to its consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// Not a header of an entry that is the consumer's: the word as read.
    Malformed(u64),
    /// It is of another epoch or entry than the one in turn: the word as read.
    Stale(u64),
    /// The frame or the buffers do not fit the entry: the word as read.
    TooLong(u64),
}

impl LineHeader {
    /// The word that passes the entry to its consumer.
    #[inline]
    pub const fn encode(self) -> u64 {
        debug_assert!(self.position as u64 <= h::POSITION_MASK);
        let (kind, length_bytes, buffers) = match self.kind {
            LineKind::Whole(bytes) => (line_kind::WHOLE, bytes, 0),
            LineKind::Buffers(count) => (line_kind::BUFFERS, 0, count),
        };
        (length_bytes as u64) << h::LENGTH_BYTES_LSB
            | (buffers as u64) << h::BUFFERS_LSB
            | (kind as u64) << h::KIND_LSB
            | 1 << h::OWNER_LSB
            | (self.epoch as u64) << h::EPOCH_LSB
            | (self.position as u64) << h::POSITION_LSB
    }

    /// Reads a word written by somebody who is not trusted, at the place of entry number `count` of a queue whose entries
    /// have so many bytes. What it names fits the entry; lengths of frames in buffers are for the caller to judge.
    ///
    /// # Errors
    /// The word passes no entry here.
    #[inline]
    pub const fn decode(word: u64, epoch: u8, count: u64, entry_bytes: usize) -> Result<Self, LineError> {
        let length_bytes = (word >> h::LENGTH_BYTES_LSB & h::LENGTH_BYTES_MASK) as u16;
        let buffers = (word >> h::BUFFERS_LSB & h::BUFFERS_MASK) as u8;
        let kind = match (word >> h::KIND_LSB & h::KIND_MASK) as u8 {
            line_kind::WHOLE if buffers == 0 => LineKind::Whole(length_bytes),
            line_kind::BUFFERS if length_bytes == 0 && buffers != 0 => LineKind::Buffers(buffers),
            _ => return Err(LineError::Malformed(word)),
        };
        if !is_passed(word) || word >> h::RESERVED_LSB & h::RESERVED_MASK != 0 {
            return Err(LineError::Malformed(word));
        }
        let found = (word >> h::EPOCH_LSB & h::EPOCH_MASK) as u8;
        let position = (word >> h::POSITION_LSB & h::POSITION_MASK) as u32;
        if found != epoch || position != position_of(count) {
            return Err(LineError::Stale(word));
        }
        if length_bytes as usize > frame_bytes_in(entry_bytes) || buffers as usize > buffers_in(entry_bytes) {
            return Err(LineError::TooLong(word));
        }
        Ok(LineHeader { kind, epoch, position })
    }
}

/// Whether a word says that the entry is its consumer's.
#[inline]
pub const fn is_passed(word: u64) -> bool {
    word >> h::OWNER_LSB & h::OWNER_MASK == 1
}

/// The word that gives an entry back which `header` passed.
#[inline]
pub const fn given_back(header: u64) -> u64 {
    header & !(h::OWNER_MASK << h::OWNER_LSB)
}

/// A frame outside its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineBuffer {
    /// Bytes of the frame.
    pub length_bytes: u16,
    /// Bus address of its first byte: a multiple of 64, below 2^54.
    pub address: u64,
}

impl LineBuffer {
    /// The word.
    #[inline]
    pub const fn encode(self) -> u64 {
        let lines = self.address / LINE_BYTES as u64;
        debug_assert!(self.address.is_multiple_of(LINE_BYTES as u64) && lines <= b::ADDRESS_LINES_MASK);
        (self.length_bytes as u64) << b::LENGTH_BYTES_LSB | lines << b::ADDRESS_LINES_LSB
    }

    /// Every word is one; whether length and address make sense is for the caller to judge.
    #[inline]
    pub const fn decode(word: u64) -> Self {
        LineBuffer {
            length_bytes: (word >> b::LENGTH_BYTES_LSB & b::LENGTH_BYTES_MASK) as u16,
            address: (word >> b::ADDRESS_LINES_LSB & b::ADDRESS_LINES_MASK) * LINE_BYTES as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: LineHeader = LineHeader { kind: LineKind::Whole(56), epoch: 3, position: 9 };

    #[test]
    fn an_entry_holds_a_short_frame_or_names_several() {
        assert_eq!([64, 128, 256].map(frame_bytes_in), [56, 120, 248]);
        assert_eq!([64, 128, 256].map(buffers_in), [7, 15, 31]);
        assert_eq!((MAX_ENTRY_LINES, MAX_BUFFERS), (4, 31));
    }

    #[test]
    fn a_header_comes_back_in_its_turn_and_nowhere_else() {
        for kind in [LineKind::Whole(0), LineKind::Whole(120), LineKind::Buffers(1), LineKind::Buffers(15)] {
            let count = (1 << 24) + 5;
            let header = LineHeader { kind, epoch: 0xa5, position: position_of(count) };
            let word = header.encode();
            assert_eq!(LineHeader::decode(word, 0xa5, count, 128), Ok(header));
            assert_eq!(LineHeader::decode(word, 0xa4, count, 128), Err(LineError::Stale(word)));
            assert_eq!(LineHeader::decode(word, 0xa5, count + 1, 128), Err(LineError::Stale(word)));
            assert_eq!(LineHeader::decode(word, 0xa5, count + (1 << 24), 128), Ok(header), "modulo 2^24");
            let back = given_back(word);
            assert!(is_passed(word) && !is_passed(back) && back != 0);
            assert_eq!(LineHeader::decode(back, 0xa5, count, 128), Err(LineError::Malformed(back)));
        }
    }

    #[test]
    fn hostile_words_are_refused() {
        let word = WHOLE.encode();
        for bits in [1 << 16, 1 << 24, 1 << 31, 2 << 21, 3 << 21] {
            let bad = word | bits;
            assert_eq!(LineHeader::decode(bad, 3, 9, 64), Err(LineError::Malformed(bad)), "{bits:#x}");
        }
        for none in [0, word & !(3 << 21), LineHeader { kind: LineKind::Buffers(0), ..WHOLE }.encode()] {
            assert_eq!(LineHeader::decode(none, 3, 9, 64), Err(LineError::Malformed(none)));
        }
        for kind in [LineKind::Whole(57), LineKind::Buffers(8)] {
            let long = LineHeader { kind, ..WHOLE }.encode();
            assert_eq!(LineHeader::decode(long, 3, 9, 64), Err(LineError::TooLong(long)));
            assert!(LineHeader::decode(long, 3, 9, 128).is_ok());
        }
    }

    #[test]
    fn a_buffer_is_named_by_its_line() {
        for (length_bytes, address) in [(0, 0), (9216, 64), (u16::MAX, (1 << 54) - 64)] {
            let buffer = LineBuffer { length_bytes, address };
            assert_eq!(LineBuffer::decode(buffer.encode()), buffer);
        }
    }
}
