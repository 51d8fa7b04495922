//! What the fuzz targets share: the words an attacker would try, and what stands around the code that is fuzzed.
//!
//! Random bytes almost never look like a header, a link or a blank, so structures that only near misses reach would go
//! untouched; [`Word`] makes such words likely and still allows every other one. Not here: what each target checks.
#![forbid(unsafe_code)]

use arbitrary::Arbitrary;
use beeline_spec::formats::{batch_record, header, link};

pub mod device;
pub mod fillers;
pub mod lap;
pub mod opened;
pub mod port;
pub mod queues;
pub mod received;
pub mod sender;
pub mod sent;
pub mod stream;
/// The window that the tests of `host/window` use: it checks both ends.
#[rustfmt::skip]
#[path = "../../host/window/src/test_memory.rs"]
pub mod test_memory;
pub mod watched;
pub mod window;
/// The link without a device that the tests of `host/driver` use.
#[rustfmt::skip]
#[path = "../../host/driver/tests/support/scripted.rs"]
pub mod scripted;

/// The blank of every blank window here.
pub const BLANK: u64 = 1 << 63 | 0x0123_4567_89ab_cdef;

/// A word as an attacker would choose it.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Word {
    /// A header of epoch 0, well formed if its kind is.
    Header {
        kind: u8,
        length_bytes: u16,
        escape_last: u8,
    },
    /// A header with every field as it comes.
    WildHeader {
        kind: u8,
        length_bytes: u32,
        escape_last: u32,
        epoch: u8,
    },
    Blank,
    NearBlank(i8),
    /// A link to an earlier word.
    Link(u8),
    /// Four record prefixes of a batch.
    Records([u8; 4]),
    /// Header of a received frame, or a completion: a length, and bits that say "valid".
    Mark {
        length_bytes: u16,
        flags: u8,
    },
    /// A small count.
    Count(u16),
    /// Anything.
    Any(u64),
}

impl Word {
    pub fn value(self) -> u64 {
        match self {
            Word::Header { kind, length_bytes, escape_last } => {
                // Four kinds, of which three are known, and lengths that mostly fit the small windows used here.
                u64::from(kind % 4) << header::KIND_LSB
                    | u64::from(length_bytes % 640) << header::LENGTH_BYTES_LSB
                    // Most messages have no escape.
                    | u64::from(escape_last.saturating_sub(192)) << header::ESCAPE_LAST_LSB
            }
            Word::WildHeader { kind, length_bytes, escape_last, epoch } => {
                (u64::from(kind) & header::KIND_MASK) << header::KIND_LSB
                    | (u64::from(length_bytes) & header::LENGTH_BYTES_MASK) << header::LENGTH_BYTES_LSB
                    | (u64::from(escape_last) & header::ESCAPE_LAST_MASK) << header::ESCAPE_LAST_LSB
                    | u64::from(epoch) << header::EPOCH_LSB
            }
            Word::Blank => BLANK,
            Word::NearBlank(distance) => BLANK.wrapping_add_signed(distance.into()),
            Word::Link(previous) => u64::from(previous) << link::PREVIOUS_LSB,
            Word::Records(lengths) => {
                let bits = 8 * batch_record::BYTES as u32;
                lengths.iter().rev().fold(0, |word, length| word << bits | u64::from(*length))
            }
            Word::Mark { length_bytes, flags } => u64::from(length_bytes % 2048) | u64::from(flags % 4) << 32,
            Word::Count(count) => count.into(),
            Word::Any(word) => word,
        }
    }
}

/// A message as a sender stores it: the header, the words, zeros to the end of the last line that either of them
/// claims; at most a window of `lines` lines.
pub fn message(first: Word, words: &[Word], lines: u32) -> Vec<u64> {
    let first = first.value();
    let claimed = beeline_spec::header::lines_of((first & header::LENGTH_BYTES_MASK) as u32) as usize * 8;
    let mut message: Vec<u64> = [first].into_iter().chain(words.iter().map(|word| word.value())).collect();
    let stored = message.len().max(claimed).next_multiple_of(8).min(lines as usize * 8);
    message.resize(stored, 0);
    message
}
