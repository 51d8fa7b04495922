//! Batches: several small messages in one, packed to multiples of 8 bytes.
//!
//! A record is a 16-bit length, that many bytes, and zeros up to the next multiple of 8; so a payload of up to 6
//! bytes takes one word, up to 14 two. The message's length is the sum of its padded records.

use crate::WORD_BYTES;
use crate::formats::batch_record as f;

/// Longest payload of a record in bytes.
pub const MAX_RECORD_BYTES: usize = u16::MAX as usize;
/// Bytes of a record's length.
pub const PREFIX_BYTES: usize = f::BYTES;

/// Bytes a record of `length_bytes` takes, prefix and padding included.
#[inline]
pub const fn record_bytes(length_bytes: usize) -> usize {
    (PREFIX_BYTES + length_bytes).next_multiple_of(WORD_BYTES)
}

/// A record that does not fit the batch it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// Offset of the record in the payload, in bytes.
    pub offset_bytes: u32,
    /// Length the record claims.
    pub length_bytes: u16,
    /// Bytes left in the payload after the record's prefix.
    pub left_bytes: u32,
}

impl core::fmt::Display for BatchError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let BatchError { offset_bytes, length_bytes, left_bytes } = self;
        write!(out, "batch record at byte {offset_bytes} claims {length_bytes} bytes, {left_bytes} are left")
    }
}

impl core::error::Error for BatchError {}

/// Where one record's bytes lie in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset of the first byte in the payload.
    pub offset_bytes: u32,
    pub length_bytes: u16,
}

/// Steps through the records of a batch whose payload bytes are behind `load_u16`, so that the payload may lie in
/// memory that must be read through a port. Reads each prefix once.
#[derive(Clone, Debug)]
pub struct Cursor {
    next_bytes: u32,
    end_bytes: u32,
}

impl Cursor {
    /// Starts at the first record of a payload of `length_bytes`.
    #[inline]
    pub const fn new(length_bytes: u32) -> Self {
        Cursor { next_bytes: 0, end_bytes: length_bytes }
    }

    /// Bytes of the payload.
    #[inline]
    pub const fn end_bytes(&self) -> u32 {
        self.end_bytes
    }

    /// Whether every record has been given.
    #[inline]
    pub const fn is_done(&self) -> bool {
        self.next_bytes >= self.end_bytes
    }

    /// The next record, `None` at the end. `load_word` gives payload word `i` (bytes `8i..8i+8`).
    #[inline]
    pub fn next(&mut self, load_word: impl FnOnce(u32) -> u64) -> Result<Option<Record>, BatchError> {
        if self.next_bytes >= self.end_bytes {
            return Ok(None);
        }
        let offset_bytes = self.next_bytes;
        let left = self.end_bytes - offset_bytes;
        if (left as usize) < PREFIX_BYTES {
            self.next_bytes = self.end_bytes;
            return Err(BatchError { offset_bytes, length_bytes: 0, left_bytes: 0 });
        }
        let length_bytes = load_word(offset_bytes / WORD_BYTES as u32) as u16;
        let left_bytes = left - PREFIX_BYTES as u32;
        if length_bytes as u32 > left_bytes {
            self.next_bytes = self.end_bytes;
            return Err(BatchError { offset_bytes, length_bytes, left_bytes });
        }
        self.next_bytes = offset_bytes.saturating_add(record_bytes(length_bytes as usize) as u32);
        Ok(Some(Record { offset_bytes: offset_bytes + PREFIX_BYTES as u32, length_bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], index: u32) -> u64 {
        let at = index as usize * 8;
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn records_are_found_again() {
        let mut payload = [0u8; 40];
        payload[0] = 6;
        payload[8] = 0;
        payload[16] = 14;
        payload[32] = 1;
        let mut cursor = Cursor::new(40);
        for expected in [(2, 6), (10, 0), (18, 14), (34, 1)] {
            let record = cursor.next(|i| word(&payload, i)).unwrap().unwrap();
            assert_eq!((record.offset_bytes, record.length_bytes), expected);
        }
        assert_eq!(cursor.next(|i| word(&payload, i)), Ok(None));
    }

    #[test]
    fn a_record_past_the_end_is_refused_and_ends_the_walk() {
        let payload = [7u8, 0, 0, 0, 0, 0, 0, 0];
        let mut cursor = Cursor::new(8);
        assert!(cursor.next(|i| word(&payload, i)).is_err());
        assert_eq!(cursor.next(|i| word(&payload, i)), Ok(None));
        let mut short = Cursor::new(1);
        assert!(short.next(|_| 0).is_err());
    }
}
