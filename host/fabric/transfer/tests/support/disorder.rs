//! Payloads and their flags in a segment, with an adversary between the sender's stores and its memory: lines come there in any order that a
//! memory may give them, also split into words, until a barrier.
//!
//! The adversary is that of windows (`contract/memory`), which need no barrier. A program of SISCI has one between payload and flag.

use std::cell::Cell;

use beeline_contract_memory::{Adversary, Line, StorePort, Tolerance, store_port_default};
use beeline_fabric::{SequenceStart, SequenceStatus};

use super::random::number;
use super::{Map, Sequence};

/// Lines of the segment, around which payloads and flags go.
const LINES: u32 = 64;
/// Where the receiver says how many messages it has seen: behind those lines.
pub const SEEN: usize = LINES as usize * 64;
pub const BYTES: u64 = SEEN as u64 + 64;
/// Of a message of senders that are killed.
pub const PAYLOAD_LINES: u32 = 7;

/// The memory keeps back what is at most so many lines behind.
pub fn tolerance(split_lines: bool) -> Tolerance {
    Tolerance { span_lines: 32, split_lines }
}

/// Words as the map of a segment has them; told after each store.
pub struct Stores<'a> {
    pub map: &'a Map,
    pub stored: &'a dyn Fn(),
}

impl StorePort for Stores<'_> {
    fn lines(&self) -> u32 {
        LINES
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        self.map.copy_in(line as usize * 64, words.map(u64::to_le_bytes).as_flattened()).unwrap();
        (self.stored)();
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.map.copy_in(line as usize * 64 + word as usize * 8, &value.to_le_bytes()).unwrap();
        (self.stored)();
    }

    fn fence(&mut self) {}

    fn wake_receiver(&mut self) {}

    fn progress(&mut self) {}

    store_port_default! { composed, hints }
}

/// What the payload of a message is, and behind it the line of its flag. No word of it is what was there before.
fn line_of(message: u64, line: u32) -> Line {
    std::array::from_fn(|word| message << 16 | u64::from(line) << 8 | (word as u64 + 1))
}

/// Where a message of so many lines begins.
fn first_line(message: u64, lines: u32) -> u32 {
    (message * u64::from(lines + 1) % u64::from(LINES)) as u32
}

/// Sends messages through the adversary: payload, barrier, flag.
pub struct Sender<'a> {
    pub port: Adversary<Stores<'a>>,
    pub sequence: &'a Sequence,
    pub payload_lines: u32,
    pub has_barrier: bool,
}

impl Sender<'_> {
    pub fn send(&mut self, message: u64) {
        let (_, start) = self.sequence.start();
        let first = first_line(message, self.payload_lines);
        for line in 0..self.payload_lines {
            self.port.store_line((first + line) % LINES, &line_of(message, line));
        }
        if self.has_barrier {
            self.barrier(start.unwrap());
        }
        self.port.store_line((first + self.payload_lines) % LINES, &line_of(message, self.payload_lines));
        self.barrier(start.unwrap());
    }

    /// What SCICheckSequence and SCIStoreBarrier are: nothing that comes later passes what is stored.
    fn barrier(&mut self, start: SequenceStart) {
        self.port.fence();
        assert_eq!(self.sequence.check(start), SequenceStatus::Ok);
    }
}

/// The receiver's side of the segment.
pub struct Receiver {
    pub map: Map,
    pub payload_lines: u32,
}

impl Receiver {
    fn line(&self, line: u32) -> Line {
        let mut bytes = [0; 64];
        self.map.copy_out((line % LINES) as usize * 64, &mut bytes).unwrap();
        std::array::from_fn(|word| u64::from_le_bytes(*bytes.as_chunks::<8>().0.get(word).unwrap()))
    }

    /// Whether the flag of a message is there: its last word, which may come first.
    pub fn has_flag(&self, message: u64) -> bool {
        let flag = first_line(message, self.payload_lines) + self.payload_lines;
        self.line(flag)[7] == line_of(message, self.payload_lines)[7]
    }

    pub fn is_whole(&self, message: u64) -> bool {
        let first = first_line(message, self.payload_lines);
        (0..self.payload_lines).all(|line| self.line(first + line) == line_of(message, line))
    }
}

/// How often the flag of a message was seen by a receiver's map, and how often the payload was torn then.
pub fn seen_and_torn(
    receiver: &Receiver,
    (map, sequence): (&Map, &Sequence),
    (seed, split_lines, has_barrier): (u64, bool, bool),
) -> (u32, u32) {
    let payload_lines = receiver.payload_lines;
    // A line of an earlier case may be what the flag of this one is.
    map.copy_in(0, &[0; LINES as usize * 64]).unwrap();
    let (message, seen, torn) = (Cell::new(0), Cell::new(0), Cell::new(0));
    // After each word that comes to the memory, as a receiver may look at any moment.
    let look = || {
        if receiver.has_flag(message.get()) {
            seen.set(seen.get() + 1);
            torn.set(torn.get() + u32::from(!receiver.is_whole(message.get())));
        }
    };
    let port = Adversary::new(Stores { map, stored: &look }, tolerance(split_lines), seed);
    let mut sender = Sender { port, sequence, payload_lines, has_barrier };
    for next in 1..40 {
        message.set(next);
        sender.send(next);
        assert!(receiver.has_flag(next) && receiver.is_whole(next), "message {next}");
    }
    (seen.get(), torn.get())
}

/// Sends messages from the first that the receiver has not seen on, each once it has seen the one before, until this process is killed or the
/// segment is gone.
pub fn send_on(map: &Map, sequence: &Sequence, seed: u64) {
    let seen = || {
        let mut word = [0; 8];
        map.copy_out(SEEN, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    let port = Adversary::new(Stores { map, stored: &|| {} }, tolerance(true), seed);
    let mut sender = Sender { port, sequence, payload_lines: PAYLOAD_LINES, has_barrier: true };
    let mut next = seen() + 1;
    loop {
        sender.send(next);
        while seen() < next {
            // The test has ended.
            if !sequence.is_there() {
                return;
            }
            std::thread::yield_now();
        }
        next += 1;
    }
}

/// Takes messages up to `last`, each of which is whole as soon as its flag is seen, and says so to who sends.
pub fn take_up_to(receiver: &Receiver, next: &mut u64, last: u64) {
    while *next <= last {
        if receiver.has_flag(*next) {
            assert!(receiver.is_whole(*next), "message {next} is torn");
            receiver.map.copy_in(SEEN, &next.to_le_bytes()).unwrap();
            *next += 1;
        } else {
            std::thread::yield_now();
        }
    }
}

/// How many seeds a property is tried with.
pub fn cases() -> u32 {
    number("PROPTEST_CASES").map_or(24, |cases| cases.min(2000) as u32)
}
