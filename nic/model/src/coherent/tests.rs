//! Coherent lines, alone: entries of every kind, answers in any order, a link that looks when it likes, a host that gives
//! back when it likes, and one that lies.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, QueueId, WatchEnd, WatchTag};
use beeline_spec::coherent::{
    LineBuffer, LineHeader, LineKind, buffers_in, frame_bytes_in, given_back, is_passed, position_of,
};
use beeline_spec::{Interface, LINE_BYTES};

use super::*;
use crate::NicConfig;
use crate::engine::{Cause, DmaOwner, Engine, FrameSource, QueueSettings, ReceiveEngine, Shared};
use crate::fetch::test_host::{BASE, Random, TestHost};
use crate::rx::RxEngine;
use crate::watch_port::{Direction, Watch, WatchWant};

const QUEUE: QueueId = QueueId(0);
const EPOCH: u8 = 7;
const RING: u64 = BASE + 4096;
const ENTRIES: u64 = 4;
const BUFFERS: u64 = BASE + 0x1_0000;
const MAX_FRAME: usize = 1600;
const BUFFER_BYTES: u64 = 1600;
const RX_BUFFERS: u32 = 3;
/// Rounds of a random run after which it is taken to be stuck.
const MAX_ROUNDS: usize = 1_000_000;

fn config() -> NicConfig {
    NicConfig { queues: 1, max_frame_bytes: MAX_FRAME as u32, ..NicConfig::default() }
}

fn tx_settings(entry_lines: u32) -> QueueSettings {
    QueueSettings {
        epoch: EPOCH,
        entry_lines,
        tx_ring_address: RING,
        tx_ring_entries: ENTRIES as u32,
        ..QueueSettings::default()
    }
}

fn rx_settings(entry_lines: u32) -> QueueSettings {
    QueueSettings {
        rx_lines: true,
        rx_entry_lines: entry_lines,
        rx_ring_address: RING,
        rx_ring_entries: ENTRIES as u32,
        rx_completion_address: BUFFERS,
        rx_notify_entries: RX_BUFFERS,
        rx_moderation_frames: 1,
        ..QueueSettings::default()
    }
}

/// Takes wants, and keeps the watch that is outstanding; there is at most one.
#[derive(Default)]
struct Link {
    watch: Option<(WatchTag, Watch)>,
}

impl Link {
    fn take_wants(&mut self, host: &mut TestHost, shared: &mut Shared) {
        host.take_wants(shared);
        while let Some(want) = shared.watches.take() {
            let WatchWant::Watch(tag, watch) = want else { panic!("{want:?}: nothing stops here") };
            assert_eq!(self.watch.replace((tag, watch)), None, "two watches of one queue");
        }
    }

    /// What the watched line holds, if it has changed.
    fn look(&mut self, host: &TestHost, shared: &mut Shared) -> Option<(Direction, Vec<u8>)> {
        let (tag, watch) = self.watch.take_if(|(_, watch)| host.word(watch.address) != watch.known)?;
        let (queue, direction) = shared.watches.answered(tag).expect("it is wanted");
        assert_eq!(queue, QUEUE);
        Some((direction, host.get(watch.address, watch.bytes as usize)))
    }
}

/// A host that sends: what it has passed, and where its frames are.
struct Sender {
    random: Random,
    entry_bytes: usize,
    tail: u64,
    sent: VecDeque<Vec<u8>>,
}

impl Sender {
    fn at(&self, count: u64) -> u64 {
        RING + count % ENTRIES * self.entry_bytes as u64
    }

    /// Whether the next entry's place is the host's.
    fn is_free(&self, host: &TestHost) -> bool {
        self.tail < ENTRIES || !is_passed(host.word(self.at(self.tail)))
    }

    /// Fills the next entry and passes it.
    fn pass(&mut self, host: &mut TestHost) {
        let at = self.at(self.tail);
        let kind = if self.random.below(2) == 0 {
            let longest = frame_bytes_in(self.entry_bytes);
            let bytes = 14 + self.random.below(longest - 13);
            let frame = self.random.bytes(bytes);
            host.put(at + 8, &frame);
            self.sent.push_back(frame);
            LineKind::Whole(bytes as u16)
        } else {
            let count = 1 + self.random.below(buffers_in(self.entry_bytes)) as u64;
            for index in 0..count {
                let bytes = 14 + self.random.below(MAX_FRAME - 13);
                let frame = self.random.bytes(bytes);
                // Buffers of an entry are its own, so that none is filled again before the entry is back.
                let place = (self.tail % ENTRIES * 31 + index) * BUFFER_BYTES;
                let buffer = LineBuffer { length_bytes: bytes as u16, address: BUFFERS + place };
                host.put(buffer.address, &frame);
                host.put(at + 8 + index * 8, &buffer.encode().to_le_bytes());
                self.sent.push_back(frame);
            }
            LineKind::Buffers(count as u8)
        };
        let header = LineHeader { kind, epoch: EPOCH, position: position_of(self.tail) };
        host.put(at, &header.encode().to_le_bytes());
        self.tail += 1;
    }
}

fn random_transmit(seed: u64, entry_lines: u32) -> Shared {
    let mut engine = CoherentEngine::new(&config());
    let (mut shared, mut host, mut link) = (Shared::new(1), TestHost::new(1 << 20), Link::default());
    let entry_bytes = entry_lines as usize * LINE_BYTES;
    let mut sender = Sender { random: Random::new(seed), entry_bytes, tail: 0, sent: VecDeque::new() };
    engine.start(QUEUE, &tx_settings(entry_lines), &mut shared).unwrap();
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {} frames are missing", sender.sent.len());
        match sender.random.below(4) {
            0 if sender.tail < 60 && sender.is_free(&host) => sender.pass(&mut host),
            1 if !host.waiting.is_empty() => {
                let pick = sender.random.below(host.waiting.len());
                let (read, data) = host.answer(pick);
                assert_eq!(read.owner, DmaOwner::Transmit(Interface::Coherent));
                engine.dma_completed(read.tag, data.as_deref().map_err(|error| *error), &mut shared);
            }
            2 => {
                if let Some((Direction::Transmit, line)) = link.look(&host, &mut shared) {
                    engine.line_changed(QUEUE, Ok(&line), &mut shared);
                }
            }
            _ => {
                if let Some(frame) = engine.head(QUEUE) {
                    assert_eq!(Some(frame.to_vec()), sender.sent.pop_front(), "seed {seed}");
                    engine.pop(QUEUE, &mut shared);
                }
            }
        }
        engine.progress(&mut shared);
        link.take_wants(&mut host, &mut shared);
        if sender.tail == 60 && sender.sent.is_empty() {
            break;
        }
    }
    // Everything has been given back, by its own header.
    for count in 60 - ENTRIES..60 {
        let header = host.word(sender.at(count));
        let passed = header | 1 << beeline_spec::formats::line_header::OWNER_LSB;
        assert_eq!(given_back(passed), header);
        assert!(LineHeader::decode(passed, EPOCH, count, entry_bytes).is_ok(), "seed {seed}: {header:#x}");
    }
    shared
}

#[test]
fn frames_leave_in_the_order_of_entries_and_each_entry_comes_back() {
    for seed in 0..12 {
        let shared = random_transmit(seed, 1 << (seed % 3));
        assert!(shared.failed.is_empty() && shared.counters.entries == 60, "seed {seed}");
        assert_eq!(shared.counters.completions, 60, "seed {seed}");
    }
}

/// An engine with one entry passed to it, and what came of that.
fn taken(data: Result<&[u8], WatchEnd>) -> (CoherentEngine, Shared) {
    let (mut engine, mut shared) = (CoherentEngine::new(&config()), Shared::new(1));
    engine.start(QUEUE, &tx_settings(1), &mut shared).unwrap();
    engine.progress(&mut shared);
    let Some(WatchWant::Watch(tag, watch)) = shared.watches.take() else {
        panic!("the first entry is watched")
    };
    assert_eq!(watch, Watch { address: RING, known: 0, bytes: 64 });
    assert_eq!(shared.watches.answered(tag), Some((QUEUE, Direction::Transmit)));
    engine.line_changed(QUEUE, data, &mut shared);
    engine.progress(&mut shared);
    (engine, shared)
}

#[test]
fn an_entry_is_given_back_when_its_frame_has_left() {
    let mut entry = [0x5a; 64];
    let header = LineHeader { kind: LineKind::Whole(20), epoch: EPOCH, position: 0 }.encode();
    entry[..8].copy_from_slice(&header.to_le_bytes());
    let (mut engine, mut shared) = taken(Ok(&entry));
    let mut host = TestHost::new(1 << 20);
    host.take_wants(&mut shared);
    assert_eq!((engine.head(QUEUE), host.writes.len()), (Some(&[0x5a; 20][..]), 0));
    engine.pop(QUEUE, &mut shared);
    engine.progress(&mut shared);
    host.take_wants(&mut shared);
    assert_eq!((host.writes.as_slice(), host.word(RING)), (&[(RING, 8)][..], given_back(header)));
}

#[test]
fn garbage_in_a_line_fails_the_queue_and_nothing_else() {
    let mut random = Random::new(5);
    for round in 0..2000 {
        let mut entry = random.bytes(64);
        // Mostly a header that is nearly right.
        let header = LineHeader { kind: LineKind::Buffers(7), epoch: EPOCH, position: 0 }.encode();
        if round % 4 != 0 {
            let wrong = header ^ 1 << random.below(64);
            entry[..8].copy_from_slice(&wrong.to_le_bytes());
        }
        let (engine, shared) = taken(Ok(&entry));
        let word = u64::from_le_bytes(entry[..8].try_into().unwrap());
        let is_header = LineHeader::decode(word, EPOCH, 0, 64).is_ok();
        assert_eq!(shared.failed.is_empty(), is_header, "{word:#x}");
        assert!(is_header || engine.head_bytes(QUEUE).is_none() && shared.dma.is_empty());
    }
}

#[test]
fn a_link_that_cannot_watch_fails_the_queue() {
    for end in [WatchEnd::BadAddress, WatchEnd::NotCoherent] {
        let (_, shared) = taken(Err(end));
        assert_eq!(
            (shared.failed.as_slice(), shared.counters.dma_errors),
            (&[(QUEUE, Cause::DmaError)][..], 1)
        );
    }
    let (_, shared) = taken(Ok(&[0; 8]));
    assert_eq!(shared.failed, [(QUEUE, Cause::DmaError)], "an answer of another length");
}

#[test]
fn rings_that_make_no_sense_do_not_start() {
    let good = tx_settings(1);
    for (bad, cause) in [
        (QueueSettings { tx_ring_entries: 0, ..good.clone() }, Cause::BadLength),
        (QueueSettings { tx_ring_entries: 1, ..good.clone() }, Cause::BadLength),
        (QueueSettings { tx_ring_entries: 3, ..good.clone() }, Cause::BadLength),
        (QueueSettings { tx_ring_entries: 1 << 17, ..good.clone() }, Cause::BadLength),
        (QueueSettings { entry_lines: 8, ..good.clone() }, Cause::BadLength),
        (QueueSettings { tx_ring_address: 32, ..good.clone() }, Cause::DmaError),
        (QueueSettings { tx_ring_address: u64::MAX - 63, ..good }, Cause::DmaError),
    ] {
        let (mut engine, mut shared) = (CoherentEngine::new(&config()), Shared::new(1));
        assert_eq!(engine.start(QUEUE, &bad, &mut shared), Err(cause), "{bad:?}");
    }
    let good = rx_settings(1);
    for (bad, cause) in [
        (QueueSettings { rx_mode: 1, ..good.clone() }, Cause::BadLength),
        (QueueSettings { rx_entry_lines: 8, ..good.clone() }, Cause::BadLength),
        (QueueSettings { rx_notify_entries: 1 << 17, ..good.clone() }, Cause::BadLength),
        (QueueSettings { rx_completion_address: 8, ..good.clone() }, Cause::DmaError),
        (QueueSettings { rx_completion_address: 1 << 54, ..good.clone() }, Cause::DmaError),
        (QueueSettings { rx_completion_address: u64::MAX - 63, ..good }, Cause::DmaError),
    ] {
        let (mut engine, mut shared) = (RxEngine::new(&config()), Shared::new(1));
        assert_eq!(engine.start(QUEUE, &bad, &mut shared), Err(cause), "{bad:?}");
    }
}

/// A host that receives: takes entries in order, holds some, gives them back in order.
fn random_receive(seed: u64, entry_lines: u32) {
    let mut random = Random::new(seed);
    let mut engine = RxEngine::new(&config());
    let (mut shared, mut host, mut link) = (Shared::new(1), TestHost::new(1 << 20), Link::default());
    let entry_bytes = u64::from(entry_lines) * LINE_BYTES as u64;
    engine.start(QUEUE, &rx_settings(entry_lines), &mut shared).unwrap();
    let at = |count: u64| RING + count % ENTRIES * entry_bytes;
    let (mut offered, mut seen, mut back) = (0u64, 0u64, 0u64);
    let mut arrived = VecDeque::new();
    let mut held: VecDeque<Option<u64>> = VecDeque::new();
    let mut buffers_used = std::collections::BTreeSet::new();
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {back} of {offered} are back");
        match random.below(4) {
            0 if offered < 100 => {
                let longest = [50, 300, MAX_FRAME][random.below(3)];
                let bytes = 1 + random.below(longest);
                let frame = random.bytes(bytes);
                if engine.frame_arrived(&frame, &mut shared) == Accept::Taken {
                    arrived.push_back(frame);
                    offered += 1;
                }
            }
            1 if is_passed(host.word(at(seen))) && seen - back < ENTRIES => {
                let header = LineHeader::decode(host.word(at(seen)), 0, seen, entry_bytes as usize).unwrap();
                let (from, bytes, buffer) = match header.kind {
                    LineKind::Whole(bytes) => (at(seen) + 8, bytes, None),
                    LineKind::Buffers(count) => {
                        let named = LineBuffer::decode(host.word(at(seen) + 8));
                        assert_eq!((count, (named.address - BUFFERS) % BUFFER_BYTES), (1, 0));
                        assert!(named.address < BUFFERS + u64::from(RX_BUFFERS) * BUFFER_BYTES);
                        assert!(!held.contains(&Some(named.address)), "seed {seed}: in two entries");
                        buffers_used.insert(named.address);
                        (named.address, named.length_bytes, Some(named.address))
                    }
                };
                assert_eq!(host.get(from, bytes.into()), arrived.pop_front().unwrap(), "seed {seed}");
                held.push_back(buffer);
                seen += 1;
            }
            2 if back < seen => {
                let header = host.word(at(back));
                host.put(at(back), &given_back(header).to_le_bytes());
                held.pop_front();
                back += 1;
            }
            _ => {
                if let Some((Direction::Receive, line)) = link.look(&host, &mut shared) {
                    engine.line_changed(QUEUE, Ok(&line), &mut shared);
                }
            }
        }
        engine.progress(&mut shared);
        link.take_wants(&mut host, &mut shared);
        if back == 100 {
            break;
        }
    }
    assert!(shared.failed.is_empty() && shared.counters.rx_frames == 100, "seed {seed}");
    assert!(!buffers_used.is_empty(), "seed {seed}");
}

#[test]
fn frames_use_entries_and_buffers_and_each_buffer_is_in_one_entry() {
    for seed in 0..12 {
        random_receive(seed, 1 << (seed % 3));
    }
}

#[test]
fn the_buffer_given_back_last_is_filled_next() {
    let mut engine = RxEngine::new(&config());
    let (mut shared, mut host, mut link) = (Shared::new(1), TestHost::new(1 << 20), Link::default());
    engine.start(QUEUE, &rx_settings(1), &mut shared).unwrap();
    let mut used = Vec::new();
    for count in 0..20u64 {
        assert_eq!(engine.frame_arrived(&[count as u8; 100], &mut shared), Accept::Taken);
        link.take_wants(&mut host, &mut shared);
        let at = RING + count % ENTRIES * 64;
        used.push(LineBuffer::decode(host.word(at + 8)).address);
        host.put(at, &given_back(host.word(at)).to_le_bytes());
        while let Some((_, line)) = link.look(&host, &mut shared) {
            engine.line_changed(QUEUE, Ok(&line), &mut shared);
            engine.progress(&mut shared);
            link.take_wants(&mut host, &mut shared);
        }
    }
    used.sort_unstable();
    used.dedup();
    assert_eq!(
        used.len(),
        2,
        "the device looks when more than a quarter is out; a third buffer is never touched"
    );
}

#[test]
fn without_buffers_only_short_frames_are_received() {
    let mut engine = RxEngine::new(&config());
    let mut shared = Shared::new(1);
    let settings = QueueSettings { rx_notify_entries: 0, ..rx_settings(1) };
    engine.start(QUEUE, &settings, &mut shared).unwrap();
    assert_eq!(engine.frame_arrived(&[1; 57], &mut shared), Accept::Taken);
    assert_eq!(engine.frame_arrived(&[1; 56], &mut shared), Accept::Taken);
    assert_eq!((shared.counters.rx_oversize, shared.counters.rx_frames), (1, 1));
}
