//! The header word: length, kind, epoch and the end of the escape chain, in 64 bits that are never a blank.

use crate::formats::{header as f, message_kind};
use crate::{LINE_BYTES, WORD_BYTES};

/// Longest payload a header can name, in bytes (16 MiB - 1).
pub const MAX_PAYLOAD_BYTES: u32 = f::LENGTH_BYTES_MASK as u32;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One frame or user message.
    Data,
    /// An abandoned reservation; receivers skip it.
    Void,
    /// Several small messages (see [`crate::batch`]).
    Batch,
}

impl Kind {
    /// The value that stands in the header.
    pub const fn code(self) -> u8 {
        match self {
            Kind::Data => message_kind::DATA,
            Kind::Void => message_kind::VOID,
            Kind::Batch => message_kind::BATCH,
        }
    }
}

/// A decoded header word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Payload bytes after the header word.
    pub length_bytes: u32,
    /// Index in the message of the last escaped word; 0 when none is.
    pub escape_last: u32,
    /// What the message is.
    pub kind: Kind,
    /// Epoch of the window or queue the message was written for.
    pub epoch: u8,
}

/// Why a word is not the header of a message that fits a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The tag bit or a reserved bit is set: the word as read.
    Reserved(u64),
    /// The kind is unknown: its value.
    Kind(u8),
    /// The message would not fit: lines it needs, lines the window has.
    TooLong {
        /// Lines the header asks for.
        lines: u32,
        window_lines: u32,
    },
    /// The escape chain starts outside the payload: index named, words of the message.
    Escape {
        /// Index the header names.
        index: u32,
        /// Words of header and payload.
        words: u32,
    },
    /// The epoch is another one: epoch read, epoch in force.
    Epoch {
        /// Epoch in the header.
        found: u8,
        /// Epoch in force.
        expected: u8,
    },
}

/// Words of header and payload of a message, without padding to whole lines.
#[inline]
pub const fn words_of(length_bytes: u32) -> u32 {
    1 + length_bytes.div_ceil(WORD_BYTES as u32)
}

/// Lines a message of this payload length takes, header included.
#[inline]
pub const fn lines_of(length_bytes: u32) -> u32 {
    (length_bytes + WORD_BYTES as u32).div_ceil(LINE_BYTES as u32)
}

impl Header {
    /// The header of a message without escapes.
    #[inline]
    pub const fn new(kind: Kind, length_bytes: u32, epoch: u8) -> Self {
        Header { length_bytes, escape_last: 0, kind, epoch }
    }

    /// Lines of the message, header included.
    #[inline]
    pub const fn lines(&self) -> u32 {
        lines_of(self.length_bytes)
    }

    /// The word. Bits above a field's width must be clear; `debug_assert` checks it.
    #[inline]
    pub const fn encode(self) -> u64 {
        debug_assert!(self.length_bytes as u64 <= f::LENGTH_BYTES_MASK);
        debug_assert!(self.escape_last as u64 <= f::ESCAPE_LAST_MASK);
        (self.length_bytes as u64) << f::LENGTH_BYTES_LSB
            | (self.escape_last as u64) << f::ESCAPE_LAST_LSB
            | (self.kind.code() as u64) << f::KIND_LSB
            | (self.epoch as u64) << f::EPOCH_LSB
    }

    /// Reads a word written by a peer that is not trusted. What it returns fits a window of `window_lines`, carries
    /// `epoch`, and names an escape inside its own payload.
    #[inline]
    pub const fn decode(word: u64, window_lines: u32, epoch: u8) -> Result<Self, HeaderError> {
        if word >> f::RESERVED_LSB != 0 {
            return Err(HeaderError::Reserved(word));
        }
        let kind = match ((word >> f::KIND_LSB) & f::KIND_MASK) as u8 {
            message_kind::DATA => Kind::Data,
            message_kind::VOID => Kind::Void,
            message_kind::BATCH => Kind::Batch,
            other => return Err(HeaderError::Kind(other)),
        };
        let length_bytes = ((word >> f::LENGTH_BYTES_LSB) & f::LENGTH_BYTES_MASK) as u32;
        let escape_last = ((word >> f::ESCAPE_LAST_LSB) & f::ESCAPE_LAST_MASK) as u32;
        let found = ((word >> f::EPOCH_LSB) & f::EPOCH_MASK) as u8;
        if found != epoch {
            return Err(HeaderError::Epoch { found, expected: epoch });
        }
        if lines_of(length_bytes) > window_lines {
            return Err(HeaderError::TooLong { lines: lines_of(length_bytes), window_lines });
        }
        if escape_last >= words_of(length_bytes) {
            return Err(HeaderError::Escape { index: escape_last, words: words_of(length_bytes) });
        }
        Ok(Header { length_bytes, escape_last, kind, epoch })
    }
}

impl core::fmt::Display for HeaderError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            HeaderError::Reserved(word) => write!(out, "reserved bits set in header word {word:#018x}"),
            HeaderError::Kind(kind) => write!(out, "unknown message kind {kind}"),
            HeaderError::TooLong { lines, window_lines } => {
                write!(out, "message of {lines} lines in a window of {window_lines}")
            }
            HeaderError::Escape { index, words } => {
                write!(out, "escape chain starts at word {index} of a message of {words} words")
            }
            HeaderError::Epoch { found, expected } => write!(out, "epoch {found}, expected {expected}"),
        }
    }
}

impl core::error::Error for HeaderError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_never_a_blank_and_comes_back() {
        for kind in [Kind::Data, Kind::Void, Kind::Batch] {
            for length_bytes in [0, 1, 55, 56, 57, 4096] {
                let header =
                    Header { length_bytes, escape_last: words_of(length_bytes) - 1, kind, epoch: 0xa5 };
                let word = header.encode();
                assert_eq!(word >> 63, 0);
                assert_eq!(Header::decode(word, 1024, 0xa5), Ok(header));
            }
        }
    }

    #[test]
    fn a_header_line_holds_56_bytes() {
        assert_eq!((lines_of(0), lines_of(56), lines_of(57), lines_of(120), lines_of(121)), (1, 1, 2, 2, 3));
    }

    #[test]
    fn hostile_words_are_refused() {
        let good = Header::new(Kind::Data, 4096, 1);
        assert!(matches!(Header::decode(good.encode(), 64, 1), Err(HeaderError::TooLong { .. })));
        assert!(matches!(Header::decode(good.encode(), 128, 2), Err(HeaderError::Epoch { .. })));
        assert!(matches!(Header::decode(good.encode() | 1 << 63, 128, 1), Err(HeaderError::Reserved(_))));
        assert!(matches!(Header::decode(good.encode() | 1 << 58, 128, 1), Err(HeaderError::Reserved(_))));
        assert!(matches!(Header::decode(0, 128, 0), Err(HeaderError::Kind(0))));
        let bad = Header { escape_last: 513, ..good };
        assert!(matches!(
            Header::decode(bad.encode(), 128, 1),
            Err(HeaderError::Escape { index: 513, words: 513 })
        ));
    }
}
