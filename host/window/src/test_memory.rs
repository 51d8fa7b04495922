//! A window for tests, in plain local memory, that checks both ends: every word is stored once a lap and never over
//! a line that is not free; a line is freed only when all of it has arrived; credits follow the freeing.
//!
//! Stores can be held back and released in any order, and lost from some point on as when their sender is killed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use beeline_contract_memory::{
    CreditSink, CreditSource, GROUP_LINES, HeaderPort, Line, LoadPort, SplitHeaders, StorePort,
};

/// One aligned word in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordStore {
    pub line: u32,
    pub word: u32,
    pub value: u64,
}

#[derive(Debug)]
struct State {
    blank: u64,
    words: Vec<Line>,
    /// Words stored since their line was freed, and those of them that arrived: bit i for word i.
    issued: Vec<u8>,
    arrived: Vec<u8>,
    holding: bool,
    held: VecDeque<WordStore>,
    issued_words: u64,
    /// Stores from this one on are lost.
    killed_at: Option<u64>,
    fences: u64,
    freed_lines: u64,
    published: u64,
    publications: u64,
    groups_looked_at: u64,
    words_loaded: u64,
}

/// The window and its credit word; clones are the two ends.
#[derive(Clone, Debug)]
pub struct TestWindow(Rc<RefCell<State>>);

impl TestWindow {
    /// Returns a window of `lines` lines, each word of which is `blank`.
    pub fn new(lines: u32, blank: u64) -> Self {
        TestWindow(Rc::new(RefCell::new(State {
            blank,
            words: vec![[blank; 8]; lines as usize],
            issued: vec![0; lines as usize],
            arrived: vec![0; lines as usize],
            holding: false,
            held: VecDeque::new(),
            issued_words: 0,
            killed_at: None,
            fences: 0,
            freed_lines: 0,
            published: 0,
            publications: 0,
            groups_looked_at: 0,
            words_loaded: 0,
        })))
    }

    /// How often it was asked whether a group of lines had arrived.
    pub fn groups_looked_at(&self) -> u64 {
        self.0.borrow().groups_looked_at
    }

    /// Calls of `load_word` so far: what a walk over the records of a batch costs.
    pub fn words_loaded(&self) -> u64 {
        self.0.borrow().words_loaded
    }

    /// From now on stores wait for [`TestWindow::release`].
    pub fn hold(&self) {
        self.0.borrow_mut().holding = true;
    }

    /// Stores that wait.
    pub fn held(&self) -> usize {
        self.0.borrow().held.len()
    }

    /// Takes a waiting store out; the caller decides what becomes of it.
    pub fn take(&self, index: usize) -> Option<WordStore> {
        self.0.borrow_mut().held.remove(index)
    }

    /// Lets a waiting store arrive.
    pub fn release(&self, index: usize) {
        if let Some(store) = self.take(index) {
            self.0.borrow_mut().arrive(store);
        }
    }

    /// Whether a store into this line waits.
    pub fn holds_line(&self, line: u32) -> bool {
        self.0.borrow().held.iter().any(|store| store.line == line)
    }

    /// The word that was stored here last, also if it has not arrived.
    pub fn issued_word(&self, line: u32, word: u32) -> u64 {
        let state = self.0.borrow();
        let held = state.held.iter().rev().find(|store| (store.line, store.word) == (line, word));
        held.map_or(state.words[line as usize][word as usize], |store| store.value)
    }

    /// Loses every store from the `count`th word on.
    pub fn kill_after(&self, count: u64) {
        self.0.borrow_mut().killed_at = Some(count);
    }

    /// Words stored so far, lost ones included.
    pub fn issued_words(&self) -> u64 {
        self.0.borrow().issued_words
    }

    /// Words that have arrived and are not freed.
    pub fn arrived_words(&self) -> u64 {
        self.0.borrow().arrived.iter().map(|mask| u64::from(mask.count_ones())).sum()
    }

    /// Returns how often the sender fenced.
    pub fn fences(&self) -> u64 {
        self.0.borrow().fences
    }

    /// Returns how often a credit was pushed.
    pub fn publications(&self) -> u64 {
        self.0.borrow().publications
    }

    /// Returns the credit that was pushed last, in lines.
    pub fn published(&self) -> u64 {
        self.0.borrow().published
    }

    /// Writes a word as a peer that keeps no rule.
    pub fn forge(&self, line: u32, word: u32, value: u64) {
        let mut state = self.0.borrow_mut();
        state.words[line as usize][word as usize] = value;
        state.issued[line as usize] |= 1 << word;
        state.arrived[line as usize] |= 1 << word;
    }

    /// Pushes a count of freed lines as a receiver that keeps no rule.
    pub fn forge_credits(&self, freed_lines: u64) {
        self.0.borrow_mut().published = freed_lines;
    }
}

impl State {
    fn issue(&mut self, store: WordStore) {
        let number = self.issued_words;
        self.issued_words += 1;
        let bit = 1u8 << store.word;
        let issued = &mut self.issued[store.line as usize];
        assert_eq!(*issued & bit, 0, "{store:?}: stored over a word that is not free");
        *issued |= bit;
        assert_ne!(store.value, self.blank, "{store:?}: a blank was stored");
        if self.killed_at.is_some_and(|killed_at| number >= killed_at) {
            return;
        }
        if self.holding {
            self.held.push_back(store);
        } else {
            self.arrive(store);
        }
    }

    fn arrive(&mut self, store: WordStore) {
        self.words[store.line as usize][store.word as usize] = store.value;
        self.arrived[store.line as usize] |= 1 << store.word;
    }
}

impl StorePort for TestWindow {
    fn lines(&self) -> u32 {
        self.0.borrow().words.len() as u32
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        for (word, value) in (0..).zip(words) {
            self.store_word(line, word, *value);
        }
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.0.borrow_mut().issue(WordStore { line, word, value });
    }

    fn fence(&mut self) {
        let mut state = self.0.borrow_mut();
        state.fences += 1;
        while let Some(store) = state.held.pop_front() {
            state.arrive(store);
        }
    }

    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

impl LoadPort for TestWindow {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        StorePort::lines(self)
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        let mut state = self.0.borrow_mut();
        state.words_loaded += 1;
        state.words[line as usize][word as usize]
    }

    fn load_line(&mut self, line: u32) -> Line {
        self.0.borrow().words[line as usize]
    }

    fn arrived_group(&mut self, first_line: u32, blank: u64) -> bool {
        self.0.borrow_mut().groups_looked_at += 1;
        (first_line..first_line + GROUP_LINES).all(|line| self.arrived_words(line, blank) == 0xff)
    }

    fn blank_line(&mut self, line: u32, blank: u64) {
        let mut state = self.0.borrow_mut();
        assert_eq!(state.arrived[line as usize], 0xff, "line {line} is freed before all of it arrived");
        state.words[line as usize] = [blank; 8];
        state.arrived[line as usize] = 0;
        state.issued[line as usize] = 0;
        state.freed_lines += 1;
    }
}

impl HeaderPort for TestWindow {
    fn load_header(&self, line: u32) -> u64 {
        self.load_word(line, 0)
    }
}

impl SplitHeaders for TestWindow {
    type Headers = TestWindow;

    fn headers(&self) -> TestWindow {
        self.clone()
    }
}

impl CreditSource for TestWindow {
    fn freed_lines(&mut self) -> u64 {
        self.0.borrow().published
    }
}

impl CreditSink for TestWindow {
    fn publish(&mut self, freed_lines: u64) {
        let mut state = self.0.borrow_mut();
        assert!(
            freed_lines <= state.freed_lines,
            "credits for {freed_lines} lines, {} are blank",
            state.freed_lines
        );
        state.published = freed_lines;
        state.publications += 1;
    }
}

/// The credits of an observed window: there is no memory to re-blank, so publishing a credit is what frees a line.
#[derive(Clone, Debug)]
pub struct ObservedCredits(pub TestWindow);

impl CreditSink for ObservedCredits {
    fn publish(&mut self, freed_lines: u64) {
        let mut state = self.0.0.borrow_mut();
        let lines = state.words.len() as u64;
        assert!(freed_lines >= state.published && freed_lines - state.published <= lines);
        for position in state.published..freed_lines {
            let line = (position % lines) as usize;
            assert_eq!(state.issued[line], 0xff, "line {line} is freed before all of it was stored");
            state.issued[line] = 0;
        }
        state.published = freed_lines;
        state.publications += 1;
    }
}
