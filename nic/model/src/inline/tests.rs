//! The engine of pushed entries, alone: disorder inside pushes and between halves, pushes that never end, a busy wire.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, Enables, QueueId, SimTime};
use beeline_spec::Interface;
use beeline_spec::entry::{EntryHeader, EntryKind, PUSH_MAX_FRAME_BYTES, RING_MAX_FRAME_BYTES, position_of};

use super::*;
use crate::NicConfig;
use crate::engine::{Cause, DmaOwner, Engine, FetchEngine, FrameSource, QueueSettings, Shared, WindowEngine};
use crate::fetch::test_host::{BASE, Random, TestHost};

const HEAD: u64 = BASE;
const RING: u64 = BASE + 4096;
const RING_LINES: u64 = 64;
const BUFFERS: u64 = BASE + 16 * 4096;
const BUFFER_BYTES: u64 = 4096;
const EPOCH: u8 = 9;
const QUEUE: QueueId = QueueId(0);
const HOLE_TIMEOUT_NS: u64 = 100;
/// Rounds of a random run after which it is taken to be stuck.
const MAX_ROUNDS: usize = 1_000_000;

fn settings() -> QueueSettings {
    QueueSettings {
        epoch: EPOCH,
        window_lines: 16,
        hole_timeout_ns: HOLE_TIMEOUT_NS,
        tx_ring_address: RING,
        tx_ring_entries: RING_LINES as u32,
        tx_head_address: HEAD,
        tx_moderation_frames: 1,
        ..QueueSettings::default()
    }
}

/// A store on its way: offset in the window, bytes.
type Store = (u64, Vec<u8>);

struct Bench {
    engine: InlineEngine,
    shared: Shared,
    host: TestHost,
    /// Lines written to the ring.
    tail: u64,
    pushes: u64,
}

impl Bench {
    fn new(settings: &QueueSettings) -> Self {
        let config = NicConfig { queues: 1, max_frame_bytes: 4000, ..NicConfig::default() };
        let mut bench = Bench {
            engine: InlineEngine::new(&config),
            shared: Shared::new(1),
            host: TestHost::new(2 << 20),
            tail: 0,
            pushes: 0,
        };
        bench.engine.start(QUEUE, settings, &mut bench.shared).unwrap();
        bench
    }

    /// Puts an entry for a frame into the ring: its bytes, whole lines.
    fn entry(&mut self, frame: &[u8], kind: EntryKind) -> Vec<u8> {
        let header = EntryHeader {
            length_bytes: frame.len() as u16,
            kind,
            wants_irq: false,
            epoch: EPOCH,
            position: position_of(self.tail),
        };
        let buffer = BUFFERS + self.tail % RING_LINES * BUFFER_BYTES;
        let mut bytes = header.encode().to_le_bytes().to_vec();
        bytes.extend(if kind == EntryKind::Address { buffer } else { 0 }.to_le_bytes());
        match kind {
            EntryKind::Whole => bytes.extend(frame),
            EntryKind::Address => self.host.put(buffer, frame),
            EntryKind::Nothing => {}
        }
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        for line in bytes.chunks(64) {
            self.host.put(RING + self.tail % RING_LINES * 64, line);
            self.tail += 1;
        }
        bytes
    }

    fn free_lines(&self) -> u64 {
        RING_LINES - (self.tail - self.host.word(HEAD))
    }

    /// The half that the next push goes to.
    fn next_half(&mut self) -> u64 {
        self.pushes += 1;
        (self.pushes - 1) % 2
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        let accept = self.engine.write_arrived(QUEUE, at, bytes, Enables::All, &mut self.shared);
        assert_eq!(accept, Accept::Taken);
    }

    fn push(&mut self, entry: &[u8]) {
        let half = self.next_half();
        self.store(half * 256, entry);
    }

    fn progress(&mut self) {
        self.engine.progress(&mut self.shared);
        self.host.take_wants(&mut self.shared);
    }

    fn answer(&mut self, index: usize) {
        let (read, data) = self.host.answer(index);
        assert_eq!(read.owner, DmaOwner::Transmit(Interface::Inline));
        let data = data.as_ref().map(Vec::as_slice).map_err(|error| *error);
        self.engine.dma_completed(read.tag, data, &mut self.shared);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let bytes = self.engine.head_bytes(QUEUE);
        let frame = self.engine.head(QUEUE)?.to_vec();
        assert_eq!(bytes, Some(frame.len() as u32));
        self.engine.pop(QUEUE, &mut self.shared);
        Some(frame)
    }

    /// Runs until nothing moves.
    fn run(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            self.progress();
            while let Some(frame) = self.pop() {
                frames.push(frame);
                self.progress();
            }
            if self.host.waiting.is_empty() {
                return frames;
            }
            self.answer(0);
        }
    }

    fn pass(&mut self, ns: u64) {
        self.shared.now = SimTime(self.shared.now.0 + SimTime::from_ns(ns).0);
        if self.engine.wake_at() <= self.shared.now {
            self.engine.time_passed(&mut self.shared);
        }
    }
}

/// An entry in stores as a sender's write-combining buffers may let them go: lines in any order, some in two pieces.
fn stores(random: &mut Random, half: u64, entry: &[u8]) -> Vec<Store> {
    let mut stores = Vec::new();
    for (line, bytes) in entry.chunks(64).enumerate() {
        let at = half * 256 + line as u64 * 64;
        let cut = if random.below(3) == 0 { 1 + random.below(63) } else { 64 };
        stores.push((at, bytes[..cut].to_vec()));
        if cut < 64 {
            stores.push((at + cut as u64, bytes[cut..].to_vec()));
        }
    }
    for last in (1..stores.len()).rev() {
        stores.swap(last, random.below(last + 1));
    }
    stores
}

/// What a random run must keep: frames in ring order, unchanged, each once, whatever becomes of its push.
fn random_run(seed: u64) -> Shared {
    let mut random = Random::new(seed);
    let self_test = [0, 0, 2, 5][random.below(4)];
    let mut bench = Bench::new(&QueueSettings { tx_self_test: self_test, ..settings() });
    // Stores under way of the two halves. A push to a half begins when the one before it there has arrived: the fence.
    let mut under_way: [VecDeque<Store>; 2] = Default::default();
    let mut sent = VecDeque::new();
    let (mut written, mut popped, goal) = (0, 0, 200);
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {popped} of {written} are out");
        match random.below(7) {
            0 if written < goal && bench.free_lines() >= 8 => {
                let (longest, kind) = match random.below(6) {
                    0 => (4000, EntryKind::Address),
                    1 => (RING_MAX_FRAME_BYTES, EntryKind::Whole),
                    _ => (PUSH_MAX_FRAME_BYTES, EntryKind::Whole),
                };
                let bytes = 14 + random.below(longest - 13);
                let frame = random.bytes(bytes);
                let entry = bench.entry(&frame, kind);
                sent.push_back(frame);
                written += 1;
                let half = bench.pushes as usize % 2;
                if random.below(4) > 0 && under_way[half].is_empty() {
                    bench.next_half();
                    // Of an entry that is longer than a half, the first line goes.
                    let pushed = if entry.len() > 256 { &entry[..64] } else { &entry };
                    under_way[half].extend(stores(&mut random, half as u64, pushed));
                } else {
                    bench.engine.doorbell(QUEUE, bench.tail, &mut bench.shared);
                }
            }
            1 | 2 => {
                if let Some((at, bytes)) = under_way[random.below(2)].pop_front() {
                    bench.store(at, &bytes);
                }
            }
            3 => bench.progress(),
            4 if !bench.host.waiting.is_empty() => {
                let index = random.below(bench.host.waiting.len());
                bench.answer(index);
            }
            5 => {
                if let Some(frame) = bench.pop() {
                    assert_eq!(Some(frame), sent.pop_front(), "seed {seed}, frame {popped}");
                    popped += 1;
                }
            }
            _ => bench.pass(random.below(60) as u64),
        }
        if popped == goal && under_way.iter().all(VecDeque::is_empty) {
            break;
        }
    }
    assert_eq!(bench.run(), Vec::<Vec<u8>>::new());
    assert_eq!(bench.host.word(HEAD), bench.tail, "seed {seed}: an idle queue has reported everything");
    let counters = &bench.shared.counters;
    assert_eq!((counters.dma_errors, counters.bad_headers, counters.bad_lengths), (0, 0, 0), "seed {seed}");
    assert!(bench.shared.failed.is_empty(), "seed {seed}: {:?}", bench.shared.failed);
    bench.shared
}

#[test]
fn frames_leave_once_and_in_order_whatever_becomes_of_their_pushes() {
    let (mut taken, mut torn, mut unused, mut tested) = (0, 0, 0, 0);
    for seed in 0..80 {
        let counters = random_run(seed).counters;
        taken += counters.push_taken;
        torn += counters.push_torn;
        unused += counters.push_unused;
        tested += counters.push_tested;
    }
    // Every way was gone often enough to mean something.
    assert!([taken, torn, unused, tested].iter().all(|n| *n > 50), "{taken} {torn} {unused} {tested}");
}

#[test]
fn garbage_in_the_window_fails_no_queue_and_makes_no_frame() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut bench = Bench::new(&settings());
        let mut expected = Vec::new();
        for number in 0..300u64 {
            let bytes = 1 + random.below(200);
            let at = random.below(1024 - bytes) as u64;
            let mut data = random.bytes(bytes);
            // Often a header that could be one, so that the rest of the path is reached; it names no entry of the ring.
            if random.below(2) == 0 && bytes >= 8 {
                let header = EntryHeader {
                    length_bytes: random.below(600) as u16,
                    kind: EntryKind::Nothing,
                    wants_irq: true,
                    epoch: EPOCH,
                    position: position_of(bench.tail + 1000 * number + 100),
                };
                data[..8].copy_from_slice(&header.encode().to_le_bytes());
            }
            bench.store(at, &data);
            bench.pass(random.below(50) as u64);
            if random.below(20) == 0 && bench.free_lines() >= 8 {
                let frame = random.bytes(64);
                bench.entry(&frame, EntryKind::Whole);
                bench.engine.doorbell(QUEUE, bench.tail, &mut bench.shared);
                expected.push(frame);
                assert_eq!(bench.run(), expected.split_off(0), "seed {seed}");
            }
        }
        assert!(bench.shared.failed.is_empty(), "seed {seed}: {:?}", bench.shared.failed);
    }
}

#[test]
fn a_push_that_finds_no_room_is_fetched_when_there_is() {
    let mut bench = Bench::new(&settings());
    // The wire stands still: frames wait until the payload memory holds no more.
    let mut sent = Vec::new();
    while bench.shared.counters.push_unused == 0 {
        let frame = vec![sent.len() as u8; 4000];
        let entry = bench.entry(&frame, EntryKind::Address);
        bench.push(&entry);
        bench.progress();
        while !bench.host.waiting.is_empty() {
            bench.answer(0);
        }
        sent.push(frame);
        assert!(sent.len() < 60, "the device holds what it likes");
    }
    assert_eq!(bench.run(), sent);
    assert_eq!(bench.host.word(HEAD), bench.tail);
}

#[test]
fn an_entry_with_nothing_tells_whether_its_push_was_used() {
    // A driver's self-test: the entry in the ring is another than the pushed one, and harmless either way.
    let mut bench = Bench::new(&settings());
    let mut entry = bench.entry(&[], EntryKind::Nothing);
    entry[2] |= 1 << 4;
    bench.shared.interrupts.set_mask(u64::MAX);
    bench.push(&entry);
    assert!(bench.run().is_empty());
    assert_eq!((bench.shared.interrupts.take(), bench.host.word(HEAD)), (Some(0), 1), "it was the push");
    let mut entry = bench.entry(&[], EntryKind::Nothing);
    entry[2] |= 1 << 4;
    bench.store(256, &entry[..8]);
    bench.pass(HOLE_TIMEOUT_NS);
    assert!(bench.run().is_empty());
    assert_eq!((bench.shared.interrupts.take(), bench.host.word(HEAD)), (None, 2), "it was the ring");
}

#[test]
fn a_ring_that_cannot_be_read_fails_its_queue() {
    let mut bench = Bench::new(&QueueSettings { tx_ring_address: 0x1000, ..settings() });
    bench.engine.doorbell(QUEUE, 1, &mut bench.shared);
    assert!(bench.run().is_empty());
    assert_eq!(bench.shared.failed, [(QUEUE, Cause::DmaError)]);
    bench.engine.doorbell(QUEUE, 2, &mut bench.shared);
    bench.progress();
    assert!(bench.host.waiting.is_empty(), "a failed queue asks for nothing");
}

#[test]
fn a_queue_that_makes_no_sense_does_not_start() {
    let mut bench = Bench::new(&settings());
    for (bad, cause) in [
        (QueueSettings { tx_ring_entries: 4, ..settings() }, Cause::BadLength),
        (QueueSettings { tx_ring_entries: 48, ..settings() }, Cause::BadLength),
        (QueueSettings { tx_ring_address: RING + 32, ..settings() }, Cause::BadLength),
        (QueueSettings { window_lines: 4, ..settings() }, Cause::BadLength),
        (QueueSettings { tx_head_address: HEAD + 4, ..settings() }, Cause::DmaError),
    ] {
        bench.engine.stop(QUEUE, &mut bench.shared);
        assert_eq!(bench.engine.start(QUEUE, &bad, &mut bench.shared), Err(cause), "{bad:?}");
    }
}
