//! Payloads and their flags in a segment, with an adversary between the sender's stores and its memory: lines come there in any order that a
//! memory may give them, also split into words, until a barrier. And senders that are killed meanwhile.
//!
//! The adversary is that of windows (`contract/memory`), which need no barrier. A program of SISCI has one between payload and flag.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use beeline_contract_memory::{Adversary, Line, StorePort, Tolerance, store_port_default};
use beeline_fabric::{Part, SequenceStatus};
use beeline_fabric_process::{FabricMember, Map, Sequence};
use proptest::prelude::*;
use support::random::{Random, number};
use support::segments::{available, connect, connect_within};
use support::{Fabric, Process, config_in};

/// Lines of the segment, around which payloads and flags go.
const LINES: u32 = 64;
/// Where the receiver says how many messages it has seen: behind those lines.
const SEEN: usize = LINES as usize * 64;
const BYTES: u64 = SEEN as u64 + 64;
const SENDS: &str = "BEELINE_TEST_SENDS";
/// The memory keeps back what is at most so many lines behind.
const SPAN_LINES: u32 = 32;

/// Words as the map of a segment has them; told after each store.
struct Memory<'a> {
    map: &'a Map,
    stored: &'a dyn Fn(),
}

impl StorePort for Memory<'_> {
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
struct Sender<'a> {
    port: Adversary<Memory<'a>>,
    sequence: &'a Sequence,
    payload_lines: u32,
    has_barrier: bool,
}

impl Sender<'_> {
    fn send(&mut self, message: u64) {
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
    fn barrier(&mut self, start: beeline_fabric::SequenceStart) {
        self.port.fence();
        assert_eq!(self.sequence.check(start), SequenceStatus::Ok);
    }
}

/// The receiver's side of the segment.
struct Receiver {
    map: Map,
    payload_lines: u32,
}

impl Receiver {
    fn line(&self, line: u32) -> Line {
        let mut bytes = [0; 64];
        self.map.copy_out((line % LINES) as usize * 64, &mut bytes).unwrap();
        std::array::from_fn(|word| u64::from_le_bytes(*bytes.as_chunks::<8>().0.get(word).unwrap()))
    }

    /// Whether the flag of a message is there: its last word, which may come first.
    fn has_flag(&self, message: u64) -> bool {
        let flag = first_line(message, self.payload_lines) + self.payload_lines;
        self.line(flag)[7] == line_of(message, self.payload_lines)[7]
    }

    fn is_whole(&self, message: u64) -> bool {
        let first = first_line(message, self.payload_lines);
        (0..self.payload_lines).all(|line| self.line(first + line) == line_of(message, line))
    }
}

/// How often the flag of a message was seen, and how often the payload was torn then.
fn seen_and_torn(seed: u64, split_lines: bool, payload_lines: u32, has_barrier: bool) -> (u32, u32) {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let user = FabricMember::open(fabric.config(8)).unwrap();
    let local = available(&owner, 7, BYTES);
    let whole = Part { offset: 0, bytes: BYTES };
    let receiver = Receiver { map: owner.map_local(local, whole).unwrap(), payload_lines };
    let remote = connect(&user, 4, 7).unwrap();
    let (map, sequence) = (user.map_remote(remote, whole).unwrap(), user.sequence(remote).unwrap());
    let (message, seen, torn) = (Cell::new(0), Cell::new(0), Cell::new(0));
    // After each word that comes to the memory, as a receiver may look at any moment.
    let look = || {
        if receiver.has_flag(message.get()) {
            seen.set(seen.get() + 1);
            torn.set(torn.get() + u32::from(!receiver.is_whole(message.get())));
        }
    };
    let tolerance = Tolerance { span_lines: SPAN_LINES, split_lines };
    let port = Adversary::new(Memory { map: &map, stored: &look }, tolerance, seed);
    let mut sender = Sender { port, sequence: &sequence, payload_lines, has_barrier };
    for next in 1..40 {
        message.set(next);
        sender.send(next);
        assert!(receiver.has_flag(next) && receiver.is_whole(next), "message {next}");
    }
    (seen.get(), torn.get())
}

fn cases() -> u32 {
    number("PROPTEST_CASES").map_or(24, |cases| cases.min(2000) as u32)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]
    #[test]
    fn payload_before_a_barrier_is_whole_whenever_its_flag_is_seen(
        seed in any::<u64>(), split_lines in any::<bool>(), payload_lines in 1..31_u32,
    ) {
        let (seen, torn) = seen_and_torn(seed, split_lines, payload_lines, true);
        prop_assert!(seen >= 39);
        prop_assert_eq!(torn, 0);
    }
}

#[test]
fn flag_without_a_barrier_before_it_is_seen_with_a_torn_payload() {
    for split_lines in [false, true] {
        let (_, torn) = seen_and_torn(1, split_lines, 7, false);
        assert!(torn > 0, "the adversary has left 39 messages alone");
    }
}

const PAYLOAD_LINES: u32 = 7;

/// Sends messages from the first that the receiver has not seen on, each once it has seen the one before, until it is killed.
#[test]
fn role() {
    let (Ok(seed), Some(root)) = (std::env::var(SENDS), std::env::var_os("BEELINE_TEST_ROOT")) else {
        return;
    };
    let user = FabricMember::open(config_in(Path::new(&root), 8)).unwrap();
    let remote = connect_within(&user, 4, 7, 60_000_000_000).unwrap();
    let map = user.map_remote(remote, Part { offset: 0, bytes: BYTES }).unwrap();
    let sequence = user.sequence(remote).unwrap();
    let seen = || {
        let mut word = [0; 8];
        map.copy_out(SEEN, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    let tolerance = Tolerance { span_lines: SPAN_LINES, split_lines: true };
    let port = Adversary::new(Memory { map: &map, stored: &|| {} }, tolerance, seed.parse().unwrap());
    let mut sender = Sender { port, sequence: &sequence, payload_lines: PAYLOAD_LINES, has_barrier: true };
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

#[test]
fn messages_are_whole_and_in_order_whoever_is_killed_while_lines_are_on_their_way() {
    let kills = number("BEELINE_KILLS").unwrap_or(30).min(1000);
    let fabric = Fabric::new();
    let mut random = Random::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, BYTES);
    let map = owner.map_local(local, Part { offset: 0, bytes: BYTES }).unwrap();
    let receiver = Receiver { map, payload_lines: PAYLOAD_LINES };
    let mut next = 1;
    for _ in 0..kills {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(SENDS, random.any().to_string());
        let sender = Process::start_as(command, fabric.root(), 8, &[]);
        let last = next + random.below(20);
        while next <= last {
            if receiver.has_flag(next) {
                assert!(receiver.is_whole(next), "message {next} is torn");
                receiver.map.copy_in(SEEN, &next.to_le_bytes()).unwrap();
                next += 1;
            } else {
                std::thread::yield_now();
            }
        }
        let (started, nanos) = (Instant::now(), random.below(20_000));
        while started.elapsed().as_nanos() < u128::from(nanos) {
            std::hint::spin_loop();
        }
        sender.kill();
    }
    println!("{} messages, {kills} senders", next - 1);
}
