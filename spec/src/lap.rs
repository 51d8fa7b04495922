//! Lap windows: a word has arrived when its bit 63 is the lap that its receiver expects, so receivers never write.
//!
//! Bit 63 of every payload word is displaced by the lap and rides along inside the message: that of the seven words behind the
//! header in the header itself, that of later words in a *tops* word in front of each 63 of them. The header's line aside, a
//! message is groups of eight lines, 64 words: one of tops, 63 of payload. The overhead is a word in 64.
//!
//! A line is stored again only after every receiver has seen all its words, so one bit is enough to tell a word from the one
//! that it replaces.

use crate::formats::{lap_header as f, lap_payload, lap_tops, message_kind};
use crate::header::{HeaderError, MAX_PAYLOAD_BYTES};
use crate::{WORD_BYTES, WORDS_PER_LINE};

/// Payload words in the header's line.
pub const HEAD_WORDS: usize = WORDS_PER_LINE - 1;
/// Lines of a whole group behind the header's line.
pub const GROUP_LINES: usize = 8;
/// Payload words of a whole group: as many as a word of tops has bits for.
pub const GROUP_PAYLOAD_WORDS: usize = GROUP_LINES * WORDS_PER_LINE - 1;

const LAP: u64 = f::LAP_MASK << f::LAP_LSB;

const _: () = {
    assert!(f::TOPS_MASK.count_ones() as usize == HEAD_WORDS);
    assert!(lap_tops::TOPS_MASK.count_ones() as usize == GROUP_PAYLOAD_WORDS && lap_tops::TOPS_LSB == 0);
    assert!(lap_tops::LAP_LSB == f::LAP_LSB && lap_payload::LAP_LSB == f::LAP_LSB);
    assert!(f::LENGTH_BYTES_LSB == 0 && lap_payload::BITS_MASK == !LAP);
};

/// The lap of the line at a position (lines since the window was made), where it stands in a word: bit 63 when the window goes
/// round for the first time, 0 the next time, and so on.
#[inline(always)]
pub const fn lap_of(position: u64, window_lines: u32) -> u64 {
    (!(position >> window_lines.trailing_zeros()) & 1) << f::LAP_LSB
}

/// A word as it is stored: its bits 0 to 62, and the lap as [`lap_of`] gives it.
#[inline(always)]
pub const fn stored(word: u64, lap: u64) -> u64 {
    word & !LAP | lap
}

/// A payload word as it was before it was stored: bits 0 to 62 of `stored`, and bit 63 from bit 0 of `top`.
#[inline(always)]
pub const fn restored(stored: u64, top: u64) -> u64 {
    stored & !LAP | top << f::LAP_LSB
}

/// Bit 63 of a word.
#[inline(always)]
pub const fn top(word: u64) -> u64 {
    word >> f::LAP_LSB
}

/// Lines of a message with this much payload.
#[inline]
pub const fn lines_of(length_bytes: u32) -> u32 {
    let words = length_bytes.div_ceil(WORD_BYTES as u32);
    if words <= HEAD_WORDS as u32 {
        return 1;
    }
    let rest = words - HEAD_WORDS as u32;
    1 + (rest + rest.div_ceil(GROUP_PAYLOAD_WORDS as u32)).div_ceil(WORDS_PER_LINE as u32)
}

/// Longest payload that a message of `lines` lines (at least one) carries.
#[inline]
pub const fn payload_bytes_of(lines: u32) -> u32 {
    let rest = lines as u64 - 1;
    let words = HEAD_WORDS as u64 + rest * WORDS_PER_LINE as u64 - rest.div_ceil(GROUP_LINES as u64);
    let bytes = words * WORD_BYTES as u64;
    if bytes < MAX_PAYLOAD_BYTES as u64 { bytes as u32 } else { MAX_PAYLOAD_BYTES }
}

/// Where a payload word behind the header's line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index in the message of its group's word of tops.
    pub tops: usize,
    /// Its bit there. It stands one word further behind the word of tops than this.
    pub bit: usize,
}

/// Where payload word `index` stands; `None` for one in the header's line, which is word `index + 1` of the message.
#[inline(always)]
pub const fn place(index: usize) -> Option<Place> {
    let Some(behind) = index.checked_sub(HEAD_WORDS) else { return None };
    let group = behind / GROUP_PAYLOAD_WORDS;
    let tops = WORDS_PER_LINE + group * GROUP_LINES * WORDS_PER_LINE;
    Some(Place { tops, bit: behind % GROUP_PAYLOAD_WORDS })
}

/// A decoded header of a message in a lap window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LapHeader {
    /// Payload bytes.
    pub length_bytes: u32,
    /// Bit 63 of the payload words in the header's line, bit i for payload word i.
    pub tops: u8,
    /// Epoch of the window the message was written for.
    pub epoch: u8,
}

impl LapHeader {
    /// Every bit of a header word but the lap and the tops.
    const CHECKED: u64 = !(LAP | f::TOPS_MASK << f::TOPS_LSB);

    /// Lines of the message.
    #[inline]
    pub const fn lines(&self) -> u32 {
        lines_of(self.length_bytes)
    }

    /// The word without its lap, which [`stored`] puts there.
    #[inline(always)]
    pub const fn encode(self) -> u64 {
        debug_assert!(self.length_bytes <= MAX_PAYLOAD_BYTES && self.tops as u64 <= f::TOPS_MASK);
        (self.length_bytes as u64) << f::LENGTH_BYTES_LSB
            | (self.tops as u64) << f::TOPS_LSB
            | (message_kind::DATA as u64) << f::KIND_LSB
            | (self.epoch as u64) << f::EPOCH_LSB
    }

    /// Reads a word written by a peer that is not trusted; its lap is not looked at. What it returns fits a window that takes
    /// `max_payload_bytes` and carries `epoch`.
    #[inline(always)]
    pub const fn decode(word: u64, max_payload_bytes: u32, epoch: u8) -> Result<Self, HeaderError> {
        // Length is the lowest field, so one subtraction and one comparison check all the others too.
        let plain = LapHeader { length_bytes: 0, tops: 0, epoch }.encode();
        let length_bytes = (word & Self::CHECKED).wrapping_sub(plain);
        if length_bytes > max_payload_bytes as u64 {
            return Err(Self::fault(word, max_payload_bytes, epoch));
        }
        let tops = (word >> f::TOPS_LSB & f::TOPS_MASK) as u8;
        Ok(LapHeader { length_bytes: length_bytes as u32, tops, epoch })
    }

    /// What is wrong with a word that is no header.
    #[cold]
    const fn fault(word: u64, max_payload_bytes: u32, epoch: u8) -> HeaderError {
        let reserved = f::RESERVED_MASK << f::RESERVED_LSB | f::RESERVED_HIGH_MASK << f::RESERVED_HIGH_LSB;
        let kind = (word >> f::KIND_LSB & f::KIND_MASK) as u8;
        let found = (word >> f::EPOCH_LSB & f::EPOCH_MASK) as u8;
        if word & reserved != 0 {
            HeaderError::Reserved(word)
        } else if kind != message_kind::DATA {
            HeaderError::Kind(kind)
        } else if found != epoch {
            HeaderError::Epoch { found, expected: epoch }
        } else {
            let lines = lines_of((word & f::LENGTH_BYTES_MASK) as u32);
            HeaderError::TooLong { lines, window_lines: lines_of(max_payload_bytes) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_alternate_and_begin_with_one() {
        let laps: [u64; 8] = core::array::from_fn(|position| top(lap_of(position as u64, 2)));
        assert_eq!(laps, [1, 1, 0, 0, 1, 1, 0, 0]);
        assert_eq!((lap_of(0, 1), lap_of(1, 1)), (LAP, 0));
    }

    #[test]
    fn a_word_comes_back_whatever_its_top_bit_and_the_lap() {
        for word in [0, 1, u64::MAX, LAP, !LAP, 0x8123_4567_89ab_cdef] {
            for lap in [0, LAP] {
                assert_eq!(stored(word, lap) & LAP, lap);
                assert_eq!(restored(stored(word, lap), top(word)), word);
            }
        }
    }

    #[test]
    fn a_message_is_as_long_as_its_words_and_their_tops() {
        for (words, lines) in
            [(0, 1), (7, 1), (8, 2), (14, 2), (15, 3), (70, 9), (71, 10), (77, 10), (78, 11), (133, 17)]
        {
            assert_eq!(lines_of(words * 8), lines, "{words} words");
            assert_eq!(lines_of((words * 8).saturating_sub(7)), lines, "{words} words");
        }
        for lines in 1..200 {
            let bytes = payload_bytes_of(lines);
            assert_eq!((lines_of(bytes), lines_of(bytes + 1)), (lines, lines + 1));
        }
        assert_eq!(payload_bytes_of(1 << 31), MAX_PAYLOAD_BYTES);
    }

    #[test]
    fn every_payload_word_has_a_place_of_its_own() {
        let mut next = WORDS_PER_LINE;
        assert_eq!((place(0), place(6)), (None, None));
        for index in HEAD_WORDS..500 {
            let found = place(index).expect("it is behind the header's line");
            if found.bit == 0 {
                assert_eq!(found.tops, next);
                next += 1;
            }
            assert_eq!(found.tops + 1 + found.bit, next, "payload word {index}");
            next += 1;
        }
    }

    #[test]
    fn a_header_comes_back_in_both_laps() {
        for length_bytes in [0, 1, 56, 4096, MAX_PAYLOAD_BYTES] {
            for tops in [0, 1, 0x55, 0x7f] {
                let header = LapHeader { length_bytes, tops, epoch: 0xa5 };
                for lap in [0, LAP] {
                    let word = stored(header.encode(), lap);
                    assert_eq!(LapHeader::decode(word, MAX_PAYLOAD_BYTES, 0xa5), Ok(header));
                }
            }
        }
    }

    #[test]
    fn hostile_words_are_refused() {
        let good = LapHeader { length_bytes: 120, tops: 0x7f, epoch: 1 }.encode();
        let decode = |word| LapHeader::decode(word, payload_bytes_of(2), 1);
        assert!(matches!(decode(good), Err(HeaderError::TooLong { lines: 3, window_lines: 2 })));
        assert!(matches!(decode(good | 1 << 31), Err(HeaderError::Reserved(_))));
        assert!(matches!(decode(good | 1 << 58), Err(HeaderError::Reserved(_))));
        assert!(matches!(decode(good | 1 << 62), Err(HeaderError::Reserved(_))));
        assert!(matches!(decode(0), Err(HeaderError::Kind(0))));
        assert!(matches!(decode(LAP), Err(HeaderError::Kind(0))));
        assert!(matches!(
            LapHeader::decode(good, 4096, 2),
            Err(HeaderError::Epoch { found: 1, expected: 2 })
        ));
    }
}
