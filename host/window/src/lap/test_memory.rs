//! Memory of a lap window for tests: a replica for each receiver, none of which sees another's, so that nothing here is
//! coherent. A store reaches each replica at a time of its own, in any order.
//!
//! It checks the sender: each word is stored once a lap, with the lap, and no line is stored before every receiver has
//! counted it as free. It checks receivers: none counts a line before all of it has arrived at it.

use std::cell::RefCell;
use std::rc::Rc;

use beeline_contract_memory::{CreditSink, CreditSource, Line, ReadOnlyPort, StorePort};

/// One aligned word in flight.
#[derive(Clone, Copy, Debug)]
struct WordStore {
    position: u64,
    word: u32,
    value: u64,
}

/// What one receiver sees.
#[derive(Debug)]
struct Replica {
    words: Vec<Line>,
    /// Words of each line that have arrived since the receiver counted it as free.
    arrived: Vec<u8>,
    held: Vec<WordStore>,
    /// Where it joined, and the count that it pushed.
    start: u64,
    published: u64,
    removed: bool,
}

#[derive(Debug)]
struct State {
    /// What was stored before the last fence, which every new replica holds, and what was stored since.
    fenced: Vec<Line>,
    unfenced: Vec<WordStore>,
    /// How often each word was stored.
    stores: Vec<[u64; 8]>,
    replicas: Vec<Replica>,
    holding: bool,
}

/// The sender's port.
#[derive(Clone, Debug)]
pub struct LapMemory(Rc<RefCell<State>>);

/// A receiver's view and its credits: both ends of them.
#[derive(Clone, Debug)]
pub struct Replicated {
    memory: LapMemory,
    index: usize,
}

impl LapMemory {
    /// Returns a fresh window.
    pub fn new(lines: u32) -> Self {
        LapMemory(Rc::new(RefCell::new(State {
            fenced: vec![[0; 8]; lines as usize],
            unfenced: Vec::new(),
            stores: vec![[0; 8]; lines as usize],
            replicas: Vec::new(),
            holding: false,
        })))
    }

    /// From now on stores wait for [`Replicated::release`], at each replica.
    pub fn hold(&self) {
        self.0.borrow_mut().holding = true;
    }

    /// Adds a replica, for a receiver that joins at `start`. What was stored since the last fence has yet to arrive there.
    pub fn replica(&self, start: u64) -> Replicated {
        let mut state = self.0.borrow_mut();
        let (words, arrived) = (state.fenced.clone(), vec![0; state.fenced.len()]);
        let (held, published, removed) = (state.unfenced.clone(), 0, false);
        state.replicas.push(Replica { words, arrived, held, start, published, removed });
        Replicated { memory: self.clone(), index: state.replicas.len() - 1 }
    }

    /// Stores a word as a sender that keeps no rule.
    pub fn forge(&self, line: u32, word: u32, value: u64) {
        for replica in &mut self.0.borrow_mut().replicas {
            replica.words[line as usize][word as usize] = value;
            // Whatever a receiver makes of it, it may count the line.
            replica.arrived[line as usize] = 0xff;
        }
    }
}

impl Replica {
    fn arrive(&mut self, store: WordStore) {
        let line = store.position as usize % self.words.len();
        self.words[line][store.word as usize] = store.value;
        if store.position >= self.start {
            self.arrived[line] |= 1 << store.word;
        }
    }

    /// Lets a held store arrive, or one before it at the same word: those are never out of order.
    fn release(&mut self, index: usize) {
        let lines = self.words.len() as u64;
        let Some(WordStore { position, word, .. }) = self.held.get(index).copied() else { return };
        let is_same = |store: &WordStore| store.word == word && store.position % lines == position % lines;
        let first = self.held.iter().enumerate().filter(|(_, store)| is_same(store));
        let first = first.min_by_key(|(_, store)| store.position).map_or(index, |(first, _)| first);
        let store = self.held.swap_remove(first);
        self.arrive(store);
    }
}

impl Replicated {
    /// Stores that have not arrived here.
    pub fn held(&self) -> usize {
        self.memory.0.borrow().replicas[self.index].held.len()
    }

    /// Lets one of them arrive.
    pub fn release(&self, index: usize) {
        self.memory.0.borrow_mut().replicas[self.index].release(index);
    }

    /// The sender has removed this receiver: nobody waits for it any more.
    pub fn remove(&self) {
        self.memory.0.borrow_mut().replicas[self.index].removed = true;
    }

    /// Pushes a count as a receiver that keeps no rule.
    pub fn forge_credits(&self, freed_lines: u64) {
        self.memory.0.borrow_mut().replicas[self.index].published = freed_lines;
    }

    /// Returns the count that was pushed last.
    pub fn published(&self) -> u64 {
        self.memory.0.borrow().replicas[self.index].published
    }
}

impl StorePort for LapMemory {
    fn lines(&self) -> u32 {
        self.0.borrow().fenced.len() as u32
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        for (word, value) in (0..).zip(words) {
            self.store_word(line, word, *value);
        }
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        let mut state = self.0.borrow_mut();
        let lines = state.fenced.len() as u64;
        let lap = state.stores[line as usize][word as usize];
        let position = lap * lines + u64::from(line);
        assert_eq!(value >> 63, (lap + 1) % 2, "word {word} at position {position} has another lap");
        state.stores[line as usize][word as usize] += 1;
        let (store, holding) = (WordStore { position, word, value }, state.holding);
        if holding {
            state.unfenced.push(store);
        } else {
            state.fenced[line as usize][word as usize] = value;
        }
        for replica in state.replicas.iter_mut().filter(|replica| !replica.removed) {
            assert!(
                position < replica.start + replica.published + lines,
                "position {position} is stored, a receiver from {} on has counted {}",
                replica.start,
                replica.published
            );
            if holding {
                replica.held.push(store);
            } else {
                replica.arrive(store);
            }
        }
    }

    fn fence(&mut self) {
        let mut state = self.0.borrow_mut();
        for WordStore { position, word, value } in core::mem::take(&mut state.unfenced) {
            let line = position as usize % state.fenced.len();
            state.fenced[line][word as usize] = value;
        }
        for replica in &mut state.replicas {
            while !replica.held.is_empty() {
                replica.release(0);
            }
        }
    }

    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

impl ReadOnlyPort for Replicated {
    fn lines(&self) -> u32 {
        self.memory.lines()
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.memory.0.borrow().replicas[self.index].words[line as usize][word as usize]
    }

    fn load_tops(&mut self, line: u32) -> (u8, u64) {
        let words = self.memory.0.borrow().replicas[self.index].words[line as usize];
        ((0..8).fold(0, |tops, word| tops | ((words[word] >> 63) as u8) << word), words[0])
    }
}

impl CreditSource for Replicated {
    fn freed_lines(&mut self) -> u64 {
        self.published()
    }
}

impl CreditSink for Replicated {
    fn publish(&mut self, freed_lines: u64) {
        // A handle that is dropped because a test fails: a second panic would hide the first one.
        if std::thread::panicking() {
            return;
        }
        let mut state = self.memory.0.borrow_mut();
        let replica = &mut state.replicas[self.index];
        let lines = replica.words.len() as u64;
        assert!(freed_lines > replica.published, "{freed_lines} after {}", replica.published);
        for position in replica.start + replica.published..replica.start + freed_lines {
            let arrived = &mut replica.arrived[(position % lines) as usize];
            assert_eq!(*arrived, 0xff, "position {position} is counted before all of it arrived");
            *arrived = 0;
        }
        replica.published = freed_lines;
    }
}
