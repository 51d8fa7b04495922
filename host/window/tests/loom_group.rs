//! The way in groups: eight lines that are tested, read and made free together, in every interleaving with their sender. Run
//! with `RUSTFLAGS="--cfg loom" cargo test -p beeline-window --test loom_group --release --target-dir target/loom`.
//!
//! A window of one group, of which two lines are modelled, header and first payload word, as relaxed atomics. The
//! six between them always hold a message of their own, so that the group has arrived when those two have.
#![cfg(loom)]

use beeline_contract_memory::{
    CreditSink, CreditSource, GROUP_LINES, Line, LoadPort, StorePort, store_port_default,
};
use beeline_spec::{Header, Kind};
use beeline_window::{Receiver, Sent, WindowConfig, Writer};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

const BLANK: u64 = 0x8000_0000_0000_0001;
const WORDS: [u32; 2] = [0, 1];
const LINES: [u32; 2] = [0, GROUP_LINES - 1];
/// Messages sent: once round, and the first line again.
const MESSAGES: u64 = GROUP_LINES as u64 + 1;

struct Memory {
    words: [[AtomicU64; WORDS.len()]; LINES.len()],
    freed_lines: AtomicU64,
    /// Written when the window's first line is made free for the first time, read when it is stored again: loom fails unless the
    /// one happens before the other.
    freed: UnsafeCell<()>,
}

/// What holds, and which a test takes out.
#[derive(Clone, Copy)]
struct Rules {
    /// How the receiver stores its credits.
    credits: Ordering,
    /// Whether a group has arrived once the first words of its lines are there.
    headers_only: bool,
}

const ALL_RULES: Rules = Rules { credits: Ordering::Release, headers_only: false };

/// One end's view.
struct End {
    memory: Arc<Memory>,
    rules: Rules,
    /// How often this end was at the window's first line, to store it or to make it free.
    laps: u64,
}

impl End {
    fn word(&self, line: u32, word: u32) -> Option<&AtomicU64> {
        let line = LINES.iter().position(|modelled| *modelled == line)?;
        let word = WORDS.iter().position(|modelled| *modelled == word)?;
        Some(&self.memory.words[line][word])
    }
}

impl StorePort for End {
    fn lines(&self) -> u32 {
        GROUP_LINES
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        (0..).zip(words).for_each(|(word, value)| self.store_word(line, word, *value));
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        let Some(stored) = self.word(line, word) else { return };
        // Relaxed: nothing orders a payload store.
        stored.store(value, Ordering::Relaxed);
        if (line, word) == (0, 1) {
            if self.laps == 1 {
                self.memory.freed.with(|_| ());
            }
            self.laps += 1;
        }
    }

    fn fence(&mut self) {}

    store_port_default! { composed, hints, wake_receiver, progress }
}

impl LoadPort for End {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        GROUP_LINES
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        match (self.word(line, word), word) {
            // Relaxed: what is not blank has arrived, and nothing else is inferred from it.
            (Some(stored), _) => stored.load(Ordering::Relaxed),
            (None, 0) => Header::new(Kind::Data, 8, 0).encode(),
            (None, 1) if !LINES.contains(&line) => payload(u64::from(line)),
            (None, _) => 0,
        }
    }

    fn load_line(&mut self, line: u32) -> Line {
        std::array::from_fn(|word| self.load_word(line, word as u32))
    }

    fn arrived_group(&mut self, first_line: u32, blank: u64) -> bool {
        let lines = first_line..first_line + GROUP_LINES;
        let words = if self.rules.headers_only { 1 } else { 8 };
        lines.rev().all(|line| (0..words).all(|word| self.load_word(line, word) != blank))
    }

    fn blank_line(&mut self, line: u32, blank: u64) {
        for word in WORDS {
            if let Some(stored) = self.word(line, word) {
                stored.store(blank, Ordering::Relaxed);
            }
        }
        if line == 0 {
            if self.laps == 0 {
                self.memory.freed.with_mut(|_| ());
            }
            self.laps += 1;
        }
    }
}

impl CreditSource for End {
    fn freed_lines(&mut self) -> u64 {
        self.memory.freed_lines.load(Ordering::Acquire)
    }
}

impl CreditSink for End {
    fn publish(&mut self, freed_lines: u64) {
        // Release (unless the test takes it out): pairs with `freed_lines`.
        self.memory.freed_lines.store(freed_lines, self.rules.credits);
    }
}

fn payload(number: u64) -> u64 {
    0x100 + number
}

/// Takes what is left to take of `MESSAGES`: the lines that are not modelled would give messages for ever. Returns how many
/// there were.
fn take(receiver: &mut Receiver<End, End>, next: &mut u64) -> u64 {
    let before = *next;
    let taken = receiver.drain((MESSAGES - before) as usize, |message| {
        assert_eq!((message.len(), message.word(0)), (8, payload(*next)), "message {next}");
        *next += 1;
    });
    assert_eq!(taken.expect("an honest sender") as u64, *next - before);
    *next - before
}

/// A sender of [`MESSAGES`] against a receiver in bulk, in every interleaving; gives how often a whole group was taken at once.
/// Everything is tried once and then finished alone, so that no thread spins.
fn stream(rules: Rules) -> u64 {
    let groups = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&groups);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        let memory = Arc::new(Memory {
            words: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(BLANK))),
            freed_lines: AtomicU64::new(0),
            freed: UnsafeCell::new(()),
        });
        let end = |memory: &Arc<Memory>| End { memory: Arc::clone(memory), rules, laps: 0 };
        let config = WindowConfig::blank(BLANK, 0);
        let mut writer = Writer::new(end(&memory), end(&memory), config);
        let mut send = move |number: u64| writer.try_send(&payload(number).to_le_bytes());
        let sender = loom::thread::spawn(move || {
            for number in 0..MESSAGES - 1 {
                assert_eq!(send(number), Ok(Sent::Sent), "a window takes as many lines as it has");
            }
            let last = send(MESSAGES - 1).expect("an honest receiver");
            (send, last)
        });
        let mut receiver = Receiver::new(end(&memory), end(&memory), config);
        let mut next = 0;
        if take(&mut receiver, &mut next) >= u64::from(GROUP_LINES) {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        let (mut send, last) = sender.join().expect("the sender does not panic");
        take(&mut receiver, &mut next);
        if last == Sent::Full {
            assert_eq!(send(MESSAGES - 1), Ok(Sent::Sent), "every line was freed");
            take(&mut receiver, &mut next);
        }
        assert_eq!(next, MESSAGES);
    });
    groups.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn group_comes_out_whole_and_its_lines_are_reused() {
    assert!(stream(ALL_RULES) > 0, "no interleaving took a group");
}

#[test]
#[should_panic(expected = "message")]
fn without_the_test_of_all_words_loom_fails() {
    stream(Rules { headers_only: true, ..ALL_RULES });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn with_relaxed_credits_loom_fails() {
    stream(Rules { credits: Ordering::Relaxed, ..ALL_RULES });
}
