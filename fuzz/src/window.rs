//! Windows one end of which is an attacker's: memory that changes under its reader, and a port that counts stores.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use arbitrary::Arbitrary;
use beeline_contract_memory::{CreditSink, CreditSource, Line, LoadPort, StorePort};

use crate::{BLANK, Word};

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

    /// Stores consecutive words at once, from the start of the line at `position`.
    pub fn store_words(&self, position: u64, words: &[u64]) {
        let mut memory = self.0.borrow_mut();
        let lines = memory.words.len() as u64;
        for (position, words) in (position..).zip(words.chunks_exact(8)) {
            memory.words[(position % lines) as usize].copy_from_slice(words);
        }
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
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        self.0.borrow().words.len() as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
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

/// A window that counts words; a store outside it, or of a blank, panics.
#[derive(Debug)]
pub struct CountedWindow {
    pub lines: u32,
    /// Whether it is an observed one, in which the blank is a word like any other.
    pub observed: bool,
    /// Words stored.
    pub words: u64,
}

impl StorePort for CountedWindow {
    fn lines(&self) -> u32 {
        self.lines
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        (0..).zip(words).for_each(|(word, value)| self.store_word(line, word, *value));
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        assert!(line < self.lines && word < 8, "a store outside the window");
        assert!(self.observed || value != BLANK, "a blank was stored");
        self.words += 1;
    }

    fn fence(&mut self) {}

    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

/// Credits as somebody else pushes them.
#[derive(Debug)]
pub struct Pushed(pub Rc<Cell<u64>>);

impl CreditSource for Pushed {
    fn freed_lines(&mut self) -> u64 {
        self.0.get()
    }
}
