//! Pipes, alone: tails cut anywhere, answers in any order, a host that frees what and when it likes.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, QueueId};
use beeline_spec::Interface;
use beeline_spec::pipe::{self, Notification};

use super::*;
use crate::NicConfig;
use crate::engine::{
    Cause, DmaOwner, Engine, FetchEngine, FrameSource, QueueSettings, ReceiveEngine, Shared,
};
use crate::fetch::test_host::{BASE, Random, TestHost};
use crate::rx::RxEngine;

const HEAD: u64 = BASE;
const NOTIFICATIONS: u64 = BASE + 4096;
const PIPE: u64 = BASE + 8192;
const PIPE_LINES: u64 = 256;
const QUEUE: QueueId = QueueId(0);
const MAX_FRAME: usize = 9216;
/// Rounds of a random run after which it is taken to be stuck.
const MAX_ROUNDS: usize = 1_000_000;

fn config() -> NicConfig {
    NicConfig { queues: 1, max_frame_bytes: MAX_FRAME as u32, ..NicConfig::default() }
}

fn tx_settings() -> QueueSettings {
    QueueSettings {
        tx_ring_address: PIPE,
        tx_ring_entries: PIPE_LINES as u32,
        tx_head_address: HEAD,
        tx_moderation_frames: 1,
        ..QueueSettings::default()
    }
}

fn rx_settings(notifications: u32) -> QueueSettings {
    QueueSettings {
        rx_mode: 3,
        rx_ring_address: PIPE,
        rx_ring_entries: PIPE_LINES as u32,
        rx_completion_address: NOTIFICATIONS,
        rx_notify_entries: notifications,
        rx_moderation_frames: 1,
        ..QueueSettings::default()
    }
}

/// Puts bytes at a line of the pipe, going on at its start.
fn put(host: &mut TestHost, line: u64, bytes: &[u8]) {
    let at = line % PIPE_LINES * 64;
    let first = bytes.len().min((PIPE_LINES * 64 - at) as usize);
    host.put(PIPE + at, &bytes[..first]);
    host.put(PIPE, &bytes[first..]);
}

/// The frame at a line of the pipe.
fn get(host: &TestHost, line: u64) -> Vec<u8> {
    let at = line % PIPE_LINES * 64;
    let bytes = usize::from(pipe::frame_bytes(host.word(PIPE + at)).expect("a frame begins here"));
    let first = bytes.min((PIPE_LINES * 64 - at) as usize - 8);
    let mut frame = host.get(PIPE + at + 8, first);
    frame.extend(host.get(PIPE, bytes - first));
    frame
}

fn random_frame(random: &mut Random) -> Vec<u8> {
    let longest = [56, 64, 1514, MAX_FRAME][random.below(4)];
    let bytes = 14 + random.below(longest - 13);
    random.bytes(bytes)
}

fn random_transmit(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut engine = EnsoEngine::new(&config());
    let (mut shared, mut host) = (Shared::new(1), TestHost::new(1 << 20));
    let moderation = 1 + random.below(4) as u32;
    let settings = QueueSettings { tx_moderation_frames: moderation, ..tx_settings() };
    engine.start(QUEUE, &settings, &mut shared).unwrap();
    let (mut filled, mut told, mut written, mut popped) = (0, 0, 0, 0);
    let mut sent = VecDeque::new();
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {popped} of {written} are out");
        match random.below(5) {
            0 if written < 200 => {
                let frame = random_frame(&mut random);
                let lines = u64::from(pipe::lines_of(frame.len() as u32));
                if filled + lines - host.word(HEAD) <= PIPE_LINES {
                    let mut bytes = pipe::header(frame.len() as u16).to_le_bytes().to_vec();
                    bytes.extend(&frame);
                    put(&mut host, filled, &bytes);
                    filled += lines;
                    written += 1;
                    sent.push_back(frame);
                }
            }
            // A tail may lie anywhere, in the middle of a frame too; the last one lies at the end.
            1 => {
                told += random.below((filled - told) as usize + 1) as u64;
                engine.doorbell(QUEUE, told, &mut shared);
            }
            2 => {
                engine.progress(&mut shared);
                host.take_wants(&mut shared);
            }
            3 if !host.waiting.is_empty() => {
                let index = random.below(host.waiting.len());
                let (read, data) = host.answer(index);
                assert_eq!(read.owner, DmaOwner::Transmit(Interface::Enso));
                engine.dma_completed(read.tag, data.as_deref().map_err(|error| *error), &mut shared);
            }
            4 => {
                let bytes = engine.head_bytes(QUEUE);
                if let Some(frame) = engine.head(QUEUE) {
                    assert_eq!(bytes, Some(frame.len() as u32));
                    assert_eq!(Some(frame), sent.pop_front().as_deref(), "seed {seed}, frame {popped}");
                    engine.pop(QUEUE, &mut shared);
                    popped += 1;
                }
            }
            _ => {}
        }
        assert!(host.word(HEAD) <= told, "seed {seed}");
        if popped == 200 {
            break;
        }
    }
    engine.progress(&mut shared);
    host.take_wants(&mut shared);
    assert_eq!(host.word(HEAD), filled, "seed {seed}: an idle pipe has reported everything");
    let counters = &shared.counters;
    assert_eq!((counters.bad_accesses, counters.dma_errors, counters.descriptor_fetches), (0, 0, 0));
    assert!(shared.failed.is_empty());
    counters.payload_fetches
}

#[test]
fn frames_leave_in_order_wherever_the_tail_lies() {
    for seed in 0..60 {
        random_transmit(seed);
    }
}

#[test]
fn a_full_pipe_is_read_in_few_long_reads() {
    let mut engine = EnsoEngine::new(&config());
    let (mut shared, mut host) = (Shared::new(1), TestHost::new(1 << 20));
    engine.start(QUEUE, &tx_settings(), &mut shared).unwrap();
    for line in 0..PIPE_LINES {
        put(&mut host, line, &pipe::header(56).to_le_bytes());
    }
    engine.doorbell(QUEUE, PIPE_LINES, &mut shared);
    engine.progress(&mut shared);
    host.take_wants(&mut shared);
    assert_eq!(host.waiting.iter().map(|read| read.bytes).collect::<Vec<_>>(), [4096; 4], "256 frames");
}

#[test]
fn a_pipe_with_a_gap_fails_its_queue() {
    let mut engine = EnsoEngine::new(&config());
    let (mut shared, mut host) = (Shared::new(1), TestHost::new(1 << 20));
    let settings = QueueSettings { tx_ring_address: 0x1000, ..tx_settings() };
    engine.start(QUEUE, &settings, &mut shared).unwrap();
    engine.doorbell(QUEUE, 3, &mut shared);
    engine.progress(&mut shared);
    host.take_wants(&mut shared);
    let (read, data) = host.answer(0);
    engine.dma_completed(read.tag, data.as_deref().map_err(|error| *error), &mut shared);
    assert_eq!((shared.failed.as_slice(), shared.counters.dma_errors), (&[(QUEUE, Cause::DmaError)][..], 1));
    engine.doorbell(QUEUE, 9, &mut shared);
    engine.progress(&mut shared);
    assert!(shared.dma.is_empty(), "a failed queue asks for nothing");
}

#[test]
fn pipes_that_make_no_sense_do_not_start() {
    let mut shared = Shared::new(1);
    let mut engine = EnsoEngine::new(&config());
    for bad in [
        QueueSettings { tx_ring_entries: 0, ..tx_settings() },
        QueueSettings { tx_ring_entries: 100, ..tx_settings() },
        QueueSettings { tx_ring_address: PIPE + 8, ..tx_settings() },
    ] {
        assert_eq!(engine.start(QUEUE, &bad, &mut shared), Err(Cause::BadLength), "{bad:?}");
    }
    for (bad, cause) in [
        (QueueSettings { rx_ring_entries: 3, ..rx_settings(4) }, Cause::BadLength),
        (rx_settings(0), Cause::BadLength),
        (rx_settings(1 << 17), Cause::BadLength),
        (QueueSettings { rx_ring_address: PIPE + 8, ..rx_settings(4) }, Cause::DmaError),
        (QueueSettings { rx_completion_address: u64::MAX - 7, ..rx_settings(4) }, Cause::DmaError),
    ] {
        assert_eq!(RxEngine::new(&config()).start(QUEUE, &bad, &mut shared), Err(cause), "{bad:?}");
    }
}

/// A host that looks at its notifications, reads frames and frees lines when it likes.
struct Reader {
    entries: u32,
    looked_at: u64,
    tail: u64,
    read: u64,
    freed: u64,
}

impl Reader {
    fn look(&mut self, host: &TestHost) -> bool {
        let at = NOTIFICATIONS + self.looked_at % u64::from(self.entries) * 8;
        let Some(found) = Notification::decode(host.word(at), self.looked_at, self.entries) else {
            return false;
        };
        assert_eq!((found.queue, found.epoch), (0, 0));
        // Lines since the last one, modulo 2^32: few.
        self.tail += u64::from(found.tail_lines.wrapping_sub(self.tail as u32));
        self.looked_at += 1;
        true
    }
}

fn random_receive(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let entries = 1 << random.below(3);
    let mut engine = RxEngine::new(&config());
    let (mut shared, mut host) = (Shared::new(1), TestHost::new(1 << 20));
    engine.start(QUEUE, &rx_settings(entries), &mut shared).unwrap();
    let mut reader = Reader { entries, looked_at: 0, tail: 0, read: 0, freed: 0 };
    let mut sent = VecDeque::new();
    let (mut delivered, mut received) = (0, 0);
    let mut next = random_frame(&mut random);
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {received} of {delivered}");
        match random.below(4) {
            0 if delivered < 200 => {
                let accept = engine.frame_arrived(&next, &mut shared);
                if accept == Accept::Taken {
                    sent.push_back(std::mem::replace(&mut next, random_frame(&mut random)));
                    delivered += 1;
                }
            }
            1 => {
                engine.progress(&mut shared);
                host.take_wants(&mut shared);
            }
            2 => {
                while reader.look(&host) {}
                while reader.read < reader.tail {
                    let frame = get(&host, reader.read);
                    reader.read += u64::from(pipe::lines_of(frame.len() as u32));
                    assert_eq!(Some(frame), sent.pop_front(), "seed {seed}, frame {received}");
                    received += 1;
                }
            }
            3 if reader.freed < reader.read => {
                let step = 1 + random.below((reader.read - reader.freed) as usize) as u64;
                reader.freed += step;
                engine.freed(QUEUE, reader.freed, &mut shared);
            }
            _ => {}
        }
        if received == 200 {
            break;
        }
    }
    assert_eq!((shared.counters.bad_accesses, shared.counters.rx_frames), (0, 200), "seed {seed}");
    (shared.counters.notifications, shared.counters.rx_frames)
}

#[test]
fn a_host_is_told_of_every_frame_and_less_often_than_once_a_frame() {
    let (mut notifications, mut frames) = (0, 0);
    for seed in 0..60 {
        let (n, f) = random_receive(seed);
        notifications += n;
        frames += f;
    }
    assert!(notifications * 10 < frames * 9, "{notifications} notifications for {frames} frames");
}

#[test]
fn a_notification_that_finds_no_room_is_written_later() {
    let mut engine = RxEngine::new(&config());
    let (mut shared, mut host) = (Shared::new(1), TestHost::new(1 << 20));
    engine.start(QUEUE, &rx_settings(4), &mut shared).unwrap();
    for _ in 0..2 {
        assert_eq!(engine.frame_arrived(&[7; 20], &mut shared), Accept::Taken);
    }
    host.take_wants(&mut shared);
    while shared.dma.write(BASE + 8, &[0; 8]) {}
    engine.freed(QUEUE, 1, &mut shared);
    engine.progress(&mut shared);
    assert_eq!(shared.counters.notifications, 1);
    host.take_wants(&mut shared);
    engine.progress(&mut shared);
    host.take_wants(&mut shared);
    let second = Notification::decode(host.word(NOTIFICATIONS + 8), 1, 4);
    assert_eq!(second, Some(Notification { tail_lines: 2, queue: 0, epoch: 0 }));
}
