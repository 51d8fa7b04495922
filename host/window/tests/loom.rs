//! Every interleaving of a window's two ends, with every payload word a relaxed atomic: a store may become visible
//! late and in any order; only credits are release and acquire. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p beeline-window --test loom --release --target-dir target/loom`.
//!
//! Three words of each line are modelled (header, first payload word, last word); the others never change and count
//! as arrived, which keeps the number of interleavings small and leaves every kind of word in.
#![cfg(loom)]

use std::time::Duration;

use beeline_contract_memory::{
    CreditSink, CreditSource, Line, LoadPort, Sleeper, StorePort, store_port_default,
};
use beeline_wait::Waiter;
use beeline_window::{
    ArrivalTest, Blank, Receiver, Sent, SharedReceiver, SharedWindow, WaitPolicy, WindowConfig, Writer,
};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Notify};

const BLANK: u64 = 0x8000_0000_0000_0001;
const LINES: usize = 2;
const MODELLED: [usize; 3] = [0, 1, 7];
/// Laps that the tests make at most.
const LAPS: usize = 3;

/// Memory that two threads share.
struct Memory {
    words: [[AtomicU64; MODELLED.len()]; LINES],
    freed_lines: AtomicU64,
    /// One for each line and lap: written when the line is freed, read when it is stored again. loom fails when the
    /// one does not happen before the other, so it fails when credits do not order re-blanking before reuse.
    freed: [[UnsafeCell<()>; LAPS]; LINES],
    laps: [std::sync::atomic::AtomicUsize; LINES],
    asleep: AtomicBool,
    wake: Notify,
}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Memory {
            words: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(BLANK))),
            freed_lines: AtomicU64::new(0),
            freed: std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(()))),
            laps: Default::default(),
            asleep: AtomicBool::new(false),
            wake: Notify::new(),
        })
    }
}

/// One end's view: the memory, the ordering of its credits, and how often it has been at each line.
struct End {
    memory: Arc<Memory>,
    credits: Ordering,
    laps: [usize; LINES],
    wakes: bool,
}

impl End {
    fn new(memory: &Arc<Memory>, credits: Ordering) -> Self {
        End { memory: Arc::clone(memory), credits, laps: [0; LINES], wakes: false }
    }
}

impl StorePort for End {
    fn lines(&self) -> u32 {
        LINES as u32
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        for (word, value) in (0..).zip(words) {
            self.store_word(line, word, *value);
        }
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        let line = line as usize;
        let Some(slot) = MODELLED.iter().position(|modelled| *modelled == word as usize) else { return };
        if word == 7 {
            if let Some(lap_before) = self.laps[line].checked_sub(1) {
                self.memory.freed[line][lap_before].with(|_| ());
            }
            self.laps[line] += 1;
        }
        // Relaxed: nothing orders a payload store; the receiver's blank check is what recovers it.
        self.memory.words[line][slot].store(value, Ordering::Relaxed);
    }

    fn fence(&mut self) {
        fence(Ordering::SeqCst);
    }

    fn wake_receiver(&mut self) {
        if !self.wakes {
            return;
        }
        // What the sleeper's membarrier does to this core: a fence between our stores and the look at its flag.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence above, whose partner is in `prepare`.
        if self.memory.asleep.load(Ordering::Relaxed) {
            self.memory.asleep.store(false, Ordering::Relaxed);
            self.memory.wake.notify();
        }
    }

    store_port_default! { composed, hints, progress }
}

impl LoadPort for End {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        LINES as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        // Relaxed: see `store_word`.
        let slot = MODELLED.iter().position(|modelled| *modelled == word as usize);
        slot.map_or(0, |slot| self.memory.words[line as usize][slot].load(Ordering::Relaxed))
    }

    fn load_line(&mut self, line: u32) -> Line {
        std::array::from_fn(|word| self.load_word(line, word as u32))
    }

    fn blank_line(&mut self, line: u32, blank: u64) {
        let line = line as usize;
        // Outside the model: it counts and orders nothing. Receivers take turns at a line.
        let lap = self.memory.laps[line].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.memory.freed[line][lap].with_mut(|_| ());
        for word in &self.memory.words[line] {
            // Relaxed: ordered before reuse by the credit (`publish`).
            word.store(blank, Ordering::Relaxed);
        }
    }
}

impl CreditSource for End {
    fn freed_lines(&mut self) -> u64 {
        // Acquire (unless the test takes it out): pairs with `publish`.
        let order = if self.credits == Ordering::Release { Ordering::Acquire } else { self.credits };
        self.memory.freed_lines.load(order)
    }
}

impl CreditSink for End {
    fn publish(&mut self, freed_lines: u64) {
        // Release (unless the test takes it out): pairs with `freed_lines`.
        self.memory.freed_lines.store(freed_lines, self.credits);
    }
}

/// The blank test with its teeth out: once the header has arrived, everything has.
struct HeaderOnly(Blank);

impl ArrivalTest for HeaderOnly {
    fn arrived_head<L: LoadPort>(&mut self, port: &mut L, line: u32) -> (u8, u64) {
        let (arrived, header) = self.0.arrived_head(port, line);
        (if arrived & 1 == 1 { 0xff } else { 0 }, header)
    }
    fn arrived_words<L: LoadPort>(&mut self, _port: &mut L, _line: u32) -> u8 {
        0xff
    }
    fn touched<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u8 {
        self.0.touched(port, line)
    }
    fn prefix_bytes<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u32 {
        self.0.prefix_bytes(port, line)
    }
    fn free<L: LoadPort>(&mut self, port: &mut L, line: u32) {
        self.0.free(port, line);
    }
    fn blank(&self) -> Option<u64> {
        self.0.blank()
    }
}

/// With as many preemptions as `LOOM_MAX_PREEMPTIONS` says. Two reach every fault that the failing tests below put in; where
/// nothing is said it is one more, for what we did not think of: without a bound the models do not end.
fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(body);
}

fn model_with(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// Message `number`: 8 bytes; the second is the blank itself, so it is escaped.
fn payload(number: u64) -> u64 {
    if number == 1 { BLANK } else { 0x100 + number }
}

fn send_all(memory: &Arc<Memory>, credits: Ordering, messages: u64) {
    let config = WindowConfig::blank(BLANK, 0);
    let mut writer = Writer::new(End::new(memory, credits), End::new(memory, credits), config);
    for number in 0..messages {
        while writer.try_send(&payload(number).to_le_bytes()).expect("an honest receiver") == Sent::Full {
            loom::thread::yield_now();
        }
    }
}

fn receive_all<A: ArrivalTest>(mut receiver: Receiver<End, End, A>, messages: u64) {
    for number in 0..messages {
        loop {
            if let Some(message) = receiver.poll().expect("an honest sender") {
                assert_eq!(message.len(), 8);
                assert_eq!(message.word(0), payload(number));
                break;
            }
            loom::thread::yield_now();
        }
    }
}

fn receiver(memory: &Arc<Memory>, credits: Ordering) -> Receiver<End, End> {
    Receiver::new(End::new(memory, credits), End::new(memory, credits), WindowConfig::blank(BLANK, 0))
}

#[test]
fn messages_come_out_whole_and_in_order_and_lines_are_reused() {
    model(|| {
        let memory = Memory::new();
        let theirs = Arc::clone(&memory);
        let sender = loom::thread::spawn(move || send_all(&theirs, Ordering::Release, 4));
        receive_all(receiver(&memory, Ordering::Release), 4);
        sender.join().expect("the sender does not panic");
    });
}

#[test]
fn a_reservation_whose_header_is_stored_last_comes_out_whole() {
    model(|| {
        let memory = Memory::new();
        let theirs = Arc::clone(&memory);
        let sender = loom::thread::spawn(move || {
            let end = || End::new(&theirs, Ordering::Release);
            let mut writer = Writer::new(end(), end(), WindowConfig::blank(BLANK, 0));
            let mut reservation = writer.reserve(120).expect("it fits").expect("the window is empty");
            // Words that are modelled carry a value each, the others are zero as their stand-ins are.
            for index in 1..16 {
                let value = if index % 8 == 1 || index % 8 == 7 { 0x200 + index } else { 0 };
                reservation.put_u64(value).expect("it was reserved");
            }
            reservation.commit();
        });
        let mut receiver = receiver(&memory, Ordering::Release);
        loop {
            if let Some(message) = receiver.poll().expect("an honest sender") {
                assert_eq!(message.len(), 120);
                assert_eq!([0, 6, 8, 14].map(|index| message.word(index)), [0x201, 0x207, 0x209, 0x20f]);
                break;
            }
            loom::thread::yield_now();
        }
        sender.join().expect("the sender does not panic");
    });
}

#[test]
#[should_panic]
fn without_the_blank_check_loom_fails() {
    model(|| {
        let memory = Memory::new();
        let theirs = Arc::clone(&memory);
        let sender = loom::thread::spawn(move || send_all(&theirs, Ordering::Release, 1));
        let end = || End::new(&memory, Ordering::Release);
        let test = HeaderOnly(Blank::new(BLANK));
        receive_all(Receiver::with_test(end(), end(), test, WindowConfig::blank(BLANK, 0)), 1);
        sender.join().expect("the sender does not panic");
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn with_relaxed_credits_loom_fails() {
    model(|| {
        let memory = Memory::new();
        let theirs = Arc::clone(&memory);
        let sender = loom::thread::spawn(move || send_all(&theirs, Ordering::Relaxed, 3));
        receive_all(receiver(&memory, Ordering::Relaxed), 3);
        sender.join().expect("the sender does not panic");
    });
}

/// A sleeper whose membarrier is a fence on both sides, since loom has no other.
struct ModelSleeper {
    memory: Arc<Memory>,
    fences: bool,
}

impl Sleeper for ModelSleeper {
    fn prepare(&mut self) {
        // Relaxed: ordered by the fence, whose partner is in `wake_receiver`.
        self.memory.asleep.store(true, Ordering::Relaxed);
        if self.fences {
            fence(Ordering::SeqCst);
        }
    }

    fn park(&mut self, _limit: Duration) {
        self.memory.wake.wait();
    }

    fn cancel(&mut self) {
        // Relaxed: a wake-up too many is allowed.
        self.memory.asleep.store(false, Ordering::Relaxed);
    }
}

fn sleep_for_one_message(fences: bool) {
    model(move || {
        let memory = Memory::new();
        let theirs = Arc::clone(&memory);
        let sender = loom::thread::spawn(move || {
            let mut port = End::new(&theirs, Ordering::Release);
            port.wakes = true;
            let credits = End::new(&theirs, Ordering::Release);
            let mut writer = Writer::new(port, credits, WindowConfig::blank(BLANK, 0));
            assert_eq!(writer.try_send(&payload(0).to_le_bytes()), Ok(Sent::Sent));
        });
        let policy = WaitPolicy::new().spins(0).yields(0).sleep(Some(Duration::from_secs(1)));
        let mut sleeper = ModelSleeper { memory: Arc::clone(&memory), fences };
        let mut receiver = receiver(&memory, Ordering::Release);
        let message =
            receiver.recv_wait(&mut Waiter::new(&policy, &mut sleeper, None)).expect("an honest sender");
        assert_eq!(message.expect("there is no deadline").word(0), payload(0));
        sender.join().expect("the sender does not panic");
    });
}

#[test]
fn a_sleeping_receiver_is_always_woken() {
    sleep_for_one_message(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_sleepers_fence_a_wake_up_is_lost() {
    sleep_for_one_message(false);
}

/// A full window, from which two receivers take while the sender tries to send one message more. Everything is tried
/// once and then finished alone, so that no thread spins. Gives what was taken, in no particular order.
fn share(messages_of_first: fn(u64) -> bool) -> Vec<u64> {
    let memory = Memory::new();
    let end = |memory: &Arc<Memory>| End::new(memory, Ordering::Release);
    let config = WindowConfig::blank(BLANK, 0);
    let mut writer = Writer::new(end(&memory), end(&memory), config);
    for number in 0..LINES as u64 {
        assert_eq!(writer.try_send(&payload(number).to_le_bytes()), Ok(Sent::Sent));
    }
    let shared = SharedWindow::new(LINES as u32, end(&memory), config, 2);
    let work = move |mut receiver: SharedReceiver<End, End>, keep: fn(u64) -> bool| {
        let found = receiver.poll_where(keep).expect("an honest sender").map(|message| message.word(0));
        (receiver, found)
    };
    let first = shared.receiver(end(&memory));
    let first = loom::thread::spawn(move || work(first, messages_of_first));
    let sender = loom::thread::spawn(move || {
        let sent = writer.try_send(&payload(LINES as u64).to_le_bytes()).expect("an honest receiver");
        (writer, sent)
    });
    let (mut receiver, mine) = work(shared.receiver(end(&memory)), |_| false);
    let (mut first, others) = first.join().expect("the other receiver does not panic");
    let (mut writer, sent) = sender.join().expect("the sender does not panic");
    let mut taken: Vec<_> = mine.into_iter().chain(others).collect();
    let mut drain = |receiver: &mut SharedReceiver<End, End>| {
        while let Some(message) = receiver.poll().expect("an honest sender") {
            taken.push(message.word(0));
        }
    };
    drain(&mut first);
    first.give_up();
    drain(&mut receiver);
    if sent == Sent::Full {
        // Every line was freed, and an idle look has pushed what the two left to each other.
        assert_eq!(writer.try_send(&payload(LINES as u64).to_le_bytes()), Ok(Sent::Sent));
    }
    drain(&mut receiver);
    taken
}

/// The sender stores into lines that were freed by either receiver, so a credit too early is a causality violation.
#[test]
fn two_receivers_take_each_message_once_and_lines_are_reused() {
    // Three threads: a third preemption would take an hour.
    model_with(2, || {
        let mut taken = share(|_| false);
        taken.sort_unstable();
        assert_eq!(taken, [payload(0), payload(2), payload(1)], "each message is taken once, whole");
    });
}

#[test]
fn a_receiver_that_keeps_the_window_gets_what_follows() {
    model_with(2, || {
        let mut taken = share(|word| word == payload(0));
        taken.sort_unstable();
        assert_eq!(taken, [payload(0), payload(2), payload(1)], "each message is taken once, whole");
    });
}
