//! The ordering adversary: a store port that releases stores split and permuted, within what the receiver declares
//! it bears. Deterministic for a seed, so that a failure can be run again.

use crate::{Line, StorePort};

/// What disorder a receiver declares it bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Lines, from the oldest line not yet complete on, inside which stores may arrive in any order; 0: none may
    /// overtake another.
    pub span_lines: u32,
    /// Whether a line may arrive in pieces (of whole words).
    pub split_lines: bool,
}

const MAX_HELD: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Lines since the window was made, so that the span can be checked across a wrap.
    position: u64,
    word: u8,
    value: u64,
}

/// A store port in front of `P` that holds stores and releases them out of order.
///
/// It holds at most 256 words, never lets a store pass one that is `span_lines` or more behind it, and releases
/// everything on [`StorePort::fence`] and, by and by, on [`StorePort::progress`].
#[derive(Debug)]
pub struct Adversary<P> {
    port: P,
    tolerance: Tolerance,
    random: u64,
    held: [Held; MAX_HELD],
    count: usize,
    /// Position of the last store seen, to turn line numbers into positions.
    newest: u64,
    swaps: u64,
}

impl<P: StorePort> Adversary<P> {
    /// Stands in front of `port`. The same seed gives the same disorder.
    pub fn new(port: P, tolerance: Tolerance, seed: u64) -> Self {
        Adversary {
            port,
            tolerance,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            held: [Held::default(); MAX_HELD],
            count: 0,
            newest: 0,
            swaps: 0,
        }
    }

    /// How many stores have overtaken an older one so far.
    pub fn overtakings(&self) -> u64 {
        self.swaps
    }

    /// The port behind, everything held released.
    pub fn into_inner(mut self) -> P {
        self.release_all();
        self.port
    }

    fn next_random(&mut self) -> u64 {
        // xorshift64*: Vigna 2016. Enough for choosing an order, and needs no dependency in a no_std crate.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn position(&mut self, line: u32) -> u64 {
        // A sender's lines go up by messages; inside a message the header line may be stored last. So the position is
        // the one congruent to `line` that is nearest to the newest.
        let lines = u64::from(self.port.lines());
        let ahead = (u64::from(line).wrapping_sub(self.newest)) & (lines - 1);
        let position = if ahead < lines / 2 || self.newest + ahead < lines {
            self.newest + ahead
        } else {
            self.newest + ahead - lines
        };
        self.newest = self.newest.max(position);
        position
    }

    fn hold(&mut self, line: u32, word: u32, value: u64) {
        if self.count == MAX_HELD {
            self.release_one();
        }
        let position = self.position(line);
        self.held[self.count] = Held { position, word: word as u8, value };
        self.count += 1;
    }

    fn release_one(&mut self) {
        if self.count == 0 {
            return;
        }
        let oldest_line = self.held[..self.count].iter().map(|h| h.position).min().unwrap_or(0);
        let span = u64::from(self.tolerance.span_lines);
        let pick = self.next_random() as usize % self.count;
        let pick = if self.held[pick].position < oldest_line + span.max(1) && span > 0 { pick } else { 0 };
        let chosen = self.held[pick];
        self.swaps += u64::from(pick > 0);
        let lines_mask = u64::from(self.port.lines()) - 1;
        let line = (chosen.position & lines_mask) as u32;
        if !self.tolerance.split_lines && self.release_whole_line(chosen.position, line) {
            return;
        }
        self.held.copy_within(pick + 1..self.count, pick);
        self.count -= 1;
        self.port.store_word(line, u32::from(chosen.word), chosen.value);
    }

    /// Stores a line in one piece if all of its words are held.
    fn release_whole_line(&mut self, position: u64, line: u32) -> bool {
        let mut words = [0; 8];
        let mut mask = 0u8;
        for held in &self.held[..self.count] {
            if held.position == position {
                words[held.word as usize] = held.value;
                mask |= 1 << held.word;
            }
        }
        if mask != 0xff {
            return false;
        }
        let mut kept = 0;
        for i in 0..self.count {
            if self.held[i].position != position {
                self.held[kept] = self.held[i];
                kept += 1;
            }
        }
        self.count = kept;
        self.port.store_line(line, &words);
        true
    }

    fn release_all(&mut self) {
        while self.count > 0 {
            self.release_one();
        }
    }
}

impl<P: StorePort> StorePort for Adversary<P> {
    fn lines(&self) -> u32 {
        self.port.lines()
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        while self.count + 8 > MAX_HELD {
            self.release_one();
        }
        for (word, value) in words.iter().enumerate() {
            self.hold(line, word as u32, *value);
        }
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.hold(line, word, value);
    }

    fn fence(&mut self) {
        self.release_all();
        self.port.fence();
    }

    fn progress(&mut self) {
        // A random part, so that messages overlap; at least one, so that a waiting sender's stores all leave.
        let count = 1 + self.next_random() as usize % self.count.max(1);
        for _ in 0..count {
            self.release_one();
        }
        self.port.progress();
    }
}

