//! Lap windows one end of which is an attacker's: memory that changes under a receiver, and a port that holds a sender to its
//! lines and laps.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use arbitrary::Arbitrary;
use beeline_contract_memory::{CreditSink, Line, ReadOnlyPort, StorePort};
use beeline_spec::lap::{LapHeader, lap_of, stored};

use crate::Word;

/// A word as an attacker would choose it, without its lap.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum LapWord {
    /// A header that is well formed.
    Header {
        length_bytes: u16,
        tops: u8,
    },
    /// A header of another epoch, or with a bit of anything else changed.
    Near {
        length_bytes: u16,
        epoch: u8,
        bit: u8,
    },
    Other(Word),
}

impl LapWord {
    /// The word; a header is of `epoch`.
    pub fn value(self, epoch: u8) -> u64 {
        let header = |length_bytes: u16, tops: u8, epoch| {
            // Lengths that mostly fit the small windows used here.
            LapHeader { length_bytes: u32::from(length_bytes % 2048), tops: tops & 0x7f, epoch }.encode()
        };
        match self {
            LapWord::Header { length_bytes, tops } => header(length_bytes, tops, epoch),
            LapWord::Near { length_bytes, epoch, bit } => header(length_bytes, 0, epoch) ^ 1 << (bit % 63),
            LapWord::Other(word) => word.value(),
        }
    }
}

/// A word that a hostile sender stores while a receiver reads.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct LapStore {
    /// It happens before so many more loads have been made.
    pub after_loads: u8,
    /// Line, modulo the window's lines.
    pub line: u8,
    /// Word, modulo 8.
    pub word: u8,
    pub value: LapWord,
    /// Whether bit 63 is set.
    pub lap: bool,
}

/// The memory of a lap window whose sender keeps no rule. An access outside it panics.
#[derive(Clone, Debug)]
pub struct HostileLaps(Rc<RefCell<Memory>>);

#[derive(Debug)]
struct Memory {
    words: Vec<Line>,
    /// Words of each line that had lap 0, and lap 1, at any time since the receiver was given the line last.
    had: Vec<[u8; 2]>,
    epoch: u8,
    /// Stores to come, each counted from the one before it.
    to_come: VecDeque<LapStore>,
}

impl HostileLaps {
    /// Memory of `lines` lines, all zero.
    pub fn new(lines: u32, epoch: u8) -> Self {
        let (words, had) = (vec![[0; 8]; lines as usize], vec![[0xff, 0]; lines as usize]);
        HostileLaps(Rc::new(RefCell::new(Memory { words, had, epoch, to_come: VecDeque::new() })))
    }

    /// Lets these stores happen as the receiver loads.
    pub fn schedule(&self, stores: impl IntoIterator<Item = LapStore>) {
        self.0.borrow_mut().to_come.extend(stores);
    }

    /// Stores whole lines of consecutive words at once, from `start` on, with the laps that are due there; the word of index
    /// `missing` stays as it was.
    pub fn store_words(&self, start: u64, words: &[u64], missing: Option<usize>) {
        let mut memory = self.0.borrow_mut();
        let lines = memory.words.len() as u32;
        for (position, words) in (start..).zip(words.chunks_exact(8)) {
            let (lap, line) = (lap_of(position, lines), (position % u64::from(lines)) as usize);
            for (word, value) in words.iter().enumerate() {
                if missing != Some((position - start) as usize * 8 + word) {
                    memory.store(line, word, stored(*value, lap));
                }
            }
        }
    }

    /// The receiver was given the lines from `position` on: every word of them has had the lap that is due there.
    pub fn given(&self, position: u64, given: u64) {
        let memory = &mut *self.0.borrow_mut();
        let lines = memory.words.len() as u32;
        for position in position..position + given {
            let (lap, line) = (lap_of(position, lines) >> 63, (position % u64::from(lines)) as usize);
            assert_eq!(memory.had[line][lap as usize], 0xff, "the line at {position} has not arrived");
            let tops = tops_of(&memory.words[line]);
            memory.had[line] = [!tops, tops];
        }
    }
}

/// Bit 63 of the words, bit i for word i.
fn tops_of(words: &Line) -> u8 {
    (0..8).fold(0, |tops, word| tops | ((words[word] >> 63) as u8) << word)
}

impl Memory {
    fn store(&mut self, line: usize, word: usize, value: u64) {
        self.words[line][word] = value;
        self.had[line][(value >> 63) as usize] |= 1 << word;
    }

    /// One load is made: what is due happens before it.
    fn turn(&mut self) {
        while let Some(next) = self.to_come.front_mut() {
            if next.after_loads > 0 {
                next.after_loads -= 1;
                return;
            }
            if let Some(LapStore { line, word, value, lap, .. }) = self.to_come.pop_front() {
                let value = stored(value.value(self.epoch), u64::from(lap) << 63);
                self.store(usize::from(line) % self.words.len(), usize::from(word % 8), value);
            }
        }
    }
}

impl ReadOnlyPort for HostileLaps {
    fn lines(&self) -> u32 {
        self.0.borrow().words.len() as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        let mut memory = self.0.borrow_mut();
        memory.turn();
        memory.words[line as usize][word as usize]
    }

    fn load_tops(&mut self, line: u32) -> (u8, u64) {
        let mut memory = self.0.borrow_mut();
        memory.turn();
        let words = memory.words[line as usize];
        (tops_of(&words), words[0])
    }
}

/// Credits as a receiver pushes them: each more than the one before, and none for lines that nobody was given.
#[derive(Debug)]
pub struct CheckedCounts {
    given_lines: Rc<Cell<u64>>,
    published: u64,
}

impl CheckedCounts {
    /// `given_lines` counts the lines of messages that the receiver has given out.
    pub fn new(given_lines: Rc<Cell<u64>>) -> Self {
        CheckedCounts { given_lines, published: 0 }
    }
}

impl CreditSink for CheckedCounts {
    fn publish(&mut self, freed_lines: u64) {
        assert!(freed_lines > self.published, "credits ran backwards, or nowhere");
        assert!(freed_lines <= self.given_lines.get(), "credits for lines that nobody was given");
        self.published = freed_lines;
    }
}

/// A lap window's memory as its sender sees it. A store that is not of the next whole line, or without its lap, panics.
#[derive(Debug)]
pub struct CountedLaps {
    pub lines: u32,
    /// Lines stored.
    pub stored: u64,
}

impl StorePort for CountedLaps {
    fn lines(&self) -> u32 {
        self.lines
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        assert_eq!(u64::from(line), self.stored % u64::from(self.lines), "lines are stored in order");
        let lap = lap_of(self.stored, self.lines);
        assert!(words.iter().all(|word| word & 1 << 63 == lap), "a word of another lap");
        self.stored += 1;
    }

    fn store_word(&mut self, line: u32, word: u32, _: u64) {
        panic!("word {word} of line {line} is stored alone");
    }

    fn fence(&mut self) {}

    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}
