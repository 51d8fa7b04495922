//! What several fuzz targets share: the words a stranger would try, and memory that a stranger changes under a reader.
//!
//! Random bytes almost never look like a header, a link or a blank, so structures that only near misses reach would go
//! untouched; [`Word`] makes such words likely and still allows every other one. Not here: what each target checks.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use arbitrary::Arbitrary;
use beeline_link_contract::{CreditSink, Line, LoadPort};
use beeline_spec::formats::{batch_record, header, link};

pub mod device;
/// The window that the tests of `host/window` use: it checks both ends.
#[rustfmt::skip]
#[path = "../../host/window/src/test_memory.rs"]
pub mod test_memory;
/// The link without a device that the tests of `host/driver` use.
#[rustfmt::skip]
#[path = "../../host/driver/tests/support/scripted.rs"]
pub mod scripted;

/// The blank of every blank window here.
pub const BLANK: u64 = 1 << 63 | 0x0123_4567_89ab_cdef;

/// A word as a stranger would choose it.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Word {
    /// A header of epoch 0, well formed if its kind is.
    Header { kind: u8, length_bytes: u16, escape_last: u8 },
    /// A header with every field as it comes.
    WildHeader { kind: u8, length_bytes: u32, escape_last: u32, epoch: u8 },
    /// The blank.
    Blank,
    /// A value near the blank.
    NearBlank(i8),
    /// A link to an earlier word.
    Link(u8),
    /// Four record prefixes of a batch.
    Records([u8; 4]),
    /// Header of a received frame, or a completion: a length, and bits that say "valid".
    Mark { length_bytes: u16, flags: u8 },
    /// A small count.
    Count(u16),
    /// Anything.
    Any(u64),
}

impl Word {
    /// The word.
    pub fn value(self) -> u64 {
        match self {
            Word::Header { kind, length_bytes, escape_last } => {
                // Four kinds, of which three are known, and lengths that mostly fit the small windows used here.
                u64::from(kind % 4) << header::KIND_LSB
                    | u64::from(length_bytes % 640) << header::LENGTH_BYTES_LSB
                    | u64::from(escape_last) << header::ESCAPE_LAST_LSB
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
            Word::Mark { length_bytes, flags } => u64::from(length_bytes) | u64::from(flags) << 32,
            Word::Count(count) => count.into(),
            Word::Any(word) => word,
        }
    }
}

/// A word that a hostile sender stores while its receiver reads.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Store {
    /// It happens before so many more loads have been made.
    pub after_loads: u8,
    /// Line, modulo the window's lines.
    pub line: u8,
    /// Word, modulo 8.
    pub word: u8,
    /// What is stored.
    pub value: Word,
}

/// The memory of a window whose sender keeps no rule; clones share it. An access outside it panics.
#[derive(Clone, Debug)]
pub struct HostileMemory(Rc<RefCell<Memory>>);

#[derive(Debug)]
struct Memory {
    words: Vec<Line>,
    /// Stores to come, each counted from the one before it.
    to_come: VecDeque<Store>,
    freed_lines: u64,
}

impl HostileMemory {
    /// A blank window of `lines` lines.
    pub fn new(lines: u32) -> Self {
        let words = vec![[BLANK; 8]; lines as usize];
        HostileMemory(Rc::new(RefCell::new(Memory { words, to_come: VecDeque::new(), freed_lines: 0 })))
    }

    /// Lets these stores happen as the receiver loads.
    pub fn schedule(&self, stores: impl IntoIterator<Item = Store>) {
        self.0.borrow_mut().to_come.extend(stores);
    }

    /// Lines that the receiver has made blank again.
    pub fn freed_lines(&self) -> u64 {
        self.0.borrow().freed_lines
    }
}

impl Memory {
    fn store(&mut self, store: Store) {
        let line = usize::from(store.line) % self.words.len();
        self.words[line][usize::from(store.word % 8)] = store.value.value();
    }

    /// One load is made: what is due happens before it.
    fn turn(&mut self) {
        while let Some(next) = self.to_come.front_mut() {
            if next.after_loads > 0 {
                next.after_loads -= 1;
                return;
            }
            if let Some(due) = self.to_come.pop_front() {
                self.store(due);
            }
        }
    }
}

impl LoadPort for HostileMemory {
    fn lines(&self) -> u32 {
        self.0.borrow().words.len() as u32
    }

    fn load_word(&mut self, line: u32, word: u32) -> u64 {
        let mut memory = self.0.borrow_mut();
        memory.turn();
        memory.words[line as usize][word as usize]
    }

    fn load_line(&mut self, line: u32) -> Line {
        let mut memory = self.0.borrow_mut();
        memory.turn();
        memory.words[line as usize]
    }

    fn blank_line(&mut self, line: u32, blank: u64) {
        let mut memory = self.0.borrow_mut();
        memory.words[line as usize] = [blank; 8];
        memory.freed_lines += 1;
    }
}

/// Credits as a receiver pushes them: they never run backwards and never ahead of what was freed.
#[derive(Debug)]
pub struct CheckedCredits {
    memory: HostileMemory,
    published: u64,
}

impl CheckedCredits {
    /// The credits of this window.
    pub fn of(memory: &HostileMemory) -> Self {
        CheckedCredits { memory: memory.clone(), published: 0 }
    }
}

impl CreditSink for CheckedCredits {
    fn publish(&mut self, freed_lines: u64) {
        assert!(freed_lines >= self.published, "credits ran backwards");
        assert!(freed_lines <= self.memory.freed_lines(), "credits for lines that are not free");
        self.published = freed_lines;
    }
}
