//! Lap windows: every receiver has a replica of its own, in which words become visible in an order of its own, and all of
//! them get every message sent while they are there, byte for byte (`lap_memory` checks what each end stores and counts).

use std::cell::RefCell;
use std::collections::VecDeque;

use beeline_contract_memory::{Adversary, Line, ReadOnlyPort, StorePort, Tolerance};
use beeline_spec::lap::{LapHeader, payload_bytes_of, stored};
use beeline_window::lap::{LapMessage, LapReceiver, LapSendError, LapWriter, ReaderId};
use beeline_window::{ReceiveError, Sent};
use proptest::prelude::*;

use crate::check;
use crate::lap_memory::{LapMemory, Replicated};
use crate::plan::Random;

/// Words of payloads: every combination of the top bit with the others.
const WORDS: [u64; 4] = [u64::MAX, 1 << 63, 0x7fff_ffff_ffff_ffff, 0];
const MOST_RECEIVERS: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    /// Let so many words arrive at this receiver.
    Arrive(usize, usize),
    /// Let this receiver poll so often, or drain so many at most.
    Poll(usize, usize),
    Drain(usize, usize),
    Join,
    /// Let this receiver die, and the sender learn of it.
    Remove(usize),
}

fn plans(lines: u32) -> impl Strategy<Value = Vec<Step>> {
    let max = payload_bytes_of(lines) as usize;
    let who = 0..MOST_RECEIVERS;
    let step = prop_oneof![
        6 => prop_oneof![2 => 0..=56usize.min(max), 2 => 0..=max, 1 => Just(max)].prop_map(Step::Send),
        9 => (who.clone(), 0..200usize).prop_map(|(who, words)| Step::Arrive(who, words)),
        5 => (who.clone(), 0..6usize).prop_map(|(who, times)| Step::Poll(who, times)),
        3 => (who.clone(), 0..20usize).prop_map(|(who, max)| Step::Drain(who, max)),
        2 => Just(Step::Join),
        1 => who.prop_map(Step::Remove),
    ];
    proptest::collection::vec(step, 1..240)
}

struct Reader {
    id: ReaderId,
    replica: Replicated,
    receiver: LapReceiver<Replicated, Replicated>,
    expected: VecDeque<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Tally {
    received: usize,
    removed: usize,
    laps: u64,
    overtakings: u64,
}

struct Run<P> {
    memory: LapMemory,
    writer: LapWriter<P, Replicated>,
    readers: Vec<Reader>,
    random: Random,
    tally: Tally,
}

fn compare(message: &mut LapMessage<'_, Replicated, Replicated>, expected: &mut VecDeque<Vec<u8>>) {
    let want = expected.pop_front().expect("nothing is received that was not sent");
    let mut out = Vec::new();
    message.copy_to(&mut out);
    assert_eq!(out, want);
    let mut words = Vec::new();
    message.for_each_word(|word| words.extend(word.to_le_bytes()));
    assert_eq!(words[..want.len()], want);
    let some = want.len() / 16;
    assert_eq!(message.word(some).to_le_bytes(), words.get(some * 8..some * 8 + 8).unwrap_or(&[0; 8]));
}

impl<P: StorePort> Run<P> {
    fn new(memory: LapMemory, port: P, seed: u64) -> Self {
        let (writer, random) = (LapWriter::new(port, seed as u8), Random(seed));
        let mut run = Run { memory, writer, readers: Vec::new(), random, tally: Tally::default() };
        run.join(seed as u8);
        run
    }

    fn join(&mut self, epoch: u8) {
        let replica = self.memory.replica(self.writer.position().0);
        let (id, start) = self.writer.join(replica.clone());
        let receiver = LapReceiver::new(replica.clone(), replica.clone(), epoch, start);
        self.readers.push(Reader { id, replica, receiver, expected: VecDeque::new() });
    }

    fn remove(&mut self, who: usize) {
        let reader = self.readers.swap_remove(who);
        reader.replica.remove();
        assert!(self.writer.remove(reader.id).is_some());
        self.tally.removed += 1;
    }

    fn send(&mut self, bytes: usize) {
        let payload = self.random.payload(WORDS, bytes);
        match self.writer.try_send(&payload) {
            Ok(Sent::Sent) => {
                self.readers.iter_mut().for_each(|reader| reader.expected.push_back(payload.clone()))
            }
            Ok(Sent::Full) => assert!(!self.readers.is_empty()),
            Err(error) => assert!(error == LapSendError::NoReader && self.readers.is_empty(), "{error}"),
        }
        self.tally.laps = self.writer.position().0 / u64::from(self.writer.lines());
    }

    fn arrive(&mut self, who: usize, words: usize) {
        let replica = &self.readers[who].replica;
        for _ in 0..words.min(replica.held()) {
            replica.release(self.random.below(replica.held()));
        }
    }

    fn drain(&mut self, who: usize, max: usize) -> usize {
        let Reader { receiver, expected, .. } = &mut self.readers[who];
        let taken = receiver.drain(max, |message| compare(message, expected)).expect("an honest sender");
        self.tally.received += taken;
        taken
    }

    fn act(&mut self, step: &Step, epoch: u8) {
        let count = self.readers.len();
        match step {
            Step::Send(bytes) => self.send(*bytes),
            Step::Join if count < MOST_RECEIVERS => self.join(epoch),
            Step::Join => {}
            _ if count == 0 => {}
            Step::Arrive(who, words) => {
                self.writer.progress();
                self.arrive(who % count, *words);
            }
            Step::Poll(who, times) => {
                for _ in 0..*times {
                    let Reader { receiver, expected, .. } = &mut self.readers[who % count];
                    if let Some(mut message) = receiver.poll().expect("an honest sender") {
                        compare(&mut message, expected);
                        self.tally.received += 1;
                    }
                }
            }
            Step::Drain(who, max) => {
                self.drain(who % count, *max);
            }
            Step::Remove(who) => self.remove(who % count),
        }
    }

    /// Runs a plan, and then lets everything arrive and be received.
    fn run(&mut self, plan: &[Step], epoch: u8) {
        plan.iter().for_each(|step| self.act(step, epoch));
        let mut looks = 0;
        while self.readers.iter().any(|reader| !reader.expected.is_empty()) {
            self.writer.progress();
            for who in 0..self.readers.len() {
                self.arrive(who, 64);
                self.drain(who, usize::MAX);
            }
            looks += 1;
            assert!(looks < 100_000, "messages never arrive");
        }
        for who in 0..self.readers.len() {
            assert_eq!(self.drain(who, 1), 0, "an idle look pushes credits");
        }
        if !self.readers.is_empty() {
            assert_eq!(self.writer.refresh(), Ok(self.writer.lines()), "every line comes back");
        }
    }
}

fn windows() -> impl Strategy<Value = (u32, Vec<Step>, u64)> {
    let lines = prop_oneof![Just(1u32), Just(2), Just(8), Just(16), Just(64)];
    lines.prop_flat_map(|lines| (Just(lines), plans(lines), any::<u64>()))
}

/// Adds up what the cases of a property did, and checks that they did what they are for.
fn add(total: &RefCell<Tally>, tally: &Tally) {
    let mut total = total.borrow_mut();
    total.received += tally.received;
    total.removed += tally.removed;
    total.laps += tally.laps;
    total.overtakings += tally.overtakings;
}

#[test]
fn every_receiver_gets_every_message_whatever_order_its_words_arrive_in() {
    let total = RefCell::new(Tally::default());
    check(400, windows(), |(lines, plan, seed)| {
        let memory = LapMemory::new(lines);
        memory.hold();
        let mut run = Run::new(memory.clone(), memory, seed);
        run.run(&plan, seed as u8);
        add(&total, &run.tally);
        Ok(())
    });
    let total = total.into_inner();
    println!("{total:?}");
    assert!(cfg!(miri) || total.laps > 1000 && total.removed > 400 && total.received > 4000, "{total:?}");
}

#[test]
fn adversary_changes_nothing_but_the_order() {
    let total = RefCell::new(Tally::default());
    let tolerance = (prop_oneof![Just(0u32), Just(1), Just(4), Just(64)], any::<bool>());
    check(400, (windows(), tolerance), |((lines, plan, seed), (span_lines, split_lines))| {
        let memory = LapMemory::new(lines);
        let port = Adversary::new(memory.clone(), Tolerance { span_lines, split_lines }, seed);
        let mut run = Run::new(memory, port, seed);
        // What the adversary holds back while nobody receives is nobody's: the last receiver stays.
        let stays = |step: &&Step| !matches!(step, Step::Remove(_));
        let plan: Vec<_> = plan.iter().filter(stays).cloned().collect();
        run.run(&plan, seed as u8);
        run.tally.overtakings = run.writer.port().overtakings();
        add(&total, &run.tally);
        Ok(())
    });
    let total = total.into_inner();
    println!("{total:?}");
    assert!(cfg!(miri) || total.laps > 1000 && total.overtakings > 10_000, "{total:?}");
}

/// Words that a hostile sender would try, in either lap.
fn hostile_word(random: &mut Random, lines: u32) -> u64 {
    let longest = payload_bytes_of(lines);
    let length_bytes = [0, 1, 8, 56, 57, 120, longest - 1, longest, longest + 1, 1 << 20][random.below(10)];
    let header = LapHeader { length_bytes, tops: random.below(128) as u8, epoch: 0 }.encode();
    let word = match random.below(6) {
        0 => random.next(),
        1 => random.next() & 0xff_ffff,
        2 => header ^ 1 << random.below(64),
        _ => header,
    };
    stored(word, (random.below(2) as u64) << 63)
}

#[test]
fn any_words_in_a_lap_window_are_borne() {
    const LINES: u32 = 16;
    let errors = std::cell::Cell::new(0);
    check(3000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let memory = LapMemory::new(LINES);
        let (replica, start) = (memory.replica(0), beeline_window::Position(0));
        let mut receiver = LapReceiver::new(replica, Uncounted, 0, start);
        for _ in 0..20 {
            for _ in 0..random.below(200) {
                let (line, word) = (random.below(LINES as usize) as u32, random.below(8) as u32);
                memory.forge(line, word, hostile_word(&mut random, LINES));
            }
            let outcome = receiver.drain(5, |message| {
                assert!(message.len() <= payload_bytes_of(LINES) as usize);
                let words = message.len().div_ceil(8) + 1;
                std::hint::black_box((0..words).fold(0, |sum, i| sum ^ message.word(i)));
                std::hint::black_box(message.copy_out(&mut [0; 2000]));
            });
            if let Err(error) = outcome {
                assert!(matches!(error, ReceiveError::Header { .. }));
                assert_eq!(receiver.poll().map(|_| ()), Err(error), "an error is final");
                errors.set(errors.get() + 1);
                break;
            }
        }
        Ok(())
    });
    assert!(cfg!(miri) || errors.get() > 1000, "{} of 3000 were found out", errors.get());
}

/// Memory whose sender stores hostile words while its receiver reads: some before each load.
struct Changing {
    words: RefCell<(Vec<Line>, Random)>,
}

impl Changing {
    fn turn(&self) {
        let (words, random) = &mut *self.words.borrow_mut();
        let lines = words.len();
        for _ in 0..[0, 0, 1, 9][random.below(4)] {
            words[random.below(lines)][random.below(8)] = hostile_word(random, lines as u32);
        }
    }
}

impl ReadOnlyPort for Changing {
    fn lines(&self) -> u32 {
        self.words.borrow().0.len() as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.turn();
        self.words.borrow().0[line as usize][word as usize]
    }

    fn load_tops(&mut self, line: u32) -> (u8, u64) {
        self.turn();
        let words = self.words.borrow().0[line as usize];
        // Random words seldom make a line of one lap, so a header of lap 1 stands for its line.
        let tops = (0..8).fold(0, |tops, word| tops | ((words[word] >> 63) as u8) << word);
        (if tops & 1 == 1 { 0xff } else { tops & 0x0f }, words[0])
    }
}

#[test]
fn words_that_change_between_loads_are_borne() {
    let (errors, received) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    check(6000, any::<u64>(), |seed| {
        let lines = [1u32, 2, 8, 16][seed as usize % 4];
        let words = RefCell::new((vec![[0; 8]; lines as usize], Random(seed)));
        let start = beeline_window::Position(0);
        let mut receiver = LapReceiver::new(Changing { words }, Uncounted, 0, start);
        for _ in 0..40 {
            let before = receiver.next_start();
            let outcome = receiver.drain(3, |message| {
                let length = message.len();
                assert!(length <= payload_bytes_of(lines) as usize);
                let mut out = vec![0xee; length + 1];
                assert_eq!((message.copy_out(&mut out), out[length]), (length, 0xee));
                let mut words = 0;
                message.for_each_word(|_| words += 1);
                assert_eq!((words, message.word(words)), (length.div_ceil(8), 0));
                received.set(received.get() + 1);
            });
            assert!(receiver.next_start() >= before);
            if outcome.is_err() {
                errors.set(errors.get() + 1);
                assert_eq!(receiver.poll().map(|_| ()), outcome.map(|_| ()), "an error is final");
                break;
            }
        }
        Ok(())
    });
    let (errors, received) = (errors.get(), received.get());
    assert!(cfg!(miri) || errors > 500 && received > 500, "{errors} found out, {received} taken");
}

/// Counts that nobody looks at: the sender keeps no rule anyway.
struct Uncounted;

impl beeline_contract_memory::CreditSink for Uncounted {
    fn publish(&mut self, _freed_lines: u64) {}
}

#[test]
fn any_counts_are_borne_and_no_line_is_stored_that_another_receiver_reads() {
    const LINES: u32 = 8;
    let found_out = std::cell::Cell::new(0);
    check(1000, any::<u64>(), |seed| {
        let mut random = Random(seed);
        let memory = LapMemory::new(LINES);
        let mut run = Run::new(memory.clone(), memory, seed);
        run.join(seed as u8);
        let hostile = run.readers.swap_remove(1);
        // Its replica is not looked at: whatever it claims, it is not served.
        hostile.replica.remove();
        let (mut before, mut failed) = (0, None);
        for _ in 0..50 {
            let sent = run.writer.position().0;
            before = [before, sent, before + random.below(3) as u64, random.next()][random.below(4)];
            hostile.replica.forge_credits(before);
            let payload = random.payload(WORDS, random.clone().below(300));
            match run.writer.try_send(&payload) {
                Ok(Sent::Sent) => run.readers[0].expected.push_back(payload),
                Ok(Sent::Full) => {}
                Err(error) => {
                    assert!(failed.is_none_or(|found| found == error), "it stays the same");
                    failed = Some(error);
                }
            }
            if random.below(3) == 0 {
                run.drain(0, 100);
            }
        }
        if failed.is_some() {
            assert!(run.writer.remove(hostile.id).is_some());
            found_out.set(found_out.get() + 1);
            run.drain(0, 100);
            assert_eq!(run.writer.refresh(), Ok(LINES), "the other receiver is served again");
        }
        Ok(())
    });
    assert!(cfg!(miri) || found_out.get() > 900, "{} of 1000 were found out", found_out.get());
}
