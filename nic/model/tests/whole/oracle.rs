//! The device against a simple oracle, under writes that no honest sender makes: duplicates, stray offsets, wrong
//! headers, lengths and epochs, garbage. After every write both must have sent the same frames, have the same next
//! start, and have failed for the same reason or not at all. So no frame leaves that was not completely written.

use beeline_contract_device::{Accept, Enables};
use beeline_nic_model::NicConfig;
use beeline_spec::regs::field::queue_status::cause;
use beeline_spec::{Kind, escape};

use crate::rig::{Chunk, Cut, Oracle, QueueSetup, Random, Rig, Sender, cut, for_seeds};

const WINDOW: u64 = 8;
const SPAN: u64 = 4;
const MAX_FRAME: usize = 300;

/// The device and the oracle of one queue in step.
struct Pair {
    rig: Rig,
    oracle: Oracle,
    setup: QueueSetup,
    seen: usize,
    /// How often each cause failed the queue.
    failures: [u64; 16],
    frames: u64,
}

impl Pair {
    fn new(setup: QueueSetup) -> Self {
        let config = NicConfig {
            queues: 2,
            window_lines: WINDOW as u32,
            span_lines: SPAN as u32,
            contexts: 2,
            pool_lines: 2 * WINDOW as u32,
            max_frame_bytes: MAX_FRAME as u32,
            ..NicConfig::default()
        };
        let mut rig = Rig::new(config);
        rig.enable(1, &setup);
        Pair { rig, oracle: Self::oracle(&setup), setup, seen: 0, failures: [0; 16], frames: 0 }
    }

    fn oracle(setup: &QueueSetup) -> Oracle {
        Oracle::new(WINDOW, SPAN, MAX_FRAME, setup.epoch, setup.blank, setup.backpressure)
    }

    fn write(&mut self, at: u64, data: &[u8], enables: Enables) {
        let before = self.oracle.cause;
        assert_eq!(self.rig.write(1, at, data, enables), Accept::Taken);
        self.oracle.write(at, data, enables);
        let frames: Vec<Vec<u8>> =
            self.rig.frames[self.seen..].iter().map(|(_, frame)| frame.clone()).collect();
        self.seen = self.rig.frames.len();
        self.frames += frames.len() as u64;
        assert_eq!(frames, std::mem::take(&mut self.oracle.frames));
        assert_eq!(self.rig.next_start(1), self.oracle.next_start);
        let status = self.rig.status(1);
        assert_eq!(status.cause, self.oracle.cause, "{status:?}");
        assert_eq!(status.active, self.oracle.cause == cause::NONE);
        if before == cause::NONE {
            self.failures[self.oracle.cause as usize] += 1;
        }
    }

    fn has_failed(&self) -> bool {
        self.oracle.cause != cause::NONE
    }

    fn restart(&mut self) {
        self.rig.disable(1);
        self.rig.assert_empty();
        self.setup.epoch = self.setup.epoch.wrapping_add(1);
        self.rig.enable(1, &self.setup);
        self.oracle = Self::oracle(&self.setup);
    }
}

/// Changes a chunk as no honest sender would.
fn spoil(chunk: &mut Chunk, random: &mut Random) {
    match random.below(6) {
        0 => chunk.at = chunk.at.wrapping_add(random.below(16) * 8),
        1 => chunk.at = chunk.at.wrapping_add(random.below(12) * 64),
        2 | 3 => {
            let index = random.below(chunk.bytes.len() as u64) as usize;
            chunk.bytes[index] ^= 1 << random.below(8);
        }
        4 => chunk.enables = Enables::Mask(random.word()),
        _ => chunk.bytes = random.bytes(chunk.bytes.len()),
    }
}

fn clip(chunk: &mut Chunk) -> u64 {
    let at = chunk.at % (WINDOW * 64);
    chunk.bytes.truncate((WINDOW * 64 - at) as usize);
    at
}

/// A stream with a fault now and then.
fn faulty_stream(random: &mut Random, fault_once_in: u64) -> Pair {
    let blank = if random.once_in(2) { escape::blank_from_random(random.word()) } else { 0 };
    let backpressure = random.once_in(2);
    let mut pair = Pair::new(QueueSetup { blank, backpressure, ..QueueSetup::default() });
    for _ in 0..20 {
        let mut sender = Sender::new(pair.setup.epoch, blank);
        let mut pending: Vec<Chunk> = Vec::new();
        for _ in 0..200 {
            if pending.len() < 4 {
                let bytes = random.below(220) as usize;
                let mut payload = random.bytes(bytes);
                if bytes > 20 && random.once_in(2) {
                    payload[8..16].copy_from_slice(&blank.to_le_bytes());
                }
                let lines = match random.below(8) {
                    0 => sender.message(Kind::Void, &payload),
                    1 => sender.batch(&[payload.clone(), random.bytes(14), vec![]]),
                    2 => sender.message(Kind::Batch, &payload),
                    _ => sender.frame(&payload),
                };
                pending.extend(lines.iter().flat_map(|line| cut(line, Cut::Bytes, random)));
            }
            let frontier = pending.iter().map(Chunk::line).min().expect("some are pending");
            let near: Vec<usize> =
                (0..pending.len()).filter(|i| pending[*i].line() < frontier + SPAN).collect();
            let index = random.pick(&near);
            let mut chunk = pending[index].clone();
            if random.once_in(fault_once_in) {
                spoil(&mut chunk, random);
            }
            if !random.once_in(fault_once_in * 2) {
                pending.swap_remove(index);
            }
            let at = clip(&mut chunk);
            let enables = if chunk.bytes.len() > 64 { Enables::All } else { chunk.enables };
            pair.write(at, &chunk.bytes, enables);
            if pair.has_failed() && random.once_in(3) {
                break;
            }
        }
        pair.restart();
    }
    pair
}

#[test]
fn device_and_oracle_agree_on_faulty_streams() {
    // Every cause that a write can have must have come up, or the test would prove little.
    let total = std::cell::RefCell::new(([0; 16], 0));
    for_seeds(120, |random| {
        let once_in = random.pick(&[10, 60, 400]);
        let pair = faulty_stream(random, once_in);
        let mut total = total.borrow_mut();
        for (sum, count) in total.0.iter_mut().zip(pair.failures) {
            *sum += count;
        }
        total.1 += pair.frames;
    });
    let (failures, frames) = total.into_inner();
    if std::env::var_os("BEELINE_SEED").is_none() {
        for (name, value) in cause::ALL.iter().filter(|(_, value)| (2..=5).contains(value)) {
            assert!(failures[*value as usize] > 10, "{name} came up {} times", failures[*value as usize]);
        }
        assert!(failures[cause::BAD_LENGTH as usize] > 10 && frames > 5_000, "{failures:?} {frames}");
    }
}

#[test]
fn device_and_oracle_agree_on_garbage() {
    for_seeds(100, |random| {
        let backpressure = random.once_in(2);
        let mut pair = Pair::new(QueueSetup { backpressure, ..QueueSetup::default() });
        for _ in 0..400 {
            let at = random.below(WINDOW * 64);
            let most = if random.once_in(4) { WINDOW * 64 - at } else { (WINDOW * 64 - at).min(64) };
            let count = random.within(1, most) as usize;
            let bytes = random.bytes(count);
            let enables =
                if count <= 64 && random.once_in(2) { Enables::Mask(random.word()) } else { Enables::All };
            pair.write(at, &bytes, enables);
            if pair.has_failed() && random.once_in(4) {
                pair.restart();
            }
        }
    });
}

/// Anything at all, anywhere in the BAR and at any call: the device survives, and its memory comes back.
#[test]
fn no_call_in_any_order_breaks_the_device() {
    use beeline_contract_device::{Device, DmaError, DmaTag, ReadTag, SimTime, Write};
    for_seeds(60, |random| {
        let config =
            NicConfig { queues: 4, window_lines: 8, span_lines: 4, contexts: 4, ..NicConfig::default() };
        let (aperture, bar) = (config.aperture_bytes(), config.bar_bytes());
        let mut rig = Rig::new(config);
        for _ in 0..3000 {
            let offset = match random.below(8) {
                0 => random.word(),
                1 => aperture + random.below(4 * 4096),
                2 => u64::from(Rig::queue_register(random.below(4) as u16, random.below(20) as u32 * 8)),
                3 => u64::from(beeline_spec::regs::DOORBELL) + random.below(4) * 64 + random.below(3) * 8,
                4 => random.below(10) * 8,
                5 => random.below(bar),
                _ => aperture + random.below(4) * 4096 + random.below(8) * 64,
            };
            let value = match random.below(4) {
                0 => random.word(),
                1 => 1 | random.below(8) << 4 | random.below(3) << 8 | random.below(2) << 32,
                _ => random.below(64),
            };
            match random.below(10) {
                0 => {
                    let data = random.bytes(random.clone().below(300) as usize);
                    let enables = if random.once_in(2) { Enables::All } else { Enables::Mask(random.word()) };
                    let _ = rig.nic.write_arrived(Write { offset_bytes: offset, data: &data, enables });
                }
                1 => rig.nic.read_arrived(offset, ReadTag(random.word() as u16)),
                2 => {
                    let data = random.bytes(random.clone().below(4097) as usize);
                    let data = if random.once_in(8) { Err(DmaError::BadAddress) } else { Ok(&data[..]) };
                    rig.nic.dma_completed(DmaTag(random.word() as u16), data);
                }
                3 => {
                    let frame = random.bytes(random.clone().below(2000) as usize);
                    let _ = rig.nic.frame_arrived(&frame);
                }
                4 => {
                    rig.now_ns += random.below(100_000);
                    rig.nic.time_passed(SimTime::from_ns(rig.now_ns));
                }
                5 => rig.nic.wire_ready(random.once_in(2)),
                6 | 7 => {
                    for _ in 0..random.below(40) {
                        rig.take_want();
                    }
                    answer_some(&mut rig, random);
                }
                _ => {
                    let data = value.to_le_bytes();
                    let write = Write { offset_bytes: offset, data: &data, enables: Enables::All };
                    let _ = rig.nic.write_arrived(write);
                }
            }
            let _ = rig.nic.wake_at();
        }
        for queue in 0..4 {
            rig.disable(queue);
        }
        rig.assert_empty();
    });
}

/// Answers some of the reads that were asked for, with the right number of bytes.
fn answer_some(rig: &mut Rig, random: &mut Random) {
    use beeline_contract_device::Device;
    for (_, bytes, tag) in std::mem::take(&mut rig.reads) {
        if random.once_in(4) {
            continue;
        }
        let mut data = random.bytes(bytes as usize);
        if random.once_in(2) {
            // Descriptors with lengths that may be right.
            data.chunks_exact_mut(16).for_each(|descriptor| descriptor[9..16].fill(0));
        }
        rig.nic.dma_completed(tag, Ok(&data));
    }
}
