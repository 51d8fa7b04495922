//! What a side says, as one line: in which order its words are stored and loaded, and what is read of them.
//!
//! Every word carries the incarnation that says it, and within one incarnation no word but the beat ever takes another value once
//! it is not zero. So words that were stored at different times need no lock and no second look: those of two incarnations are
//! told apart, and those of one agree.

use beeline_contract_memory::Line;
use beeline_spec::formats::{LINK_SIDE_FORMAT, link_side, said};

const WORDS: usize = 8;

const BEAT: usize = link_side::BEAT_OFFSET / WORDS;
const ACCEPTED: usize = link_side::ACCEPTED_OFFSET / WORDS;
const DECLARED_DOWN: usize = link_side::DECLARED_DOWN_OFFSET / WORDS;
const DECLARED: usize = link_side::DECLARED_OFFSET / WORDS;
const FORMAT: usize = link_side::FORMAT_OFFSET / WORDS;
const DISABLED: usize = link_side::DISABLED_OFFSET / WORDS;

/// The beat of a side that has left.
pub(crate) const LEFT: u32 = 0;

/// A line, decoded. No field has been checked, but that one incarnation says all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) incarnation: u32,
    pub(crate) beat: u32,
    pub(crate) accepted: u32,
    pub(crate) declared_down: u32,
    pub(crate) declared: u32,
    pub(crate) is_disabled: bool,
}

impl Said {
    pub(crate) fn encode(&self) -> Line {
        let say = |value: u32| u64::from(self.incarnation) << said::INCARNATION_LSB | u64::from(value);
        let mut line = [0; WORDS];
        line[BEAT] = say(self.beat);
        line[ACCEPTED] = say(self.accepted);
        line[DECLARED_DOWN] = say(self.declared_down);
        line[DECLARED] = say(self.declared);
        line[FORMAT] = say(LINK_SIDE_FORMAT as u32);
        line[DISABLED] = say(u32::from(self.is_disabled));
        line
    }

    /// `None`: nobody has come yet, the words are of different incarnations, or this is no such line.
    pub(crate) fn decode(line: &Line) -> Option<Self> {
        let incarnation = incarnation_of(line[BEAT]);
        let value = |at: usize| (incarnation_of(line[at]) == incarnation).then_some(line[at] as u32);
        if incarnation == 0 || value(FORMAT)? != LINK_SIDE_FORMAT as u32 {
            return None;
        }
        Some(Said {
            incarnation,
            beat: line[BEAT] as u32,
            accepted: value(ACCEPTED)?,
            declared_down: value(DECLARED_DOWN)?,
            declared: value(DECLARED)?,
            // Whatever else stands there is no leave to bring the link up.
            is_disabled: value(DISABLED)? != 0,
        })
    }
}

fn incarnation_of(word: u64) -> u32 {
    (word >> said::INCARNATION_LSB) as u32
}

/// The beat that follows; 0 is none.
pub(crate) fn next_beat(beat: u32) -> u32 {
    beat.checked_add(1).unwrap_or(1)
}

/// Whether `beat` is later than `than`, less than half of all beats away.
pub(crate) fn is_later(beat: u32, than: u32) -> bool {
    beat.wrapping_sub(than).cast_signed() > 0
}

/// The words of a line in memory that another side loads or stores.
pub(crate) trait LineWords {
    /// Relaxed.
    fn store(&self, at: usize, word: u64);
    /// Release: pairs with [`LineWords::load_acquire`].
    fn store_release(&self, at: usize, word: u64);
    /// Relaxed.
    fn load(&self, at: usize) -> u64;
    /// Acquire: pairs with [`LineWords::store_release`].
    fn load_acquire(&self, at: usize) -> u64;
}

/// Whoever sees the beat sees what was said with it, or what was said later.
pub(crate) fn store_line(words: &impl LineWords, line: &Line) {
    for (at, word) in line.iter().enumerate().skip(1) {
        words.store(at, *word);
    }
    words.store_release(BEAT, line[BEAT]);
}

/// The beat, and words no older than it.
pub(crate) fn load_line(words: &impl LineWords) -> Line {
    let mut line = [0; WORDS];
    line[BEAT] = words.load_acquire(BEAT);
    for (at, word) in line.iter_mut().enumerate().skip(1) {
        *word = words.load(at);
    }
    line
}

#[cfg(test)]
#[cfg(loom)]
#[path = "line_loom.rs"]
mod loom_models;

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const SAID: Said = Said {
        incarnation: 7,
        beat: 3,
        accepted: 9,
        declared_down: 2,
        declared: 0x0003_0001,
        is_disabled: true,
    };

    #[test]
    fn line_comes_back_and_words_of_two_incarnations_are_not_read() {
        let line = SAID.encode();
        assert_eq!(Said::decode(&line), Some(SAID));
        assert_eq!(line[0], 7 << 32 | 3, "the layout that the other side knows");
        for at in 0..6 {
            let mut torn = line;
            torn[at] ^= 1 << 40;
            assert_eq!(Said::decode(&torn), None, "word {at}");
        }
        assert_eq!(Said::decode(&[0; 8]), None);
        assert_eq!(Said::decode(&Said { incarnation: 0, ..SAID }.encode()), None);
        let mut foreign = line;
        foreign[FORMAT] ^= 1;
        assert_eq!(Said::decode(&foreign), None);
    }

    #[test]
    fn beats_go_round_without_a_zero() {
        assert_eq!((next_beat(0), next_beat(u32::MAX)), (1, 1));
        assert!(is_later(1, u32::MAX) && !is_later(u32::MAX, 1));
        assert!(is_later(5, 4) && !is_later(4, 4) && !is_later(4, 5));
        assert!(!is_later(1 << 31, 0), "as far back as ahead");
    }
}
