//! Pipes of several queues told of in one ring: nothing is overwritten while queues come and go, and nothing is written
//! once the ring's owner has stopped.

use beeline_contract_device::{Accept, QueueId};
use beeline_spec::pipe::{self, Notification};

use crate::NicConfig;
use crate::engine::{Cause, Engine, QueueSettings, ReceiveEngine, Shared};
use crate::fetch::test_host::{BASE, Random, TestHost};
use crate::rx::RxEngine;

const QUEUES: u16 = 4;
const PIPE_LINES: u64 = 64;
const OWNER: QueueId = QueueId(0);

const fn pipe_at(queue: u16) -> u64 {
    BASE + (1 + queue as u64) * 8192
}

/// Of the owner, or of one that shares its ring.
fn settings(queue: u16, epoch: u8, entries: u32) -> QueueSettings {
    QueueSettings {
        epoch,
        rx_mode: 3,
        rx_ring_address: pipe_at(queue),
        rx_ring_entries: PIPE_LINES as u32,
        rx_completion_address: BASE,
        rx_notify_entries: entries,
        rx_notify_owner: (queue != OWNER.0).then_some(OWNER),
        rx_moderation_frames: 1,
        ..QueueSettings::default()
    }
}

struct Bench {
    engine: RxEngine,
    shared: Shared,
    host: TestHost,
}

fn bench() -> Bench {
    let config = NicConfig { queues: QUEUES.into(), max_frame_bytes: 1518, ..NicConfig::default() };
    let engine = RxEngine::new(&config);
    Bench { engine, shared: Shared::new(QUEUES.into()), host: TestHost::new(1 << 20) }
}

impl Bench {
    fn start(&mut self, queue: u16, epoch: u8, entries: u32) -> Result<(), Cause> {
        self.engine.start(QueueId(queue), &settings(queue, epoch, entries), &mut self.shared)
    }

    fn turn(&mut self) {
        self.engine.progress(&mut self.shared);
        self.host.take_wants(&mut self.shared);
    }
}

/// One pipe as the host sees it.
#[derive(Clone, Copy, Default)]
struct Life {
    runs: bool,
    epoch: u8,
    tail: u64,
    read: u64,
    freed: u64,
}

/// The host's end of the ring.
struct Reader {
    entries: u32,
    looked_at: u64,
    lives: [Life; QUEUES as usize],
    /// The last frame's number that came from each queue.
    last: [u64; QUEUES as usize],
    received: u64,
    stale: u64,
}

impl Reader {
    fn look(&mut self, host: &TestHost) -> bool {
        let at = BASE + self.looked_at % u64::from(self.entries) * 8;
        let Some(found) = Notification::decode(host.word(at), self.looked_at, self.entries) else {
            return false;
        };
        self.looked_at += 1;
        let life = &mut self.lives[usize::from(found.queue)];
        if !life.runs || life.epoch != found.epoch && found.queue != OWNER.0 {
            self.stale += 1;
            return true;
        }
        life.tail += u64::from(found.tail_lines.wrapping_sub(life.tail as u32));
        assert!(life.tail - life.freed <= PIPE_LINES, "queue {}", found.queue);
        self.read_frames(host, found.queue);
        true
    }

    fn read_frames(&mut self, host: &TestHost, queue: u16) {
        let life = &mut self.lives[usize::from(queue)];
        while life.read < life.tail {
            let at = pipe_at(queue) + life.read % PIPE_LINES * 64;
            let bytes = pipe::frame_bytes(host.word(at)).expect("a frame begins here");
            let number = host.word(at + 8);
            let last = std::mem::replace(&mut self.last[usize::from(queue)], number);
            assert!(number > last, "queue {queue}: {number} after {last}");
            life.read += u64::from(pipe::lines_of(bytes.into()));
            self.received += 1;
        }
    }
}

/// Queues come and go; gives how often a queue found no entry in the ring.
fn random_lives(seed: u64, entries: u32, comings: bool) -> (u64, u64) {
    let mut random = Random::new(seed);
    let mut bench = bench();
    let mut reader = Reader {
        entries,
        looked_at: 0,
        lives: Default::default(),
        last: [0; QUEUES as usize],
        received: 0,
        stale: 0,
    };
    for queue in 0..QUEUES {
        bench.start(queue, 1, entries).unwrap();
        reader.lives[usize::from(queue)] = Life { runs: true, epoch: 1, ..Life::default() };
    }
    let (mut number, mut refused) = (0, 0);
    for _ in 0..4_000 {
        match random.below(if comings { 6 } else { 5 }) {
            0 | 1 => {
                // One line: nothing wraps inside a frame. The first bytes are its number, and steer it.
                let mut frame = vec![0; 14 + random.below(40)];
                frame[..8].copy_from_slice(&(number + 1u64).to_le_bytes());
                if bench.engine.frame_arrived(&frame, &mut bench.shared) == Accept::Taken {
                    number += 1;
                }
            }
            2 => bench.turn(),
            3 => while reader.look(&bench.host) {},
            4 => {
                let queue = random.below(QUEUES.into());
                let life = &mut reader.lives[queue];
                if life.runs && life.freed < life.read {
                    life.freed += 1 + random.below((life.read - life.freed) as usize) as u64;
                    bench.engine.freed(QueueId(queue as u16), life.freed, &mut bench.shared);
                }
            }
            _ => {
                let queue = 1 + random.below(usize::from(QUEUES) - 1);
                let life = &mut reader.lives[queue];
                if life.runs {
                    bench.engine.stop(QueueId(queue as u16), &mut bench.shared);
                    *life = Life { epoch: life.epoch, ..Life::default() };
                } else {
                    let epoch = life.epoch.wrapping_add(1);
                    let started = bench.start(queue as u16, epoch, entries);
                    *life = Life { runs: started.is_ok(), epoch, ..Life::default() };
                    refused += u64::from(started == Err(Cause::NoRing));
                }
            }
        }
    }
    bench.turn();
    while reader.look(&bench.host) {}
    let counters = &bench.shared.counters;
    assert_eq!(reader.looked_at, counters.notifications, "seed {seed}: each was found in its place");
    assert_eq!(counters.bad_accesses, refused, "seed {seed}");
    assert!(comings || reader.stale == 0);
    (refused, reader.received)
}

#[test]
fn no_notification_overwrites_another_while_queues_come_and_go() {
    let (mut refused, mut received) = (0, 0);
    for seed in 0..40 {
        let (r, n) = random_lives(seed, 4, true);
        refused += r;
        received += n;
    }
    assert!(refused > 20 && received > 10_000, "{refused} refused, {received} frames");
    // With room for what queues leave behind none is refused in so short a time.
    assert!((0..10).all(|seed| random_lives(seed, 1 << 12, true).0 == 0));
}

#[test]
fn every_pipe_is_told_of_in_a_ring_with_an_entry_for_each() {
    for seed in 0..20 {
        let (refused, received) = random_lives(seed, 4, false);
        assert!(refused == 0 && received > 400, "seed {seed}: {received} frames");
    }
}

#[test]
fn a_ring_that_is_not_there_is_refused_and_counted() {
    let mut bench = bench();
    assert_eq!(bench.start(1, 1, 4), Err(Cause::NoRing), "its owner does not run");
    bench
        .engine
        .start(QueueId(0), &QueueSettings { rx_mode: 1, ..settings(0, 1, 4) }, &mut bench.shared)
        .unwrap();
    assert_eq!(bench.start(1, 1, 4), Err(Cause::NoRing), "its owner has no pipe");
    bench.engine.stop(QueueId(0), &mut bench.shared);
    bench.start(0, 1, 2).unwrap();
    bench.start(1, 1, 2).unwrap();
    assert_eq!(bench.start(2, 1, 2), Err(Cause::NoRing), "two entries, two pipes");
    for owner in [1, 3, QUEUES, u16::MAX] {
        let named = QueueSettings { rx_notify_owner: Some(QueueId(owner)), ..settings(3, 1, 2) };
        let started = bench.engine.start(QueueId(3), &named, &mut bench.shared);
        assert_eq!(started, Err(Cause::NoRing), "owner {owner} shares, does not run, or is not there");
    }
    assert_eq!(bench.shared.counters.bad_accesses, 7);
    bench.engine.stop(QueueId(1), &mut bench.shared);
    bench.start(2, 1, 2).unwrap();
}

#[test]
fn stopped_owner_fails_its_sharers_and_writes_nothing_more() {
    let mut bench = bench();
    for queue in 0..3 {
        bench.start(queue, 1, 4).unwrap();
    }
    // Every pipe has frames that the host was not told of.
    for number in 0..60u64 {
        let mut frame = [0; 20];
        frame[..8].copy_from_slice(&number.to_le_bytes());
        assert_eq!(bench.engine.frame_arrived(&frame, &mut bench.shared), Accept::Taken);
    }
    bench.turn();
    bench.engine.freed(QueueId(1), 1, &mut bench.shared);
    bench.engine.stop(OWNER, &mut bench.shared);
    let failed = [(QueueId(1), Cause::NoRing), (QueueId(2), Cause::NoRing)];
    assert_eq!(bench.shared.failed, failed);
    assert_eq!(bench.shared.counters.bad_accesses, 2);
    for queue in [1, 2] {
        bench.engine.quarantine(QueueId(queue), &mut bench.shared);
        bench.engine.freed(QueueId(queue), 1, &mut bench.shared);
    }
    assert_eq!(bench.engine.frame_arrived(&[7; 60], &mut bench.shared), Accept::Taken);
    bench.engine.progress(&mut bench.shared);
    assert!(bench.shared.dma.is_empty(), "its memory may be somebody else's now");
    bench.start(0, 2, 4).unwrap();
    bench.start(1, 2, 4).unwrap();
}
