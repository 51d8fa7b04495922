//! Plans of what a sender does, and the run that checks what comes out.

use std::collections::VecDeque;

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_window::{ArrivalTest, Receiver, Sent, Writer};
use proptest::prelude::*;

use crate::BLANK;
use crate::given::Given;

#[derive(Clone, Debug)]
pub enum Step {
    /// Send a message of this length.
    Send(usize),
    /// Reserve so much, write so much of it in pieces of so many bytes, end it in this way.
    Reserve { reserved: usize, written: usize, piece: usize, end: End },
    /// A batch of records of these lengths.
    Batch(Vec<usize>),
    /// Let so many pieces arrive.
    Arrive(usize),
    /// Poll so often.
    Poll(usize),
    /// Send so many messages of one line in turn, so that groups of lines are there.
    Burst(usize),
    /// Drain so many at most.
    Drain(usize),
    /// Receive in another way from now on: prefetch so far ahead, in groups or not, push credits for so many lines.
    Tune { prefetch_lines: u32, in_groups: bool, credit_lines: u32 },
}

/// How a reservation ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Commit,
    Drop,
    Forget,
}

/// Plans for a window of `lines` lines.
pub fn steps(lines: u32) -> impl Strategy<Value = Vec<Step>> {
    let max = lines as usize * 64 - 8;
    let length = prop_oneof![1 => 0..=56usize.min(max), 3 => 24..=(max / 2).max(40), 1 => 24..=max];
    let end = prop_oneof![3 => Just(End::Commit), 1 => Just(End::Drop), 1 => Just(End::Forget)];
    let reserve = (0..=max, 0..=100usize, prop_oneof![Just(1), Just(8), 1..200usize], end).prop_map(
        |(reserved, percent, piece, end)| Step::Reserve {
            reserved,
            written: reserved * percent / 100,
            piece,
            end,
        },
    );
    let tune = (0..=lines, any::<bool>(), 0..=lines).prop_map(|(prefetch_lines, in_groups, credit_lines)| {
        Step::Tune { prefetch_lines, in_groups, credit_lines }
    });
    let step = prop_oneof![
        6 => length.prop_map(Step::Send),
        3 => reserve,
        2 => proptest::collection::vec(0..=(max - 2).min(150), 0..8).prop_map(Step::Batch),
        6 => (0..200usize).prop_map(Step::Arrive),
        4 => (0..6usize).prop_map(Step::Poll),
        3 => (0..20usize).prop_map(Step::Burst),
        4 => (0..40usize).prop_map(Step::Drain),
        2 => tune,
    ];
    proptest::collection::vec(step, 1..120)
}

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, good enough to choose an order.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn payload(&mut self, words: [u64; 4], bytes: usize) -> Vec<u8> {
        let whole = (0..bytes.div_ceil(8)).flat_map(|_| words[self.below(4)].to_le_bytes());
        whole.take(bytes).collect()
    }
}

/// Words of payloads most of which are escaped: the blank, its neighbours, zero.
pub const NEAR_BLANK: [u64; 4] = [BLANK, BLANK + 1, BLANK - 1, 0];
/// Words of payloads that are never escaped, and so take the receiver's short way.
pub const PLAIN: [u64; 4] = [BLANK + 2, BLANK + 1, BLANK - 1, 0];

/// What was sent, and how much of it would be escaped in a blank window.
#[derive(Debug, Default)]
pub struct Tally {
    pub messages: usize,
    pub escaped: usize,
    pub laps: u64,
}

/// A sent message: its bytes, and how many words had been stored when it was complete.
#[derive(Debug)]
pub struct Expected {
    pub payload: Vec<u8>,
    pub stored_words: u64,
}

/// A sender that follows a plan.
pub struct Sender<P, C> {
    pub writer: Writer<P, C>,
    pub random: Random,
    /// Words that payloads are made of.
    pub words: [u64; 4],
    pub expected: VecDeque<Expected>,
    pub tally: Tally,
}

impl<P: StorePort, C: CreditSource> Sender<P, C> {
    pub fn new(writer: Writer<P, C>, seed: u64) -> Self {
        let (random, words) = (Random(seed), NEAR_BLANK);
        Sender { writer, random, words, expected: VecDeque::new(), tally: Tally::default() }
    }

    fn expect(&mut self, payload: Vec<u8>) {
        self.tally.messages += 1;
        let escaped = payload.chunks_exact(8).any(|word| word == BLANK.to_le_bytes());
        self.tally.escaped += usize::from(escaped);
        self.expected.push_back(Expected { payload, stored_words: 0 });
    }

    /// Does what a step says; `stored_words` gives the words stored so far.
    pub fn act(&mut self, step: &Step, stored_words: &dyn Fn() -> u64) {
        let before = self.expected.len();
        match step {
            Step::Send(bytes) => self.send(*bytes),
            Step::Burst(messages) => {
                for _ in 0..*messages {
                    let bytes = self.random.below(57);
                    self.act(&Step::Send(bytes), stored_words);
                }
            }
            Step::Reserve { reserved, written, piece, end } => {
                self.reserve(*reserved, *written, *piece, *end)
            }
            Step::Batch(lengths) => self.batch(lengths),
            Step::Arrive(_) | Step::Poll(_) | Step::Drain(_) | Step::Tune { .. } => {}
        }
        for expected in self.expected.iter_mut().skip(before).filter(|expected| expected.stored_words == 0) {
            expected.stored_words = stored_words();
        }
        self.tally.laps = self.writer.position().0 / u64::from(self.writer.lines());
    }

    fn send(&mut self, bytes: usize) {
        let payload = self.random.payload(self.words, bytes);
        if self.writer.try_send(&payload).expect("it fits") == Sent::Sent {
            self.expect(payload);
        }
    }

    fn reserve(&mut self, reserved: usize, written: usize, piece: usize, end: End) {
        let payload = self.random.payload(self.words, written);
        let Some(mut reservation) = self.writer.reserve(reserved).expect("it fits") else { return };
        for bytes in payload.chunks(piece) {
            reservation.write(bytes).expect("it was reserved");
        }
        match end {
            End::Commit => {
                reservation.commit();
                self.expect(payload);
            }
            End::Drop => drop(reservation),
            End::Forget => core::mem::forget(reservation),
        }
    }

    fn batch(&mut self, lengths: &[usize]) {
        let records: Vec<_> = lengths.iter().map(|bytes| self.random.payload(self.words, *bytes)).collect();
        let Some(mut batch) = self.writer.batch(usize::MAX).expect("credits are good") else { return };
        let mut taken = 0;
        for record in &records {
            if batch.push(record).expect("it fits a batch") == Sent::Full {
                break;
            }
            taken += 1;
        }
        batch.send();
        records.into_iter().take(taken).for_each(|record| self.expect(record));
    }
}

/// Takes one message and compares it with what is expected, by word and by copy.
pub fn receive<L: LoadPort, S: CreditSink, A: ArrivalTest>(
    receiver: &mut Receiver<L, S, A>,
    expected: &mut VecDeque<Expected>,
) -> bool {
    let start = receiver.next_start();
    let Some(message) = receiver.poll().expect("an honest sender") else { return false };
    compare(message, expected);
    assert!(receiver.next_start() >= start);
    true
}

/// As [`receive`], `max` messages at most in one call.
pub fn drain<L: LoadPort, S: CreditSink, A: ArrivalTest>(
    receiver: &mut Receiver<L, S, A>,
    expected: &mut VecDeque<Expected>,
    max: usize,
) {
    let before = expected.len();
    let taken = receiver.drain(max, |message| compare(message, expected)).expect("an honest sender");
    assert_eq!((taken, taken <= max), (before - expected.len(), true));
}

fn compare(mut message: impl Given, expected: &mut VecDeque<Expected>) {
    let want = expected.pop_front().expect("nothing is received that was not sent").payload;
    assert_eq!(message.len(), want.len());
    let mut out = vec![0xee; want.len() + 3];
    assert_eq!(message.copy_out(&mut out), want.len());
    assert_eq!(out[..want.len()], want);
    assert_eq!(out[want.len()..], [0xee; 3]);
    for (index, bytes) in want.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        assert_eq!(message.word(index), u64::from_le_bytes(word));
    }
    assert_eq!(message.word(want.len().div_ceil(8)), 0);
    let mut words = Vec::new();
    message.for_each_word(|word| words.extend(word.to_le_bytes()));
    assert_eq!(words[..want.len()], want);
    let folded = message.fold_words(Vec::new(), |mut all, word| {
        all.extend(word.to_le_bytes());
        all
    });
    assert_eq!(folded, words);
    assert!(words[want.len()..].iter().all(|byte| *byte == 0) && words.len() < want.len() + 8);
}

/// Runs a plan to its end. `arrive` lets up to so many pieces arrive and says how many wait still.
pub fn run<P, C, L, S, A>(
    plan: &[Step],
    sender: &mut Sender<P, C>,
    receiver: &mut Receiver<L, S, A>,
    mut arrive: impl FnMut(&mut Receiver<L, S, A>, &mut Random, usize) -> usize,
) where
    P: StorePort,
    C: CreditSource,
    L: LoadPort,
    S: CreditSink,
    A: ArrivalTest,
{
    for step in plan {
        match step {
            Step::Arrive(pieces) => {
                sender.writer.progress();
                arrive(receiver, &mut sender.random, *pieces);
            }
            Step::Poll(times) => {
                for _ in 0..*times {
                    receive(receiver, &mut sender.expected);
                }
            }
            Step::Drain(max) => drain(receiver, &mut sender.expected, *max),
            Step::Tune { prefetch_lines, in_groups, credit_lines } => {
                receiver.set_prefetch(*prefetch_lines);
                receiver.set_groups(*in_groups);
                receiver.set_coalescing(*credit_lines);
            }
            _ => sender.act(step, &|| 0),
        }
        assert!(receiver.next_start() <= sender.writer.position());
        assert!(receiver.frontier() >= receiver.next_start().0 * 64);
    }
    // An abandoned reservation that was forgotten is ended by whatever comes next.
    drop(sender.writer.reserve(0));
    let mut looks = 0;
    while receiver.next_start() < sender.writer.position() {
        sender.writer.progress();
        arrive(receiver, &mut sender.random, 64);
        receive(receiver, &mut sender.expected);
        looks += 1;
        assert!(looks < 100_000, "{} messages never arrive", sender.expected.len());
    }
    assert!(sender.expected.is_empty(), "{} messages are lost", sender.expected.len());
    // A look that finds nothing tells of every line that is free, however often credits were to be pushed.
    assert!(!receive(receiver, &mut sender.expected));
    assert_eq!(sender.writer.refresh(), Ok(sender.writer.lines()), "lines of which no credit came");
}
