//! Entries in the BAR, alone: bytes of an entry in any order, reads before and after frames, hosts that misbehave.

use std::collections::{HashMap, VecDeque};

use beeline_contract_device::{Accept, Enables, QueueId, ReadTag, SimTime};
use beeline_spec::Interface;
use beeline_spec::entry::{EntryHeader, EntryKind, position_of};
use beeline_spec::formats::HELD_READS_MAX;

use super::*;
use crate::NicConfig;
use crate::deadlines::NEVER;
use crate::engine::{
    Cause, DmaOwner, Engine, FrameSource, QueueSettings, ReceiveEngine, Shared, WindowEngine,
};
use crate::fetch::test_host::{BASE, Random, TestHost};
use crate::rx::RxEngine;

const HEAD: u64 = BASE;
const BUFFERS: u64 = BASE + 4096;
const BUFFER_BYTES: u64 = 4096;
const QUEUE: QueueId = QueueId(0);
const EPOCH: u8 = 7;
const WINDOW_LINES: u32 = 32;
const HOLD_NS: u64 = 500;
/// Rounds of a random run after which it is taken to be stuck.
const MAX_ROUNDS: usize = 1_000_000;

fn config() -> NicConfig {
    NicConfig { queues: 1, window_lines: WINDOW_LINES, span_lines: 8, ..NicConfig::default() }
}

fn settings(entry_lines: u32) -> QueueSettings {
    QueueSettings {
        epoch: EPOCH,
        window_lines: WINDOW_LINES,
        entry_lines,
        entry_hold_ns: HOLD_NS as u32,
        tx_head_address: HEAD,
        tx_moderation_frames: 1,
        rx_reads: true,
        rx_moderation_frames: 1,
        ..QueueSettings::default()
    }
}

/// The bytes of an entry; a frame that does not fit lies at `buffer`.
fn entry(index: u64, entry_bytes: usize, frame: &[u8], buffer: u64) -> Vec<u8> {
    let fits = frame.len() + 16 <= entry_bytes;
    let header = EntryHeader {
        length_bytes: frame.len() as u16,
        kind: if fits { EntryKind::Whole } else { EntryKind::Address },
        wants_irq: false,
        epoch: EPOCH,
        position: position_of(index),
    };
    let mut bytes = header.encode().to_le_bytes().to_vec();
    bytes.extend(if fits { 0 } else { buffer }.to_le_bytes());
    if fits {
        bytes.extend(frame);
    }
    bytes.resize(entry_bytes, 0);
    bytes
}

fn random_transmit(seed: u64) {
    let mut random = Random::new(seed);
    let entry_lines = 1 << random.below(3);
    let (entry_bytes, entries) = (entry_lines as usize * 64, u64::from(WINDOW_LINES / entry_lines));
    let mut engine = NiqEngine::new(&config());
    let (mut shared, mut host) = (Shared::new(1), TestHost::new(1 << 20));
    engine.start(QUEUE, &settings(entry_lines), &mut shared).unwrap();
    let mut stores: VecDeque<(u64, Vec<u8>, u64)> = VecDeque::new();
    let mut sent = VecDeque::new();
    let (mut written, mut popped) = (0u64, 0);
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {popped} of {written} are out");
        match random.below(5) {
            // One entry is stored after the other, each in pieces of lines in any order: the fence is between them.
            0 if written < 200 && written - host.word(HEAD) < entries => {
                let longest = [48, entry_bytes - 16, 1514][random.below(3)];
                let bytes = 14 + random.below(longest - 13);
                let frame = random.bytes(bytes);
                let buffer = BUFFERS + written % entries * BUFFER_BYTES;
                let at = written % entries * entry_bytes as u64;
                let mut pieces = Vec::new();
                for (line, bytes) in entry(written, entry_bytes, &frame, buffer).chunks(64).enumerate() {
                    let mask = random.bytes(8).iter().fold(0, |mask, byte| mask << 8 | u64::from(*byte));
                    pieces.push((at + line as u64 * 64, bytes.to_vec(), mask));
                    pieces.push((at + line as u64 * 64, bytes.to_vec(), !mask));
                }
                for last in (1..pieces.len()).rev() {
                    pieces.swap(last, random.below(last + 1));
                }
                host.put(buffer, &frame);
                stores.extend(pieces);
                sent.push_back(frame);
                written += 1;
            }
            1 => {
                if let Some((at, bytes, mask)) = stores.pop_front() {
                    let enables = Enables::Mask(mask);
                    let accept = engine.write_arrived(QUEUE, at, &bytes, enables, &mut shared);
                    assert_eq!(accept, Accept::Taken);
                }
            }
            2 => {
                engine.progress(&mut shared);
                host.take_wants(&mut shared);
            }
            3 if !host.waiting.is_empty() => {
                let index = random.below(host.waiting.len());
                let (read, data) = host.answer(index);
                assert_eq!(read.owner, DmaOwner::Transmit(Interface::Niq));
                engine.dma_completed(read.tag, data.as_deref().map_err(|error| *error), &mut shared);
            }
            4 => {
                if let Some(frame) = engine.head(QUEUE) {
                    assert_eq!(Some(frame), sent.pop_front().as_deref(), "seed {seed}, frame {popped}");
                    engine.pop(QUEUE, &mut shared);
                    popped += 1;
                }
            }
            _ => {}
        }
        if popped == 200 {
            break;
        }
    }
    engine.progress(&mut shared);
    host.take_wants(&mut shared);
    assert_eq!((host.word(HEAD), shared.counters.entries), (200, 200), "seed {seed}");
    assert!(shared.failed.is_empty(), "seed {seed}: {:?}", shared.failed);
}

#[test]
fn entries_leave_in_order_however_their_bytes_arrive() {
    for seed in 0..60 {
        random_transmit(seed);
    }
}

#[test]
fn whatever_is_stored_ends_in_a_whole_entry_or_a_failed_queue() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut engine = NiqEngine::new(&config());
        let mut shared = Shared::new(1);
        engine.start(QUEUE, &settings(2), &mut shared).unwrap();
        let mut entries = 0;
        while shared.failed.is_empty() {
            let whole = entry(entries, 128, &random.bytes(60), 0);
            if random.below(3) > 0 {
                let _ = engine.write_arrived(QUEUE, entries % 16 * 128, &whole, Enables::All, &mut shared);
                entries += u64::from(shared.failed.is_empty());
            } else {
                let bytes = 1 + random.below(64);
                let at = random.below(WINDOW_LINES as usize * 64 - bytes) as u64;
                let data = random.bytes(bytes);
                let _ = engine.write_arrived(QUEUE, at, &data, Enables::All, &mut shared);
            }
            engine.progress(&mut shared);
            while let Some(frame) = engine.head(QUEUE) {
                assert_eq!(frame.len(), 60, "seed {seed}: a frame that was not sent");
                engine.pop(QUEUE, &mut shared);
            }
        }
        assert!(shared.counters.entries >= entries, "seed {seed}");
    }
}

/// A host that reads entries, one read of eight words after the other, and frees them when it likes.
#[derive(Default)]
struct Reader {
    /// Reads that have no answer: tag to place among the words of the entry, and when it was asked.
    asked: HashMap<u16, (usize, SimTime)>,
    words: Vec<u64>,
    next_tag: u16,
    read: u64,
    freed: u64,
}

impl Reader {
    fn ask(&mut self, engine: &mut RxEngine, shared: &mut Shared) {
        self.words = vec![0; 8];
        for word in 0..8 {
            let offset = self.read % u64::from(WINDOW_LINES) * 64 + word as u64 * 8;
            let tag = ReadTag(self.next_tag);
            self.next_tag += 1;
            assert!(engine.read_arrived(QUEUE, offset, tag, shared));
            self.asked.insert(tag.0, (word, shared.now));
        }
    }

    /// The frame that was read, once all words are here and there was one.
    fn take(&mut self) -> Option<Vec<u8>> {
        let words = std::mem::take(&mut self.words);
        let header = EntryHeader::decode(*words.first()?, EPOCH).ok()?;
        assert_eq!((header.kind, header.position), (EntryKind::Whole, position_of(self.read)));
        self.read += 1;
        let bytes: Vec<u8> = words[2..].iter().flat_map(|word| word.to_le_bytes()).collect();
        Some(bytes[..usize::from(header.length_bytes)].to_vec())
    }
}

fn random_receive(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let mut engine = RxEngine::new(&config());
    let mut shared = Shared::new(1);
    engine.start(QUEUE, &settings(1), &mut shared).unwrap();
    let mut reader = Reader::default();
    let mut sent = VecDeque::new();
    let (mut delivered, mut received) = (0, 0);
    for round in 0.. {
        assert!(round < MAX_ROUNDS, "seed {seed}: stuck, {received} of {delivered}");
        match random.below(4) {
            0 if delivered < 200 => {
                let bytes = 14 + random.below(35);
                let frame = random.bytes(bytes);
                if engine.frame_arrived(&frame, &mut shared) == Accept::Taken {
                    sent.push_back(frame);
                    delivered += 1;
                }
            }
            1 if reader.asked.is_empty() => {
                if let Some(frame) = reader.take() {
                    assert_eq!(Some(frame), sent.pop_front(), "seed {seed}, frame {received}");
                    received += 1;
                }
                // A place is read again only when it was freed: until then it holds what was read.
                if reader.read - reader.freed < u64::from(WINDOW_LINES) {
                    reader.ask(&mut engine, &mut shared);
                }
            }
            2 if reader.freed < reader.read => {
                reader.freed += 1 + random.below((reader.read - reader.freed) as usize) as u64;
                engine.entries_freed(QUEUE, reader.freed, &mut shared);
            }
            _ => {
                shared.now = SimTime(shared.now.0 + SimTime::from_ns(random.below(200) as u64).0);
                if engine.wake_at() <= shared.now {
                    engine.time_passed(&mut shared);
                }
            }
        }
        while let Some((tag, value)) = shared.answers.take(&shared.dma) {
            let (word, asked) = reader.asked.remove(&tag.0).expect("each read is answered once");
            assert!(
                shared.now.0 - asked.0 <= SimTime::from_ns(HOLD_NS + 200).0,
                "seed {seed}: held too long"
            );
            reader.words[word] = value;
        }
        if received == 200 {
            break;
        }
    }
    assert_eq!(shared.counters.bad_accesses, 0, "seed {seed}");
    (shared.counters.held_reads, shared.counters.held_read_timeouts)
}

#[test]
fn every_read_is_answered_in_time_and_every_frame_is_read_once() {
    let (mut held, mut late) = (0, 0);
    for seed in 0..40 {
        let (h, l) = random_receive(seed);
        held += h;
        late += l;
    }
    assert!(late > 100 && held > 2 * late, "{held} held, {late} of them for their whole time");
}

#[test]
fn a_queue_that_stops_answers_its_reads() {
    let mut engine = RxEngine::new(&config());
    let mut shared = Shared::new(1);
    engine.start(QUEUE, &settings(1), &mut shared).unwrap();
    for tag in 0..HELD_READS_MAX as u16 {
        assert!(engine.read_arrived(QUEUE, u64::from(tag) * 8, ReadTag(tag), &mut shared));
    }
    assert!(shared.answers.is_empty());
    engine.stop(QUEUE, &mut shared);
    for tag in 0..HELD_READS_MAX as u16 {
        assert_eq!(shared.answers.take(&shared.dma), Some((ReadTag(tag), 0)));
    }
    assert_eq!(engine.wake_at(), NEVER);
    assert!(!engine.read_arrived(QUEUE, 0, ReadTag(0), &mut shared), "there is nothing to read");
}

#[test]
fn an_answer_does_not_pass_the_frame_that_it_tells_of() {
    let mut engine = RxEngine::new(&config());
    let mut shared = Shared::new(1);
    let ring = QueueSettings { rx_mode: 1, rx_ring_address: BUFFERS, rx_ring_entries: 8, ..settings(1) };
    engine.start(QUEUE, &ring, &mut shared).unwrap();
    assert!(engine.read_arrived(QUEUE, 0, ReadTag(1), &mut shared));
    assert_eq!(engine.frame_arrived(&[5; 200], &mut shared), Accept::Taken);
    assert_eq!(shared.answers.take(&shared.dma), None, "the frame is not in memory yet");
    while shared.dma.take().is_some() {}
    assert!(shared.answers.take(&shared.dma).is_some());
}

#[test]
fn queues_that_make_no_sense_do_not_start() {
    let mut shared = Shared::new(1);
    for (bad, cause) in [
        (settings(8), Cause::BadLength),
        (QueueSettings { window_lines: 4, ..settings(4) }, Cause::BadLength),
        (QueueSettings { tx_head_address: 4, ..settings(1) }, Cause::DmaError),
    ] {
        assert_eq!(NiqEngine::new(&config()).start(QUEUE, &bad, &mut shared), Err(cause), "{bad:?}");
    }
    assert_eq!(RxEngine::new(&config()).start(QUEUE, &settings(8), &mut shared), Err(Cause::BadLength));
}
