//! The ordering adversary: a store port that releases stores split and permuted, within what the receiver declares
//! it bears. Deterministic for a seed, so that a failure can be run again.
//!
//! It stands where a core's write-combining buffers and a fabric with relaxed ordering would: between a sender and
//! any port. What it may do is written in [`Tolerance`]; that it never does more, and that it does something, is
//! tested here. HotOS'25 §2.5 says where real disorder comes from.

use crate::{Line, StorePort, forward_store_port, store_port_default};

/// What disorder a receiver declares it bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Lines, from the oldest line not yet complete on, inside which stores may arrive in any order; 0: none may
    /// overtake another.
    pub span_lines: u32,
    /// Whether a line that was stored whole may arrive in pieces (of whole words).
    pub split_lines: bool,
}

/// Words held at most.
const MAX_HELD: usize = 256;
/// Lines that can be stored word by word at the same time: a reservation has one, the first of its message.
const MAX_PARTIAL: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Lines since the window was made.
    position: u64,
    word: u8,
    /// Whether it was stored with the rest of its line.
    whole: bool,
    value: u64,
}

/// A line of which some words have been stored singly and others are to come.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    position: u64,
    stored: u8,
}

/// A store port in front of `P` that holds stores and releases them out of order.
///
/// It holds at most 256 words, never lets a store pass a line that is `span_lines` or more behind it and not yet
/// complete, and releases everything on [`StorePort::fence`] and, by and by, on [`StorePort::wake_receiver`] and
/// [`StorePort::progress`]. A sender that
/// leaves a line incomplete for longer than the span by itself (a message longer than the span whose header it stores
/// last) is then obeyed in order, so that nothing waits for ever.
///
/// It relies on what every sender here does: a line is stored again only after all of its words were.
#[derive(Debug)]
pub struct Adversary<P> {
    port: P,
    tolerance: Tolerance,
    random: u64,
    /// In the order in which they were stored.
    held: [Held; MAX_HELD],
    count: usize,
    partial: [Partial; MAX_PARTIAL],
    partial_count: usize,
    /// First position of which no word has been stored.
    end: u64,
    overtakings: u64,
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
            partial: [Partial::default(); MAX_PARTIAL],
            partial_count: 0,
            end: 0,
            overtakings: 0,
        }
    }

    /// How many stores have overtaken an older one so far.
    pub fn overtakings(&self) -> u64 {
        self.overtakings
    }

    /// Words held back now.
    pub fn held(&self) -> usize {
        self.count
    }

    /// The port behind.
    pub fn inner(&self) -> &P {
        &self.port
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

    /// The oldest line that the receiver cannot have whole yet: words of it are held or not even stored.
    fn frontier(&self) -> u64 {
        let held = self.held[..self.count].iter().map(|held| held.position);
        let partial = self.partial[..self.partial_count].iter().map(|partial| partial.position);
        held.chain(partial).min().unwrap_or(self.end)
    }

    /// Notes that words of `line` are stored, and says how many lines were stored before it.
    ///
    /// Line numbers come round. No line is stored again before all of its words were, so the position is the first
    /// one from the frontier on that falls on this line.
    fn note(&mut self, line: u32, words: u8) -> u64 {
        let frontier = self.frontier();
        let lines_mask = u64::from(self.port.lines()) - 1;
        let position = frontier + (u64::from(line).wrapping_sub(frontier) & lines_mask);
        self.end = self.end.max(position + 1);
        let known =
            self.partial[..self.partial_count].iter().position(|partial| partial.position == position);
        match known {
            Some(i) => {
                self.partial[i].stored |= words;
                if self.partial[i].stored == 0xff {
                    self.partial_count -= 1;
                    self.partial[i] = self.partial[self.partial_count];
                }
            }
            None if words != 0xff && self.partial_count < MAX_PARTIAL => {
                self.partial[self.partial_count] = Partial { position, stored: words };
                self.partial_count += 1;
            }
            None => {}
        }
        position
    }

    fn hold(&mut self, held: Held) {
        self.held[self.count] = held;
        self.count += 1;
    }

    /// The index of the next store to release.
    fn pick(&mut self) -> usize {
        let span = u64::from(self.tolerance.span_lines);
        if span == 0 {
            return 0;
        }
        let end = self.frontier() + span;
        let start = self.next_random() as usize % self.count;
        let eligible = |i: &usize| self.held[*i].position < end;
        let in_span = (start..self.count).find(eligible).or_else(|| (0..start).find(eligible));
        let oldest = || (0..self.count).min_by_key(|i| self.held[*i].position);
        in_span.or_else(oldest).unwrap_or(0)
    }

    fn release_one(&mut self) {
        if self.count == 0 {
            return;
        }
        let pick = self.pick();
        let chosen = self.held[pick];
        let line = (chosen.position & (u64::from(self.port.lines()) - 1)) as u32;
        if chosen.whole && !self.tolerance.split_lines {
            self.overtakings += u64::from(self.held[0].position != chosen.position);
            self.release_line(chosen.position, line);
            return;
        }
        self.overtakings += u64::from(pick > 0);
        self.held.copy_within(pick + 1..self.count, pick);
        self.count -= 1;
        self.port.store_word(line, u32::from(chosen.word), chosen.value);
    }

    /// Releases a line in one piece, as it was stored.
    fn release_line(&mut self, position: u64, line: u32) {
        let mut words = [0; 8];
        let mut kept = 0;
        for i in 0..self.count {
            let held = self.held[i];
            if held.position == position {
                words[held.word as usize] = held.value;
            } else {
                self.held[kept] = held;
                kept += 1;
            }
        }
        self.count = kept;
        self.port.store_line(line, &words);
    }

    /// Releases a random part, so that messages overlap; at least one store, so that a waiting sender's all leave.
    fn release_some(&mut self) {
        let count = 1 + self.next_random() as usize % self.count.max(1);
        for _ in 0..count {
            self.release_one();
        }
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
        while self.count + words.len() > MAX_HELD {
            self.release_one();
        }
        let position = self.note(line, 0xff);
        for (word, value) in (0..).zip(words) {
            self.hold(Held { position, word, whole: true, value: *value });
        }
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        while self.count == MAX_HELD {
            self.release_one();
        }
        let position = self.note(line, 1 << word);
        self.hold(Held { position, word: word as u8, whole: false, value });
    }

    fn fence(&mut self) {
        self.release_all();
        self.port.fence();
    }

    fn wake_receiver(&mut self) {
        self.release_some();
        self.port.wake_receiver();
    }

    fn progress(&mut self) {
        self.release_some();
        self.port.progress();
        // The receiver may sleep since it found that what is only now released was not there.
        self.port.wake_receiver();
    }

    // A payload is searched for the blank by the port behind, lines are stored one by one by this one.
    forward_store_port! { |this| this.port; hints }
    store_port_default! { composed }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    /// A receiver that knows what was stored in which order, and checks each arrival against a tolerance.
    struct Judge {
        lines: u32,
        tolerance: Tolerance,
        /// Words stored and not arrived, in order: position, word, value.
        on_the_way: VecDeque<(u64, u32, u64)>,
        line_stores: u64,
        word_stores: u64,
        fences: u64,
        /// Words that had arrived when the receiver was last woken.
        wakes_after_words: u64,
    }

    impl Judge {
        fn arrived(&mut self, line: u32, word: u32, value: u64) {
            let frontier =
                self.on_the_way.iter().map(|(position, ..)| *position).min().expect("stores on the way");
            let found = |entry: &(u64, u32, u64)| {
                entry.0 % u64::from(self.lines) == u64::from(line) && (entry.1, entry.2) == (word, value)
            };
            let index =
                self.on_the_way.iter().position(found).expect("every word arrives once, with its value");
            let (position, ..) = self.on_the_way.remove(index).expect("it was just found");
            let span = u64::from(self.tolerance.span_lines);
            let borne = if span == 0 { index == 0 } else { position < frontier + span };
            assert!(borne, "line {position} passed line {frontier}, span {span}");
        }
    }

    impl StorePort for Judge {
        fn lines(&self) -> u32 {
            self.lines
        }
        fn store_line(&mut self, line: u32, words: &Line) {
            self.line_stores += 1;
            (0..).zip(words).for_each(|(word, value)| self.arrived(line, word, *value));
        }
        fn store_word(&mut self, line: u32, word: u32, value: u64) {
            self.word_stores += 1;
            self.arrived(line, word, value);
        }
        fn fence(&mut self) {
            self.fences += 1;
        }
        fn wake_receiver(&mut self) {
            self.wakes_after_words = self.word_stores + 8 * self.line_stores;
        }
        store_port_default! { composed, hints, progress }
    }

    fn adversary(lines: u32, tolerance: Tolerance, seed: u64) -> Adversary<Judge> {
        let on_the_way = VecDeque::new();
        let judge = Judge {
            lines,
            tolerance,
            on_the_way,
            line_stores: 0,
            word_stores: 0,
            fences: 0,
            wakes_after_words: 0,
        };
        Adversary::new(judge, tolerance, seed)
    }

    fn store_line(port: &mut Adversary<Judge>, position: u64) {
        let words = core::array::from_fn(|word| position * 8 + word as u64);
        let line = (position % u64::from(port.lines())) as u32;
        (0..).zip(words).for_each(|(word, value)| port.port.on_the_way.push_back((position, word, value)));
        port.store_line(line, &words);
    }

    fn store_word(port: &mut Adversary<Judge>, position: u64, word: u32) {
        let line = (position % u64::from(port.lines())) as u32;
        port.port.on_the_way.push_back((position, word, position));
        port.store_word(line, word, position);
    }

    const SPANS: [u32; 5] = [1, 2, 8, 16, 64];

    /// Many laps of lines, as a sender stores them that waits for lines to be free.
    fn laps(tolerance: Tolerance, seed: u64) -> Adversary<Judge> {
        let mut port = adversary(32, tolerance, seed);
        for position in 0..1000 {
            let oldest =
                |port: &Adversary<Judge>| port.port.on_the_way.iter().map(|(oldest, ..)| *oldest).min();
            while oldest(&port).is_some_and(|oldest| position >= oldest + 32) {
                port.progress();
            }
            store_line(&mut port, position);
            if position % 7 == 0 {
                port.progress();
            }
        }
        port.fence();
        assert_eq!((port.held(), port.port.on_the_way.len(), port.port.fences), (0, 0, 1));
        port
    }

    #[test]
    fn it_reorders_within_the_span_and_never_beyond() {
        for seed in 0..20 {
            for span_lines in SPANS {
                for split_lines in [false, true] {
                    let port = laps(Tolerance { span_lines, split_lines }, seed);
                    let may_reorder = span_lines > 1 || split_lines;
                    assert_eq!(port.overtakings() > 100, may_reorder, "span {span_lines}, seed {seed}");
                    assert_eq!(port.port.word_stores > 0, split_lines);
                    assert_eq!(port.port.line_stores > 0, !split_lines);
                }
            }
        }
    }

    #[test]
    fn a_span_of_zero_keeps_the_order() {
        for split_lines in [false, true] {
            assert_eq!(laps(Tolerance { span_lines: 0, split_lines }, 7).overtakings(), 0);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_disorder() {
        let tolerance = Tolerance { span_lines: 8, split_lines: true };
        let counts: Vec<u64> =
            [5, 5, 6].into_iter().map(|seed| laps(tolerance, seed).overtakings()).collect();
        assert_eq!(counts[0], counts[1]);
        assert_ne!(counts[0], counts[2]);
    }

    #[test]
    fn a_header_stored_last_holds_back_what_is_a_span_ahead() {
        let tolerance = Tolerance { span_lines: 4, split_lines: true };
        for seed in 0..50 {
            let mut port = adversary(16, tolerance, seed);
            for lap in 0..20 {
                // A message of four lines, its first word last; then one line. Five lines, so starts move round.
                let start = lap * 5;
                (1..8).for_each(|word| store_word(&mut port, start, word));
                (1..4).for_each(|ahead| store_line(&mut port, start + ahead));
                // The header is not stored yet, so the judge must count it as on the way.
                port.port.on_the_way.push_back((start, 0, start));
                port.progress();
                port.store_word((start % 16) as u32, 0, start);
                store_line(&mut port, start + 4);
                while port.held() > 8 {
                    port.progress();
                }
            }
            port.fence();
            assert!(port.port.on_the_way.is_empty() && port.overtakings() > 0);
        }
    }

    #[test]
    fn a_sender_that_exceeds_the_span_itself_is_not_waited_for() {
        let mut port = adversary(64, Tolerance { span_lines: 64, split_lines: true }, 3);
        port.tolerance.span_lines = 2;
        (1..8).for_each(|word| store_word(&mut port, 0, word));
        for position in 1..60 {
            store_line(&mut port, position);
        }
        for _ in 0..600 {
            port.progress();
        }
        assert_eq!(port.held(), 0, "everything stored has left although the first line is incomplete");
        store_word(&mut port, 0, 0);
        port.progress();
        assert!(port.port.on_the_way.is_empty());
    }

    #[test]
    fn receiver_is_woken_after_every_release() {
        let mut port = adversary(8, Tolerance { span_lines: 8, split_lines: true }, 7);
        store_line(&mut port, 0);
        port.wake_receiver();
        let woken = |port: &Adversary<Judge>| port.port.wakes_after_words == port.port.word_stores;
        assert!(port.port.word_stores > 0 && woken(&port));
        while port.held() > 0 {
            port.progress();
            assert!(woken(&port), "{} words are held", port.held());
        }
        assert_eq!(port.port.word_stores, 8);
    }

    #[test]
    fn progress_always_releases_something() {
        for span_lines in SPANS {
            let mut port = adversary(2, Tolerance { span_lines, split_lines: true }, 1);
            store_line(&mut port, 0);
            store_line(&mut port, 1);
            for calls in 0.. {
                let before = port.held();
                if before == 0 {
                    break;
                }
                port.progress();
                assert!(port.held() < before, "call {calls}");
            }
        }
    }
}
