//! The transmit engine with descriptors, alone: answers in any order, a wire that stalls, hosts that misbehave.

use std::collections::VecDeque;

use beeline_contract_device::{QueueId, SimTime};

use super::*;
use beeline_spec::Interface;

use crate::NicConfig;
use crate::deadlines::NEVER;
use crate::engine::{Cause, DmaOwner, Engine, FetchEngine, FrameSource, QueueSettings, Shared};
use crate::fetch::MAX_READS;
use crate::fetch::test_host::{BASE, Random, TestHost, descriptor};

const HEAD: u64 = BASE;
const RING: u64 = BASE + 4096;
const BUFFERS: u64 = BASE + 64 * 1024;
const MAX_FRAME: u32 = 9216;
/// Rounds of a random run after which it is taken to be stuck.
const MAX_ROUNDS: usize = 1_000_000;

fn settings(queue: u16, entries: u32) -> QueueSettings {
    QueueSettings {
        tx_ring_address: RING + u64::from(queue) * 8192,
        tx_ring_entries: entries,
        tx_head_address: HEAD + u64::from(queue) * 64,
        tx_moderation_frames: 1,
        ..QueueSettings::default()
    }
}

struct Bench {
    engine: DescriptorEngine,
    shared: Shared,
    host: TestHost,
}

impl Bench {
    fn new(queues: u32) -> Self {
        let config = NicConfig { queues, max_frame_bytes: MAX_FRAME, ..NicConfig::default() };
        Bench {
            engine: DescriptorEngine::new(&config),
            shared: Shared::new(queues),
            host: TestHost::new(8 << 20),
        }
    }

    fn start(&mut self, queue: u16, settings: &QueueSettings) {
        self.engine.start(QueueId(queue), settings, &mut self.shared).unwrap();
    }

    fn progress(&mut self) {
        self.engine.progress(&mut self.shared);
        self.host.take_wants(&mut self.shared);
    }

    fn answer(&mut self, index: usize) {
        let (read, data) = self.host.answer(index);
        assert_eq!(read.owner, DmaOwner::Transmit(Interface::Descriptor));
        let data = data.as_ref().map(Vec::as_slice).map_err(|error| *error);
        self.engine.dma_completed(read.tag, data, &mut self.shared);
    }

    /// Until nothing moves: answers in order, frames popped.
    fn run(&mut self, queue: u16) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            self.progress();
            while let Some(frame) = self.engine.head(QueueId(queue)) {
                frames.push(frame.to_vec());
                self.engine.pop(QueueId(queue), &mut self.shared);
                self.progress();
            }
            if self.host.waiting.is_empty() {
                return frames;
            }
            self.answer(0);
        }
    }

    /// Writes descriptor `index` of a queue with 64 entries or more.
    fn describe(&mut self, queue: u16, entries: u64, index: u64, address: u64, bytes: u32, flags: u32) {
        let at = RING + u64::from(queue) * 8192 + index % entries * 16;
        self.host.put(at, &descriptor(address, bytes, flags));
    }

    /// Describes `count` frames of 64 bytes from `first` on; frame i is filled with i.
    fn describe_small(&mut self, entries: u64, first: u64, count: u64) {
        for i in first..first + count {
            self.host.put(BUFFERS + i % 1024 * 64, &[i as u8; 64]);
            self.describe(0, entries, i, BUFFERS + i % 1024 * 64, 64, 0);
        }
    }
}

/// What a random run of several queues must keep: order, bytes, and completions that never run ahead.
fn random_run(seed: u64) {
    let mut random = Random::new(seed);
    let queues = 1 + random.below(3) as u16;
    let entries = 16u64 << random.below(4);
    let mut bench = Bench::new(u32::from(queues));
    for queue in 0..queues {
        let moderation = 1 + random.below(5) as u32;
        bench.start(
            queue,
            &QueueSettings { tx_moderation_frames: moderation, ..settings(queue, entries as u32) },
        );
    }
    let mut sent = vec![VecDeque::<Vec<u8>>::new(); usize::from(queues)];
    let (mut written, mut popped) = (vec![0u64; usize::from(queues)], vec![0u64; usize::from(queues)]);
    let goal = 150;
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {popped:?} of {written:?} written are out");
        if popped.iter().all(|popped| *popped == goal) {
            break;
        }
        let queue = random.below(usize::from(queues)) as u16;
        let q = usize::from(queue);
        match random.below(4) {
            0 => {
                let head = bench.host.word(HEAD + u64::from(queue) * 64);
                assert!(head <= popped[q], "seed {seed}: head {head} of {} popped", popped[q]);
                for _ in 0..random.below(20) {
                    if written[q] < goal && written[q] - head < entries {
                        let long = [64, 64, 1514, MAX_FRAME as usize][random.below(4)];
                        let bytes = 14 + random.below(long - 13);
                        let frame = random.bytes(bytes);
                        let slot = BUFFERS + u64::from(queue) * (2 << 20) + written[q] % entries * 9728;
                        let address = slot + random.below(64) as u64;
                        bench.host.put(address, &frame);
                        bench.describe(queue, entries, written[q], address, frame.len() as u32, 0);
                        sent[q].push_back(frame);
                        written[q] += 1;
                    }
                }
                bench.engine.doorbell(QueueId(queue), written[q], &mut bench.shared);
            }
            1 => bench.progress(),
            2 if !bench.host.waiting.is_empty() => {
                let index = random.below(bench.host.waiting.len());
                bench.answer(index);
            }
            3 => {
                let bytes = bench.engine.head_bytes(QueueId(queue));
                if let Some(frame) = bench.engine.head(QueueId(queue)) {
                    assert_eq!(bytes, Some(frame.len() as u32), "seed {seed}");
                    assert_eq!(
                        Some(frame),
                        sent[q].pop_front().as_deref(),
                        "seed {seed}, frame {}",
                        popped[q]
                    );
                    popped[q] += 1;
                    bench.engine.pop(QueueId(queue), &mut bench.shared);
                }
            }
            _ => {}
        }
    }
    bench.progress();
    for queue in 0..u64::from(queues) {
        let head = bench.host.word(HEAD + queue * 64);
        assert_eq!(head, goal, "seed {seed}: an idle queue has reported everything");
    }
    let counters = &bench.shared.counters;
    assert_eq!((counters.dma_errors, counters.bad_accesses, counters.bad_lengths), (0, 0, 0), "seed {seed}");
}

#[test]
fn frames_leave_in_ring_order_whatever_order_the_answers_come_in() {
    for seed in 0..60 {
        random_run(seed);
    }
}

#[test]
fn bad_descriptors_are_counted_and_do_not_stall_the_ring() {
    let mut bench = Bench::new(1);
    bench.start(0, &settings(0, 64));
    bench.describe_small(64, 0, 9);
    bench.describe(0, 64, 1, BUFFERS, 0, 0);
    bench.describe(0, 64, 3, BUFFERS, 13, 0);
    bench.describe(0, 64, 4, BUFFERS, MAX_FRAME + 1, 0);
    bench.describe(0, 64, 6, 8, 64, 0);
    bench.describe(0, 64, 7, u64::MAX - 100, 4000, 0);
    bench.engine.doorbell(QueueId(0), 9, &mut bench.shared);
    let frames: Vec<u8> = bench.run(0).iter().map(|frame| frame[0]).collect();
    assert_eq!(frames, [0, 2, 5, 8]);
    assert_eq!(bench.host.word(HEAD), 9);
    let counters = &bench.shared.counters;
    assert_eq!((counters.bad_lengths, counters.runts), (2, 1));
    assert!(counters.dma_errors >= 2);
    assert!(bench.shared.failed.is_empty());
}

#[test]
fn a_ring_of_bad_descriptors_alone_is_completed() {
    let mut bench = Bench::new(1);
    bench.start(0, &QueueSettings { tx_moderation_frames: 64, ..settings(0, 256) });
    for i in 0..256 {
        bench.describe(0, 256, i, BUFFERS, 0, 0);
    }
    bench.engine.doorbell(QueueId(0), 256, &mut bench.shared);
    assert!(bench.run(0).is_empty());
    assert_eq!((bench.host.word(HEAD), bench.shared.counters.bad_lengths), (256, 256));
}

#[test]
fn a_doorbell_that_makes_no_sense_is_counted_and_ignored() {
    let mut bench = Bench::new(2);
    bench.start(0, &settings(0, 64));
    bench.describe_small(64, 0, 3);
    bench.engine.doorbell(QueueId(0), 3, &mut bench.shared);
    for tail in [2, 65, u64::MAX] {
        bench.engine.doorbell(QueueId(0), tail, &mut bench.shared);
    }
    bench.engine.doorbell(QueueId(1), 1, &mut bench.shared);
    assert_eq!(bench.shared.counters.bad_accesses, 4);
    assert_eq!(bench.run(0).len(), 3);
}

#[test]
fn one_doorbell_fetches_in_bursts_and_ahead_of_the_payload() {
    let mut bench = Bench::new(1);
    bench.start(0, &settings(0, 256));
    bench.describe_small(256, 0, 256);
    bench.engine.doorbell(QueueId(0), 256, &mut bench.shared);
    bench.progress();
    assert_eq!(bench.host.waiting.len(), 4, "four bursts of 32 descriptors under way");
    bench.answer(0);
    bench.progress();
    assert_eq!(
        bench.host.waiting.len(),
        3 + 1 + 32,
        "32 payloads, and the next burst before any of them is there"
    );
    assert_eq!(bench.run(0).len(), 256);
    let counters = &bench.shared.counters;
    assert_eq!((counters.descriptor_fetches, counters.payload_fetches), (8, 256));
}

#[test]
fn frames_without_a_taker_wait_and_hold_the_rest_back() {
    let mut bench = Bench::new(1);
    bench.start(0, &settings(0, 256));
    bench.describe_small(256, 0, 256);
    bench.engine.doorbell(QueueId(0), 256, &mut bench.shared);
    bench.progress();
    while !bench.host.waiting.is_empty() {
        bench.answer(0);
        bench.progress();
    }
    assert_eq!(bench.shared.counters.payload_fetches, 128);
    let frames = bench.run(0);
    assert!(
        frames.iter().enumerate().all(|(i, frame)| *frame == [i as u8; 64]),
        "the first was not overwritten"
    );
    assert_eq!((frames.len(), bench.host.word(HEAD)), (256, 256));
}

#[test]
fn completions_and_interrupts_are_moderated_by_count_and_time() {
    let mut bench = Bench::new(1);
    let moderation = QueueSettings { tx_moderation_frames: 4, tx_moderation_ns: 1000, ..settings(0, 64) };
    bench.start(0, &moderation);
    bench.shared.interrupts.set_mask(u64::MAX);
    bench.describe_small(64, 0, 6);
    bench.describe(0, 64, 5, BUFFERS, 64, 1);
    bench.engine.doorbell(QueueId(0), 6, &mut bench.shared);
    assert_eq!(bench.run(0).len(), 6);
    assert_eq!((bench.host.word(HEAD), bench.shared.counters.completions), (4, 1), "by count");
    assert_eq!(bench.shared.interrupts.take(), None, "no descriptor up to there asked for one");
    assert_eq!(bench.engine.wake_at(), SimTime::from_ns(1000));
    bench.shared.now = SimTime::from_ns(999);
    bench.engine.time_passed(&mut bench.shared);
    bench.progress();
    assert_eq!(bench.host.word(HEAD), 4);
    bench.shared.now = SimTime::from_ns(1000);
    bench.engine.time_passed(&mut bench.shared);
    bench.progress();
    assert_eq!((bench.host.word(HEAD), bench.shared.counters.completions), (6, 2), "by time");
    assert_eq!(bench.shared.interrupts.take(), Some(0));
    assert_eq!(bench.engine.wake_at(), NEVER);
}

#[test]
fn without_a_time_completions_are_coalesced_until_the_ring_is_drained() {
    let mut bench = Bench::new(1);
    bench.start(0, &QueueSettings { tx_moderation_frames: 4, ..settings(0, 64) });
    bench.describe_small(64, 0, 7);
    bench.engine.doorbell(QueueId(0), 7, &mut bench.shared);
    assert_eq!(bench.run(0).len(), 7);
    assert_eq!((bench.host.word(HEAD), bench.shared.counters.completions), (7, 2), "at 4, and at the end");
    assert_eq!(bench.engine.wake_at(), NEVER);
}

#[test]
fn a_full_dma_port_delays_and_loses_nothing() {
    let mut bench = Bench::new(1);
    bench.start(0, &settings(0, 64));
    bench.describe_small(64, 0, 2);
    while bench.shared.dma.write(BASE + 8, &[0; 8]) {}
    bench.engine.doorbell(QueueId(0), 2, &mut bench.shared);
    bench.engine.progress(&mut bench.shared);
    assert_eq!(bench.shared.counters.descriptor_fetches, 0);
    bench.host.take_wants(&mut bench.shared);
    bench.progress();
    bench.answer(0);
    bench.progress();
    bench.answer(0);
    while bench.shared.dma.write(BASE + 8, &[0; 8]) {}
    bench.engine.pop(QueueId(0), &mut bench.shared);
    assert_eq!(bench.shared.counters.completions, 0, "there was no room for it");
    bench.host.take_wants(&mut bench.shared);
    bench.progress();
    assert_eq!(bench.host.word(HEAD), 1);
    assert_eq!(bench.run(0).len(), 1);
}

#[test]
fn a_timed_completion_that_finds_no_room_is_written_later() {
    let mut bench = Bench::new(1);
    bench.start(0, &QueueSettings { tx_moderation_frames: 8, tx_moderation_ns: 10, ..settings(0, 64) });
    bench.describe_small(64, 0, 1);
    bench.engine.doorbell(QueueId(0), 1, &mut bench.shared);
    assert_eq!(bench.run(0).len(), 1);
    while bench.shared.dma.write(BASE + 8, &[0; 8]) {}
    bench.shared.now = SimTime::from_ns(10);
    bench.engine.time_passed(&mut bench.shared);
    bench.host.take_wants(&mut bench.shared);
    assert_eq!(bench.host.word(HEAD), 0);
    bench.progress();
    assert_eq!(bench.host.word(HEAD), 1);
}

#[test]
fn an_answer_to_a_former_life_of_the_queue_is_ignored() {
    let mut bench = Bench::new(1);
    bench.start(0, &settings(0, 64));
    bench.describe_small(64, 0, 40);
    bench.engine.doorbell(QueueId(0), 40, &mut bench.shared);
    bench.progress();
    bench.answer(0);
    bench.progress();
    let late = bench.host.waiting.len();
    assert!(late > 30);
    bench.engine.stop(QueueId(0), &mut bench.shared);
    bench.start(0, &settings(0, 64));
    bench.engine.doorbell(QueueId(0), 2, &mut bench.shared);
    for _ in 0..late {
        bench.answer(0);
    }
    assert_eq!(bench.engine.head(QueueId(0)), None);
    let frames: Vec<u8> = bench.run(0).iter().map(|frame| frame[0]).collect();
    assert_eq!(frames, [0, 1]);
    bench.engine.dma_completed(77, Ok(&[0; 64]), &mut bench.shared);
}

#[test]
fn a_ring_that_cannot_be_read_fails_its_queue_alone() {
    let mut bench = Bench::new(2);
    bench.start(0, &QueueSettings { tx_ring_address: 0x1000, ..settings(0, 64) });
    bench.start(1, &settings(1, 64));
    bench.host.put(BUFFERS, &[9; 64]);
    bench.describe(1, 64, 0, BUFFERS, 64, 0);
    bench.engine.doorbell(QueueId(0), 1, &mut bench.shared);
    bench.engine.doorbell(QueueId(1), 1, &mut bench.shared);
    assert_eq!(bench.run(1), [vec![9; 64]]);
    assert_eq!(bench.shared.failed, [(QueueId(0), Cause::DmaError)]);
    assert_eq!(bench.shared.counters.dma_errors, 1);
    bench.engine.doorbell(QueueId(0), 5, &mut bench.shared);
    bench.progress();
    assert!(bench.host.waiting.is_empty(), "a failed queue asks for nothing");
}

#[test]
fn an_answer_of_another_length_is_no_answer() {
    let mut bench = Bench::new(1);
    bench.start(0, &settings(0, 64));
    bench.describe_small(64, 0, 2);
    bench.engine.doorbell(QueueId(0), 2, &mut bench.shared);
    bench.progress();
    bench.answer(0);
    bench.progress();
    for wrong in [&[0; 63][..], &[0; 65]] {
        let (read, _) = bench.host.answer(0);
        bench.engine.dma_completed(read.tag, Ok(wrong), &mut bench.shared);
    }
    bench.progress();
    assert_eq!(bench.engine.head(QueueId(0)), None);
    assert_eq!((bench.shared.counters.dma_errors, bench.host.word(HEAD)), (2, 2));
}

#[test]
fn a_ring_that_makes_no_sense_does_not_start() {
    let mut bench = Bench::new(1);
    for (bad, cause) in [
        (QueueSettings { tx_ring_entries: 0, ..settings(0, 64) }, Cause::BadLength),
        (QueueSettings { tx_ring_entries: 48, ..settings(0, 64) }, Cause::BadLength),
        (QueueSettings { tx_ring_address: RING + 8, ..settings(0, 64) }, Cause::BadLength),
        (QueueSettings { tx_head_address: HEAD + 4, ..settings(0, 64) }, Cause::DmaError),
    ] {
        assert_eq!(bench.engine.start(QueueId(0), &bad, &mut bench.shared), Err(cause), "{bad:?}");
    }
    assert_eq!(bench.shared.counters.bad_lengths, 3);
}

#[test]
fn queues_share_the_tags_fairly() {
    let mut bench = Bench::new(8);
    for queue in 0..8 {
        bench.start(queue, &settings(queue, 128));
        for i in 0..128 {
            bench.describe(queue, 128, i, BUFFERS, MAX_FRAME, 0);
        }
        bench.engine.doorbell(QueueId(queue), 128, &mut bench.shared);
    }
    bench.progress();
    while !bench.host.waiting.is_empty() && bench.host.waiting.iter().all(|read| read.bytes <= 512) {
        bench.answer(0);
    }
    bench.progress();
    assert!(bench.host.waiting.len() <= usize::from(MAX_READS));
    let mut popped = [0; 8];
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "stuck: {popped:?}");
        if popped.iter().all(|popped| *popped == 128) {
            break;
        }
        while !bench.host.waiting.is_empty() {
            bench.answer(0);
        }
        for queue in 0..8 {
            while bench.engine.head_bytes(QueueId(queue)).is_some() {
                bench.engine.pop(QueueId(queue), &mut bench.shared);
                popped[usize::from(queue)] += 1;
            }
        }
        let (least, most) = (popped.iter().min().unwrap(), popped.iter().max().unwrap());
        assert!(most - least <= 32, "{popped:?}");
        bench.progress();
    }
}
