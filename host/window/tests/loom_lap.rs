//! Every interleaving of a lap window's ends, with every word a relaxed atomic: a store may become visible late and in any
//! order; only credits are release and acquire. Run as `tests/loom.rs` is, with `--test loom_lap`.
//!
//! Three words of each line are modelled (header, first payload word, last word); the others are zero and count as arrived,
//! which keeps the number of interleavings small and leaves every kind of word in.
#![cfg(loom)]

use beeline_contract_memory::{CreditSink, CreditSource, Line, ReadOnlyPort, StorePort, store_port_default};
use beeline_window::Sent;
use beeline_window::lap::{LapReceiver, LapWriter};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};

const LINES: usize = 2;
const MODELLED: [usize; 3] = [0, 1, 7];
/// Laps that the tests make at most.
const LAPS: usize = 3;
const RECEIVERS: usize = 2;

/// What a receiver gives back: its count, and a cell for each line and lap, written when the line is counted as free and read
/// when it is stored again. loom fails when the one does not happen before the other, so when credits do not order a
/// receiver's loads before the sender's next store.
struct Freed {
    lines: AtomicU64,
    cells: [[UnsafeCell<()>; LAPS]; LINES],
}

/// Memory that all threads share. Receivers only load from `words`.
struct Memory {
    words: [[AtomicU64; MODELLED.len()]; LINES],
    freed: [Freed; RECEIVERS],
}

impl Memory {
    fn new() -> Arc<Self> {
        let freed = || Freed {
            lines: AtomicU64::new(0),
            cells: std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(()))),
        };
        Arc::new(Memory {
            words: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            freed: std::array::from_fn(|_| freed()),
        })
    }
}

/// The sender's port; `receivers` of them take part.
struct Stores {
    memory: Arc<Memory>,
    receivers: usize,
    laps: [usize; LINES],
}

impl StorePort for Stores {
    fn lines(&self) -> u32 {
        LINES as u32
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        let line = line as usize;
        if let Some(lap_before) = self.laps[line].checked_sub(1) {
            for freed in &self.memory.freed[..self.receivers] {
                freed.cells[line][lap_before].with(|_| ());
            }
        }
        self.laps[line] += 1;
        for word in MODELLED {
            self.store_word(line as u32, word as u32, words[word]);
        }
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        let Some(slot) = MODELLED.iter().position(|modelled| *modelled == word as usize) else { return };
        // Relaxed: nothing orders a payload store; the receiver's look at the laps is what recovers it.
        self.memory.words[line as usize][slot].store(value, Ordering::Relaxed);
    }

    fn fence(&mut self) {
        fence(Ordering::SeqCst);
    }

    store_port_default! { composed, hints, wake_receiver, progress }
}

/// A receiver's port. Without `checks`, the look at the laps has its teeth out: once the header has arrived, everything has.
struct Loads {
    memory: Arc<Memory>,
    checks: bool,
}

impl ReadOnlyPort for Loads {
    fn lines(&self) -> u32 {
        LINES as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        let slot = MODELLED.iter().position(|modelled| *modelled == word as usize);
        // Relaxed: see `store_word`.
        slot.map_or(0, |slot| self.memory.words[line as usize][slot].load(Ordering::Relaxed))
    }

    fn load_tops(&mut self, line: u32) -> (u8, u64) {
        let head = self.load_word(line, 0);
        let of_head = if head >> 63 == 1 { 0xff } else { 0 };
        if !self.checks {
            return (of_head, head);
        }
        // The words that are not modelled have the header's lap.
        let tops = MODELLED.into_iter().skip(1).fold(of_head, |tops, word| {
            tops & !(1 << word) | ((self.load_word(line, word as u32) >> 63) as u8) << word
        });
        (tops, head)
    }
}

/// Both ends of a receiver's credits.
struct Credits {
    memory: Arc<Memory>,
    receiver: usize,
    order: Ordering,
    published: u64,
}

impl CreditSource for Credits {
    fn freed_lines(&mut self) -> u64 {
        // Acquire (unless the test takes it out): pairs with `publish`.
        let order = if self.order == Ordering::Release { Ordering::Acquire } else { self.order };
        self.memory.freed[self.receiver].lines.load(order)
    }
}

impl CreditSink for Credits {
    fn publish(&mut self, freed_lines: u64) {
        let freed = &self.memory.freed[self.receiver];
        for position in self.published as usize..freed_lines as usize {
            freed.cells[position % LINES][position / LINES].with_mut(|_| ());
        }
        self.published = freed_lines;
        // Release (unless the test takes it out): pairs with `freed_lines`.
        freed.lines.store(freed_lines, self.order);
    }
}

/// Message `number`: 56 bytes, whose first and last word have top bits that differ from message to message.
fn payload(number: u64) -> [u64; 7] {
    let top = |bit: u64| (number >> bit & 1) << 63;
    [top(0) | (0x100 + number), 0, 0, 0, 0, 0, top(1) | (0x200 + number)]
}

type Writer = LapWriter<Stores, Credits>;
type Receiver = LapReceiver<Loads, Credits>;

fn writer(memory: &Arc<Memory>, receivers: usize, order: Ordering) -> Writer {
    let port = Stores { memory: Arc::clone(memory), receivers, laps: [0; LINES] };
    let mut writer = LapWriter::new(port, 0);
    for receiver in 0..receivers {
        writer.join(Credits { memory: Arc::clone(memory), receiver, order, published: 0 });
    }
    writer
}

fn receiver(memory: &Arc<Memory>, receiver: usize, order: Ordering, checks: bool) -> Receiver {
    let port = Loads { memory: Arc::clone(memory), checks };
    let credits = Credits { memory: Arc::clone(memory), receiver, order, published: 0 };
    LapReceiver::new(port, credits, 0, beeline_window::Position(0))
}

fn send(writer: &mut Writer, number: u64) -> Sent {
    writer.try_send(payload(number).map(u64::to_le_bytes).as_flattened()).expect("honest receivers")
}

/// Whether message `number` was there; it must be as it was sent.
fn receive(receiver: &mut Receiver, number: u64) -> bool {
    let Some(message) = receiver.poll().expect("an honest sender") else { return false };
    assert_eq!(message.len(), 56);
    assert_eq!([message.word(0), message.word(6)], [payload(number)[0], payload(number)[6]]);
    true
}

/// With as many preemptions as `LOOM_MAX_PREEMPTIONS` says, otherwise so many.
fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(body);
}

fn pair(order: Ordering, checks: bool, messages: u64) {
    model(3, move || {
        let memory = Memory::new();
        let mut writer = writer(&memory, 1, order);
        let sender = loom::thread::spawn(move || {
            for number in 0..messages {
                while send(&mut writer, number) == Sent::Full {
                    loom::thread::yield_now();
                }
            }
        });
        let mut receiver = receiver(&memory, 0, order, checks);
        for number in 0..messages {
            while !receive(&mut receiver, number) {
                loom::thread::yield_now();
            }
        }
        sender.join().expect("the sender does not panic");
    });
}

#[test]
fn messages_come_out_whole_and_in_order_lap_after_lap() {
    pair(Ordering::Release, true, 5);
}

/// A full window, from which two receivers take while the sender tries to send one message more. Everything is tried a few
/// times and then finished alone, so that no thread spins.
#[test]
fn each_of_two_receivers_gets_every_message_and_lines_are_reused() {
    const MESSAGES: u64 = LINES as u64 + 1;
    // Three threads: a third preemption would take too long.
    model(2, || {
        let memory = Memory::new();
        let order = Ordering::Release;
        let mut writer = writer(&memory, 2, order);
        (0..MESSAGES - 1).for_each(|number| assert_eq!(send(&mut writer, number), Sent::Sent));
        let take = |mut receiver: Receiver| {
            let next = (0..=MESSAGES).fold(0, |next, _| next + u64::from(receive(&mut receiver, next)));
            (receiver, next)
        };
        let first = receiver(&memory, 0, order, true);
        let first = loom::thread::spawn(move || take(first));
        let sender = loom::thread::spawn(move || {
            let sent = send(&mut writer, MESSAGES - 1);
            (writer, sent)
        });
        let second = take(receiver(&memory, 1, order, true));
        let first = first.join().expect("the other receiver does not panic");
        let (mut writer, sent) = sender.join().expect("the sender does not panic");
        if sent == Sent::Full {
            // An idle look has pushed what each of them freed.
            assert_eq!(send(&mut writer, MESSAGES - 1), Sent::Sent);
        }
        for (mut receiver, next) in [first, second] {
            (next..MESSAGES).for_each(|number| assert!(receive(&mut receiver, number), "message {number}"));
            assert!(!receive(&mut receiver, MESSAGES));
        }
    });
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn without_the_look_at_the_laps_loom_fails() {
    pair(Ordering::Release, false, 1);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn with_relaxed_credits_loom_fails() {
    pair(Ordering::Relaxed, true, 3);
}
