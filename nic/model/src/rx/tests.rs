//! The receive engine, alone: rings that wrap, buffers that run out, hosts that misbehave.

use super::*;
use crate::deadlines::NEVER;
use crate::engine::DmaOwner;
use crate::fetch::test_host::{BASE, Random, TestHost, descriptor};

const RING: u64 = BASE;
const COMPLETIONS: u64 = BASE + 512 * 1024;
const BUFFERS: u64 = BASE + (1 << 20);
const MAX_FRAME: u32 = 9216;
/// Rounds of a random run after which it is taken to be stuck.
const MAX_ROUNDS: usize = 1_000_000;

fn ring(lines: u32) -> QueueSettings {
    QueueSettings { rx_mode: 1, rx_ring_address: RING, rx_ring_entries: lines, ..QueueSettings::default() }
}

fn descriptors(entries: u32) -> QueueSettings {
    QueueSettings {
        rx_mode: 2,
        rx_ring_address: RING,
        rx_ring_entries: entries,
        rx_completion_address: COMPLETIONS,
        ..QueueSettings::default()
    }
}

struct Bench {
    engine: RxEngine,
    shared: Shared,
    host: TestHost,
}

impl Bench {
    fn new(queues: u32, rx_lossless: bool) -> Self {
        let config = NicConfig { queues, max_frame_bytes: MAX_FRAME, rx_lossless, ..NicConfig::default() };
        Bench { engine: RxEngine::new(&config), shared: Shared::new(queues), host: TestHost::new(8 << 20) }
    }

    fn started(settings: &QueueSettings) -> Self {
        let mut bench = Bench::new(1, true);
        bench.engine.start(QueueId(0), settings, &mut bench.shared).unwrap();
        bench
    }

    fn frame(&mut self, frame: &[u8]) -> Accept {
        self.engine.frame_arrived(frame, &mut self.shared)
    }

    fn progress(&mut self) {
        self.engine.progress(&mut self.shared);
        self.host.take_wants(&mut self.shared);
    }

    fn answer(&mut self, index: usize) {
        let (read, data) = self.host.answer(index);
        assert_eq!(read.owner, DmaOwner::Receive);
        let data = data.as_ref().map(Vec::as_slice).map_err(|error| *error);
        self.engine.dma_completed(read.tag, data, &mut self.shared);
    }

    fn settle(&mut self) {
        self.progress();
        while !self.host.waiting.is_empty() {
            self.answer(0);
            self.progress();
        }
    }
}

/// The host's half of a contiguous ring, as simple as can be.
struct RingHost {
    lines: u64,
    next: u64,
}

impl RingHost {
    fn poll(&mut self, host: &mut TestHost) -> Option<Vec<u8>> {
        let at = |line: u64| RING + line % self.lines * 64;
        let header = host.word(at(self.next));
        if header == 0 {
            return None;
        }
        assert_eq!(header >> 32, 1, "valid");
        let bytes = header as u32 as u64;
        let lines = (8 + bytes).div_ceil(64);
        let frame = (8..8 + bytes).map(|i| host.get(at(self.next + i / 64) + i % 64, 1)[0]).collect();
        for line in self.next..self.next + lines {
            host.put(at(line), &[0; 8]);
        }
        self.next += lines;
        Some(frame)
    }
}

fn random_ring(seed: u64) {
    let mut random = Random::new(seed);
    let lines = 256u64 << random.below(3);
    let mut bench = Bench::started(&ring(lines as u32));
    let mut host = RingHost { lines, next: 0 };
    let mut sent = VecDeque::new();
    let (mut refused, mut received) = (0, 0);
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck after {received} frames");
        if received >= 300 {
            break;
        }
        match random.below(4) {
            0 | 1 => {
                let long = [64, 1514, MAX_FRAME as usize][random.below(3)];
                let bytes = 14 + random.below(long - 13);
                let frame = random.bytes(bytes);
                match bench.frame(&frame) {
                    Accept::Taken => sent.push_back(frame),
                    Accept::Refused => refused += 1,
                }
            }
            2 => bench.progress(),
            _ => {
                while let Some(frame) = host.poll(&mut bench.host) {
                    assert!(sent.pop_front() == Some(frame), "seed {seed}, frame {received}");
                    received += 1;
                }
                bench.engine.freed(QueueId(0), host.next, &mut bench.shared);
            }
        }
    }
    assert!(refused > 0 || lines > 256, "seed {seed}: the ring was never full");
    let counters = &bench.shared.counters;
    assert_eq!((counters.rx_no_space, counters.rx_oversize, counters.bad_accesses), (0, 0, 0), "seed {seed}");
}

#[test]
fn frames_come_whole_and_in_order_through_a_ring_that_wraps() {
    for seed in 0..40 {
        random_ring(seed);
    }
}

#[test]
fn the_header_word_is_written_after_the_bytes() {
    let mut bench = Bench::started(&ring(4));
    assert_eq!(bench.frame(&[1; 100]), Accept::Taken);
    assert_eq!(bench.frame(&[2; 64]), Accept::Taken);
    bench.progress();
    let header = |line: u64| (RING + line * 64, 8);
    assert_eq!(bench.host.writes, [(RING + 8, 100), header(0), (RING + 136, 64), header(2)]);
    bench.engine.freed(QueueId(0), 4, &mut bench.shared);
    bench.engine.freed(QueueId(0), 2, &mut bench.shared);
    assert_eq!(bench.frame(&[3; 14]), Accept::Taken);
    assert_eq!(bench.frame(&[4; 14]), Accept::Taken);
    assert_eq!(bench.frame(&[5; 14]), Accept::Taken);
    assert_eq!(bench.frame(&[6; 57]), Accept::Refused, "one line is left");
    bench.engine.freed(QueueId(0), 5, &mut bench.shared);
    bench.host.writes.clear();
    assert_eq!(bench.frame(&[6; 100]), Accept::Taken);
    bench.progress();
    let wrapped = &bench.host.writes[6..];
    assert_eq!(wrapped, [(RING + 3 * 64 + 8, 56), (RING, 44), header(3)], "two pieces, then the header");
}

#[test]
fn without_room_a_frame_is_refused_or_dropped_as_the_port_is_made() {
    for lossless in [true, false] {
        let mut bench = Bench::new(1, lossless);
        assert_eq!(bench.frame(&[0; 64]), Accept::Taken, "nobody receives");
        assert_eq!(bench.shared.counters.rx_no_space, 1);
        bench.engine.start(QueueId(0), &ring(2), &mut bench.shared).unwrap();
        assert_eq!(bench.frame(&[0; 64]), Accept::Taken);
        assert_eq!(bench.frame(&[0; 64]), if lossless { Accept::Refused } else { Accept::Taken });
        assert_eq!(bench.shared.counters.rx_no_space, if lossless { 1 } else { 2 });
        assert_eq!(bench.shared.counters.rx_frames, 1);
    }
}

#[test]
fn frames_too_long_for_port_ring_or_buffer_and_empty_ones_are_dropped() {
    let mut bench = Bench::started(&ring(2));
    assert_eq!(bench.frame(&[0; 121]), Accept::Taken, "two lines hold 120 bytes");
    assert_eq!(bench.frame(&vec![0; MAX_FRAME as usize + 1]), Accept::Taken);
    assert_eq!(bench.frame(&[]), Accept::Taken);
    let counters = &bench.shared.counters;
    assert_eq!((counters.rx_oversize, counters.runts, counters.rx_frames), (2, 1, 0));
    assert_eq!(bench.frame(&[0; 120]), Accept::Taken);
    assert_eq!(bench.shared.counters.rx_frames, 1);
}

#[test]
fn a_freed_count_that_cannot_be_is_counted_and_ignored() {
    let mut bench = Bench::started(&ring(4));
    assert_eq!(bench.frame(&[0; 100]), Accept::Taken);
    assert_eq!(bench.frame(&[0; 100]), Accept::Taken);
    for count in [5, u64::MAX] {
        bench.engine.freed(QueueId(0), count, &mut bench.shared);
    }
    assert_eq!(bench.frame(&[0; 14]), Accept::Refused);
    bench.engine.freed(QueueId(0), 2, &mut bench.shared);
    bench.engine.freed(QueueId(0), 1, &mut bench.shared);
    assert_eq!(bench.shared.counters.bad_accesses, 3);
    assert_eq!(bench.frame(&[0; 120]), Accept::Taken);
    assert_eq!(bench.frame(&[0; 14]), Accept::Refused);
}

#[test]
fn rings_that_make_no_sense_do_not_start() {
    let mut bench = Bench::new(1, true);
    let bad = [
        (ring(0), Cause::BadLength),
        (ring(3), Cause::BadLength),
        (QueueSettings { rx_ring_address: RING + 8, ..ring(4) }, Cause::DmaError),
        (QueueSettings { rx_ring_address: u64::MAX - 63, ..ring(4) }, Cause::DmaError),
        (descriptors(5), Cause::BadLength),
        (QueueSettings { rx_completion_address: 4, ..descriptors(4) }, Cause::DmaError),
        (QueueSettings { rx_mode: 3, ..ring(4) }, Cause::BadLength),
    ];
    for (settings, cause) in bad {
        assert_eq!(bench.engine.start(QueueId(0), &settings, &mut bench.shared), Err(cause), "{settings:?}");
    }
    assert_eq!(bench.engine.start(QueueId(0), &QueueSettings::default(), &mut bench.shared), Ok(()));
    assert_eq!(bench.frame(&[0; 64]), Accept::Taken);
    assert_eq!(bench.shared.counters.rx_no_space, 1, "mode 0 receives nothing");
}

const BUFFER_BYTES: u32 = 2048;

fn lend_all(bench: &mut Bench, entries: u64) {
    for i in 0..entries {
        let entry = descriptor(BUFFERS + i * 2048, BUFFER_BYTES, 0);
        bench.host.put(RING + i * 16, &entry);
    }
}

fn random_descriptors(seed: u64) {
    let mut random = Random::new(seed);
    let entries = 8u64 << random.below(5);
    let mut bench = Bench::new(1, true);
    lend_all(&mut bench, entries);
    bench.engine.start(QueueId(0), &descriptors(entries as u32), &mut bench.shared).unwrap();
    let mut sent = VecDeque::new();
    let mut next = 0u64;
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck after {next} frames");
        if next >= 500 {
            break;
        }
        match random.below(5) {
            0 | 1 => {
                let bytes = 14 + random.below(BUFFER_BYTES as usize - 13);
                let frame = random.bytes(bytes);
                if bench.frame(&frame) == Accept::Taken {
                    sent.push_back(frame);
                }
            }
            2 => bench.progress(),
            3 if !bench.host.waiting.is_empty() => {
                let index = random.below(bench.host.waiting.len());
                bench.answer(index);
            }
            _ => {
                loop {
                    let entry = bench.host.word(COMPLETIONS + next % entries * 8);
                    let lap_of_next = u64::from((next / entries).is_multiple_of(2));
                    if entry >> 32 != lap_of_next {
                        break;
                    }
                    let got = bench.host.get(BUFFERS + next % entries * 2048, entry as u32 as usize);
                    assert!(sent.pop_front() == Some(got), "seed {seed}, frame {next}");
                    next += 1;
                }
                bench.engine.freed(QueueId(0), next, &mut bench.shared);
            }
        }
    }
    assert_eq!(bench.shared.counters.bad_accesses, 0, "seed {seed}");
    assert!(bench.shared.counters.descriptor_fetches > 0);
}

#[test]
fn frames_fill_buffers_in_order_whatever_order_descriptors_come_in() {
    for seed in 0..40 {
        random_descriptors(seed);
    }
}

#[test]
fn completion_follows_its_frame_and_useless_buffers_return_empty() {
    let mut bench = Bench::new(1, true);
    lend_all(&mut bench, 4);
    bench.host.put(RING, &descriptor(BUFFERS, 0, 0));
    bench.host.put(RING + 16, &descriptor(u64::MAX - 10, 2048, 0));
    bench.host.put(RING + 32, &descriptor(BUFFERS, 100, 0));
    bench.engine.start(QueueId(0), &descriptors(4), &mut bench.shared).unwrap();
    assert_eq!(bench.frame(&[1; 64]), Accept::Refused, "its descriptors are on their way");
    bench.settle();
    assert_eq!(bench.frame(&[1; 101]), Accept::Taken);
    assert_eq!((bench.shared.counters.rx_oversize, bench.shared.counters.bad_lengths), (1, 2));
    assert_eq!(bench.frame(&[2; 100]), Accept::Taken);
    bench.progress();
    let completion = |i: u64| (COMPLETIONS + i * 8, 8);
    assert_eq!(bench.host.writes, [completion(0), completion(1), (BUFFERS, 100), completion(2)]);
    let words: Vec<u64> = (0..4).map(|i| bench.host.word(COMPLETIONS + i * 8)).collect();
    assert_eq!(words, [1 << 32, 1 << 32, 100 | 1 << 32, 0]);
    assert_eq!(bench.frame(&[3; 64]), Accept::Taken);
    assert_eq!(bench.frame(&[4; 64]), Accept::Refused, "the host has lent no more");
    bench.engine.freed(QueueId(0), 5, &mut bench.shared);
    bench.engine.freed(QueueId(0), u64::MAX, &mut bench.shared);
    assert_eq!(bench.shared.counters.bad_accesses, 2);
    bench.engine.freed(QueueId(0), 4, &mut bench.shared);
    bench.settle();
    assert_eq!(bench.frame(&[5; 64]), Accept::Taken);
    bench.settle();
    let second_lap: Vec<u64> = (0..3).map(|i| bench.host.word(COMPLETIONS + i * 8)).collect();
    assert_eq!(second_lap, [0, 0, 64], "lap 1 has its bit clear");
}

#[test]
fn a_descriptor_ring_that_cannot_be_read_fails_the_queue() {
    for is_short in [false, true] {
        let mut bench = Bench::started(&QueueSettings { rx_ring_address: 0x1000, ..descriptors(8) });
        bench.progress();
        if is_short {
            let (read, _) = bench.host.answer(0);
            bench.engine.dma_completed(read.tag, Ok(&[0; 16]), &mut bench.shared);
        } else {
            bench.answer(0);
        }
        assert_eq!(bench.shared.failed, [(QueueId(0), Cause::DmaError)]);
        bench.engine.quarantine(QueueId(0), &mut bench.shared);
        assert_eq!(bench.frame(&[0; 64]), Accept::Taken);
        assert_eq!((bench.shared.counters.dma_errors, bench.shared.counters.rx_no_space), (1, 1));
    }
}

#[test]
fn an_answer_to_a_former_life_is_ignored() {
    let mut bench = Bench::new(1, true);
    lend_all(&mut bench, 4);
    bench.engine.start(QueueId(0), &descriptors(4), &mut bench.shared).unwrap();
    bench.progress();
    bench.engine.stop(QueueId(0), &mut bench.shared);
    bench.engine.start(QueueId(0), &descriptors(4), &mut bench.shared).unwrap();
    bench.answer(0);
    assert_eq!(bench.frame(&[0; 64]), Accept::Refused);
    bench.settle();
    assert_eq!(bench.frame(&[0; 64]), Accept::Taken);
}

#[test]
fn a_full_dma_port_refuses_for_a_while() {
    for settings in [ring(64), descriptors(64)] {
        let mut bench = Bench::new(1, false);
        lend_all(&mut bench, 64);
        bench.engine.start(QueueId(0), &settings, &mut bench.shared).unwrap();
        bench.settle();
        while bench.shared.dma.write(BUFFERS, &[0; 8]) {}
        assert_eq!(bench.frame(&[0; 64]), Accept::Refused, "even where frames may be dropped");
        bench.progress();
        assert_eq!(bench.frame(&[0; 64]), Accept::Taken);
    }
}

#[test]
fn interrupts_are_moderated_by_count_and_time() {
    let moderated = QueueSettings { rx_moderation_frames: 3, rx_moderation_ns: 100, ..ring(64) };
    let mut bench = Bench::started(&moderated);
    bench.shared.interrupts.set_mask(u64::MAX);
    for n in 0..4 {
        assert_eq!(bench.shared.interrupts.take(), None, "after {n} frames");
        assert_eq!(bench.frame(&[0; 14]), Accept::Taken);
        if n == 2 {
            assert_eq!(bench.shared.interrupts.take(), Some(0), "by count");
        }
    }
    assert_eq!(bench.engine.wake_at(), SimTime::from_ns(100));
    bench.shared.now = SimTime::from_ns(100);
    bench.engine.time_passed(&mut bench.shared);
    assert_eq!((bench.shared.interrupts.take(), bench.engine.wake_at()), (Some(0), NEVER), "by time");
    let mut each = Bench::started(&ring(64));
    each.shared.interrupts.set_mask(u64::MAX);
    for _ in 0..3 {
        assert_eq!(each.frame(&[0; 14]), Accept::Taken);
        assert_eq!(each.shared.interrupts.take(), Some(0));
    }
}

#[test]
fn flows_spread_over_the_queues_that_receive_and_stay_there() {
    let mut bench = Bench::new(4, true);
    for queue in [1, 3] {
        let settings = QueueSettings { rx_ring_address: RING + u64::from(queue) * 65536, ..ring(1024) };
        bench.engine.start(QueueId(queue), &settings, &mut bench.shared).unwrap();
    }
    for n in 0..200u8 {
        assert_eq!(bench.frame(&[n; 14]), Accept::Taken);
    }
    bench.progress();
    let in_queue = |bench: &Bench, queue: u64| -> Vec<u8> {
        let at = |line: u64| RING + queue * 65536 + line * 64;
        (0..1024)
            .take_while(|line| bench.host.word(at(*line)) != 0)
            .map(|l| bench.host.get(at(l) + 8, 1)[0])
            .collect()
    };
    let (one, three) = (in_queue(&bench, 1), in_queue(&bench, 3));
    assert_eq!(one.len() + three.len(), 200);
    assert!(one.len() > 50 && three.len() > 50, "{} and {}", one.len(), three.len());
    bench.engine.stop(QueueId(3), &mut bench.shared);
    for n in &three {
        assert_eq!(bench.frame(&[*n; 14]), Accept::Taken);
    }
    bench.progress();
    assert_eq!(in_queue(&bench, 1).len(), 200);
}
