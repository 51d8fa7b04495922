//! A host that writes anything anywhere: every interface and receive mode, at once and in any order. The device never
//! panics, answers every read exactly once, asks for nothing that a link could not do, and works again after a reset.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use beeline_contract_device::{
    Device, DmaError, DmaTag, Enables, ReadTag, SimTime, Want, WatchEnd, WatchTag, Write,
};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::Interface;
use beeline_spec::coherent::{LineHeader, LineKind};
use beeline_spec::entry::{EntryHeader, EntryKind};
use beeline_spec::regs::{self, doorbell, queue as r};

use crate::rig::{QueueSetup, Random, Rig, Sender, for_seeds, small_config};

const QUEUES: u64 = 3;
const STEPS: u64 = 4000;

/// A NIC, what it was asked and has not answered, and the host's memory, which is whatever comes.
struct Bench {
    nic: Nic,
    config: NicConfig,
    random: Random,
    now_ns: u64,
    asked: BTreeMap<u16, u64>,
    next_read: u16,
    dma: Vec<(DmaTag, u32)>,
    /// Watches that are outstanding, with the bytes wanted, and those of them that were taken back.
    watches: BTreeMap<u16, u32>,
    forgotten: BTreeSet<u16>,
}

impl Bench {
    fn write(&mut self, offset_bytes: u64, data: &[u8], enables: Enables) {
        // A refused write is dropped here: whether it comes again is the link's affair.
        let _ = self.nic.write_arrived(Write { offset_bytes, data, enables });
    }

    fn register(&mut self, offset: u32, value: u64) {
        self.write(offset.into(), &value.to_le_bytes(), Enables::All);
    }

    /// A value that a field may have, or any.
    fn value(&mut self) -> u64 {
        match self.random.below(6) {
            0 => self.random.word(),
            1 => 1 << self.random.below(20),
            2 => self.random.below(8),
            3 => 64 * self.random.below(1 << 20),
            4 => self.random.below(1000) << 32 | self.random.below(20),
            _ => u64::MAX,
        }
    }

    fn set_up(&mut self) {
        let queue = self.random.below(QUEUES);
        let block = regs::QUEUE + queue as u32 * regs::QUEUE_STRIDE;
        for (register, value) in [
            (r::CONTROL, 0),
            (r::TX_RING_ADDRESS, 64 * self.random.below(1 << 20)),
            (r::TX_RING_ENTRIES, 1 << self.random.below(9)),
            (r::TX_HEAD_ADDRESS, 8 * self.random.below(100)),
            (r::RX_MODE, self.rx_mode()),
            (r::RX_RING_ADDRESS, 64 * self.random.below(1 << 20)),
            (r::RX_RING_ENTRIES, 1 << self.random.below(9)),
            (r::RX_COMPLETION_ADDRESS, 64 * self.random.below(1 << 20)),
            (r::RX_NOTIFY_ENTRIES, 1 << self.random.below(5)),
            (r::RX_NOTIFY_SHARE, self.random.below(2) | self.random.below(QUEUES + 1) << 16),
            (r::ENTRY, self.random.below(3) | self.random.below(500) << 32),
            (r::TX_PUSH, self.random.below(3)),
            (r::HOLE_TIMEOUT_NS, self.random.below(2) * 300),
        ] {
            self.register(block + register, value);
        }
        let iface = self.random.within(1, 7);
        let epoch = self.random.pick(&[1, 1, 1, 2]);
        let control = 1 | iface << 4 | epoch << 8 | self.random.below(2) << 32;
        self.register(block + r::CONTROL, control);
    }

    /// A receive mode, some that make no sense among them.
    fn rx_mode(&mut self) -> u64 {
        if self.random.once_in(3) {
            return 1 << 5 | self.random.below(4) << 8 | u64::from(self.random.once_in(10));
        }
        self.random.below(4) | self.random.below(2) << 4
    }

    fn step(&mut self) {
        let queue = self.random.below(QUEUES) as u32;
        match self.random.below(14) {
            0 | 12 | 13 => self.set_up(),
            1 if self.random.once_in(4) => {
                let register = regs::QUEUE + queue * regs::QUEUE_STRIDE + 8 * self.random.below(32) as u32;
                let value = self.value();
                self.register(register, value);
            }
            2 | 3 => {
                let bell =
                    self.random.pick(&[doorbell::TX_TAIL, doorbell::RX_FREED, doorbell::ENTRIES_FREED]);
                let value = if self.random.once_in(4) { self.value() } else { self.random.below(200) };
                self.register(regs::DOORBELL + queue * regs::DOORBELL_STRIDE + bell, value);
            }
            4..=6 => self.store(),
            7 => {
                let within = self.random.below(self.config.bar_bytes() / 8) * 8;
                let offset = match self.random.below(3) {
                    0 => within,
                    1 => u64::from(regs::COUNTERS) + 8 * self.random.below(64),
                    _ => self.window_offset(1024),
                };
                self.nic.read_arrived(offset, ReadTag(self.next_read));
                self.asked.insert(self.next_read, self.now_ns);
                self.next_read = self.next_read.wrapping_add(1);
            }
            8 => {
                let bytes = self.random.pick(&[1, 14, 40, 64, 300, 1600]);
                let frame = self.random.bytes(bytes);
                let _ = self.nic.frame_arrived(&frame);
            }
            9 => self.nic.wire_ready(self.random.below(4) > 0),
            _ => {
                self.now_ns += self.random.below(200);
                self.nic.time_passed(SimTime::from_ns(self.now_ns));
            }
        }
        self.take_wants();
        if self.random.once_in(2) && !self.dma.is_empty() {
            let (tag, bytes) = self.dma.swap_remove(self.random.below(self.dma.len() as u64) as usize);
            let wrong = u64::from(self.random.once_in(50));
            let data = self.host_bytes((u64::from(bytes) - wrong) as usize);
            let fails = self.random.once_in(50);
            self.nic.dma_completed(tag, if fails { Err(DmaError::BadAddress) } else { Ok(&data) });
        }
        self.answer_watch();
    }

    /// Answers one of the watches, also one that was taken back, with whatever comes.
    fn answer_watch(&mut self) {
        let count = self.watches.len() as u64;
        if count == 0 || !self.random.once_in(3) {
            return;
        }
        let tag =
            *self.watches.keys().nth(self.random.below(count) as usize).expect("one of those there are");
        let bytes = self.watches.remove(&tag).expect("it is outstanding");
        self.forgotten.remove(&tag);
        let wrong = 8 * u64::from(self.random.once_in(50));
        let mut line = self.random.bytes((u64::from(bytes) - wrong) as usize);
        let header = LineHeader {
            kind: match self.random.below(2) {
                0 => LineKind::Whole(self.random.below(130) as u16),
                _ => LineKind::Buffers(1 + self.random.below(9) as u8),
            },
            epoch: self.random.pick(&[1, 1, 1, 2]),
            position: self.random.pick(&[0, 0, 0, 1, 2]),
        };
        if !self.random.once_in(8) && !line.is_empty() {
            line[..8].copy_from_slice(&header.encode().to_le_bytes());
        }
        // Frames of a likely length at addresses of which some lead nowhere.
        for word in line.as_chunks_mut::<8>().0.iter_mut().skip(1) {
            *word = (self.random.below(300) | self.random.below(1 << 20) << 16).to_le_bytes();
        }
        let fails = self.random.once_in(50);
        let data = if fails { Err(WatchEnd::BadAddress) } else { Ok(&line[..]) };
        self.nic.line_changed(WatchTag(tag), data);
    }

    fn window_offset(&mut self, bytes: u64) -> u64 {
        let window = self.config.window_stride_bytes() * self.random.below(QUEUES);
        self.config.aperture_bytes() + window + self.random.below(bytes) / 8 * 8
    }

    fn store(&mut self) {
        // Mostly where a queue that has just been started looks for something.
        let line = if self.random.once_in(4) { self.random.below(16) } else { 4 * self.random.below(2) };
        let offset = self.window_offset(8) + 64 * line;
        let bytes = self.random.pick(&[64, 64, 64, 8, 24, 128, 256]);
        let data = self.host_bytes(bytes);
        let enables = if bytes <= 64 && self.random.once_in(4) {
            Enables::Mask(self.random.word())
        } else {
            Enables::All
        };
        self.write(offset, &data, enables);
    }

    /// What the host's memory or a store may hold: an entry, the header of a frame in a pipe, or anything.
    fn host_bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut data = self.random.bytes(bytes);
        for line in data.chunks_mut(64).filter(|line| line.len() >= 16) {
            let word = match self.random.below(4) {
                0 => self.random.below(1600),
                1 => self.random.word(),
                _ => EntryHeader {
                    length_bytes: self.random.below(260) as u16,
                    kind: self.random.pick(&[EntryKind::Whole, EntryKind::Address, EntryKind::Nothing]),
                    wants_irq: self.random.once_in(2),
                    epoch: self.random.pick(&[1, 1, 1, 2]),
                    position: self.random.pick(&[0, 0, 0, 1, 1, 2, 3, 9]),
                }
                .encode(),
            };
            line[..8].copy_from_slice(&word.to_le_bytes());
        }
        data
    }

    fn take_wants(&mut self) {
        for _ in 0..1_000_000 {
            match self.nic.next() {
                None => return,
                Some(Want::Transmit { frame, .. }) => {
                    assert!((14..=self.config.max_frame_bytes as usize).contains(&frame.len()));
                }
                Some(Want::DmaRead { bytes, tag, .. }) => {
                    assert!((1..=4096).contains(&bytes));
                    self.dma.push((tag, bytes));
                }
                Some(Want::DmaWrite { data, .. }) => assert!(!data.is_empty()),
                Some(Want::WatchLine { tag, bytes, .. }) => {
                    assert!(usize::from(tag.0) < 2 * QUEUES as usize && (8..=256).contains(&bytes));
                    assert_eq!(self.watches.insert(tag.0, bytes), None, "a tag is used twice");
                }
                Some(Want::ForgetLine { tag }) => {
                    assert!(self.watches.contains_key(&tag.0) && self.forgotten.insert(tag.0));
                }
                Some(Want::ReadCompletion { tag, .. }) => {
                    assert!(self.asked.remove(&tag.0).is_some(), "read {} was answered twice", tag.0);
                }
                Some(Want::Aborted { queue, .. }) => assert!(u64::from(queue.0) < QUEUES),
                Some(Want::Interrupt { vector }) => assert!(u64::from(vector) < QUEUES),
            }
        }
        panic!("the device never stops wanting");
    }
}

#[test]
fn whatever_a_host_writes_the_device_stays_sound() {
    let total = RefCell::new(BTreeMap::<&str, u64>::new());
    for_seeds(24, |random| {
        let config = NicConfig { queues: QUEUES as u32, max_frame_bytes: 1514, ..small_config() };
        let mut bench = Bench {
            nic: Nic::new(config.clone()).expect("the sizes make sense"),
            config,
            random: random.clone(),
            now_ns: 0,
            asked: BTreeMap::new(),
            next_read: 0,
            dma: Vec::new(),
            watches: BTreeMap::new(),
            forgotten: BTreeSet::new(),
        };
        bench.register(regs::CONTROL, 1);
        for _ in 0..STEPS {
            bench.step();
        }
        for (name, count) in bench.nic.counters().named() {
            *total.borrow_mut().entry(name).or_default() += count;
        }
        // No processor waits for ever: what is held is answered at the latest by a reset.
        bench.register(regs::CONTROL, 2);
        bench.nic.wire_ready(true);
        bench.take_wants();
        assert!(bench.asked.is_empty(), "{} reads were never answered", bench.asked.len());
        assert!(bench.watches.keys().eq(&bench.forgotten), "a watch outlives the queue that wanted it");
    });
    // Every way in was gone, so that the run means something.
    let total = total.into_inner();
    for name in ["push_taken", "push_torn", "entries", "notifications", "held_read_timeouts", "tx_frames"] {
        assert!(total[name] > 10, "{name}: {total:?}");
    }
}

#[test]
fn a_device_that_was_abused_works_after_a_reset() {
    for iface in Interface::ALL.map(Interface::code) {
        let mut rig = Rig::new(small_config());
        rig.set(Rig::queue_register(0, r::TX_RING_ADDRESS), 64);
        rig.set(Rig::queue_register(0, r::TX_RING_ENTRIES), 16);
        rig.enable(0, &QueueSetup { interface: iface, ..QueueSetup::default() });
        rig.set(regs::DOORBELL + doorbell::TX_TAIL, 3);
        let _ = rig.write(0, 0, &[0xff; 64], Enables::All);
        rig.set(regs::CONTROL, 2);
        rig.set(regs::CONTROL, 1);
        rig.enable(0, &QueueSetup::default());
        rig.write_lines(0, &Sender::new(1, 0).frame(&[iface; 20]));
        assert_eq!(rig.frames_of(0), [vec![iface; 20]]);
    }
}
