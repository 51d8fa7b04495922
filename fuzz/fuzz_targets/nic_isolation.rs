//! This target checks isolation on the behavioural NIC. An attacker owns one queue, of any interface: its window, its
//! doorbell and its memory are his, byte by byte, and whoever set the queue up starts it anew whenever he likes. Beside it
//! is an honest queue of every interface. What leaves of those is what their owners handed over, in order, to the byte;
//! they stay active, everything they were lent comes back exactly, and no write of theirs is refused.
#![no_main]

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use beeline_contract_device::{Accept, Device, DmaError, DmaTag, Enables, ReadTag, SimTime, Want, Write};
use beeline_fuzz::Word;
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::regs::field::{queue_control, queue_status};
use beeline_spec::regs::{self, doorbell, queue};
use beeline_tests::Random;
use beeline_tests::owners::{Bench, INTERFACES, Owner, QueueResources, Store, owner};
use libfuzzer_sys::fuzz_target;

const WINDOW_LINES: u32 = 64;
const QUEUES: u32 = 8;
/// The attacker's queue; those before it are honest.
const HOSTILE: u16 = INTERFACES.len() as u16;
/// Where the credits of queue `q` go: this plus 64 `q`.
const CREDITS: u64 = 0x1000;
/// Longest frame that is handed over: more than an entry holds, less than a window.
const LONGEST_BYTES: usize = 700;
/// Frames that an honest owner hands over at most, so that an input ends.
const MOST_FRAMES: usize = 300;
/// Turns of honest owners behind the attacker's last operation: enough for each to come round its window.
const AFTERMATH: usize = 40;

#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    /// An honest owner makes several writes.
    Honest { which: u8, writes: u8 },
    /// The attacker breaks the rules of his interface, as these numbers choose.
    Break(u64),
    /// He stores bytes into his window.
    Bytes { at: u16, data: &'a [u8], enables: Option<u64> },
    /// He stores words into his window.
    Words { line: u8, word: u8, words: Vec<Word> },
    /// He rings.
    Ring(Word),
    /// He writes his memory.
    Poke { at: u32, words: Vec<Word> },
    /// His queue is stopped and started anew.
    Begin { interface: u8, timeout_ns: u16, self_test: u8 },
    /// It is stopped, and not started.
    Stop,
    /// A read of memory that waits is answered, or all are.
    Answer { which: u8, fails: bool },
    /// The wire takes frames, or stops.
    WireReady(bool),
    /// Time passes.
    Time(u16),
}

/// An honest owner and what must leave of it.
struct Honest {
    owner: Box<dyn Owner>,
    /// Writes of the frame under way, the last one first.
    stores: Vec<Store>,
    handed: usize,
    expected: VecDeque<Vec<u8>>,
}

/// Memory, and register writes that have not been made.
struct Memory {
    bytes: Vec<u8>,
    registers: Vec<(u32, u64)>,
}

impl Bench for Memory {
    fn store(&mut self, address: u64, data: &[u8]) {
        self.bytes[address as usize..address as usize + data.len()].copy_from_slice(data);
    }

    fn load(&self, address: u64) -> u64 {
        let word = &self.bytes[address as usize..address as usize + 8];
        u64::from_le_bytes(word.try_into().expect("a word"))
    }

    fn set_of(&mut self, queue: u16, register: u32, value: u64) {
        self.registers.push((regs::QUEUE + u32::from(queue) * regs::QUEUE_STRIDE + register, value));
    }
}

struct World {
    nic: Nic,
    memory: Memory,
    honest: Vec<Honest>,
    hostile: Box<dyn Owner>,
    epoch: u8,
    reads: Vec<(u64, u32, DmaTag)>,
    now_ns: u64,
    answer: Option<u64>,
}

fn config() -> NicConfig {
    NicConfig {
        queues: QUEUES,
        window_lines: WINDOW_LINES,
        span_lines: 16,
        contexts: 3,
        pool_lines: 3 * WINDOW_LINES,
        max_frame_bytes: 1514,
        ..NicConfig::default()
    }
}

fn resources(queue: u16) -> QueueResources {
    let config = config();
    QueueResources {
        queue,
        window_lines: WINDOW_LINES.into(),
        window: config.aperture_bytes() + u64::from(queue) * config.window_stride_bytes(),
        memory: QueueResources::MEMORY_BYTES * (u64::from(queue) + 1),
        credits: CREDITS + 64 * u64::from(queue),
    }
}

impl World {
    fn new() -> Self {
        let honest = INTERFACES.iter().enumerate().map(|(queue, interface)| Honest {
            owner: owner(*interface, resources(queue as u16)),
            stores: Vec::new(),
            handed: 0,
            expected: VecDeque::new(),
        });
        let bytes = vec![0; QueueResources::MEMORY_BYTES as usize * (QUEUES as usize + 2)];
        let mut world = World {
            nic: Nic::new(config()).expect("the sizes are sound"),
            memory: Memory { bytes, registers: Vec::new() },
            honest: honest.collect(),
            hostile: owner(INTERFACES[0], resources(HOSTILE)),
            epoch: 0,
            reads: Vec::new(),
            now_ns: 0,
            answer: None,
        };
        world.memory.registers.push((regs::CONTROL, 1));
        for queue in 0..=HOSTILE {
            world.memory.set_of(queue, queue::CREDIT_ADDRESS, CREDITS + 64 * u64::from(queue));
        }
        for (queue, honest) in world.honest.iter_mut().enumerate() {
            honest.owner.set_up(&mut world.memory);
            honest.owner.begin(7);
            let control = control(honest.owner.as_ref(), 7);
            world.memory.set_of(queue as u16, queue::CONTROL, control);
        }
        world.write_registers();
        world
    }

    fn write_registers(&mut self) {
        for (offset, value) in std::mem::take(&mut self.memory.registers) {
            self.write(offset.into(), &value.to_le_bytes(), Enables::All);
        }
    }

    /// A write arrives; nobody here has back-pressure, so it is taken at once or when what the NIC wants was done.
    fn write(&mut self, offset_bytes: u64, data: &[u8], enables: Enables) {
        let write = Write { offset_bytes, data, enables };
        if self.nic.write_arrived(write) == Accept::Taken {
            return;
        }
        self.drain();
        assert_eq!(self.nic.write_arrived(write), Accept::Taken, "a write at {offset_bytes:#x} is refused");
    }

    fn store(&mut self, store: &Store) {
        self.write(store.offset, &store.data, store.enables);
    }

    /// Does what the NIC wants, but for reads, which wait for their answers.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            match self.nic.next() {
                None => return,
                Some(Want::Transmit { queue, frame }) => {
                    if let Some(honest) = self.honest.get_mut(usize::from(queue.0)) {
                        let expected = honest.expected.pop_front();
                        assert_eq!(Some(frame), expected.as_deref(), "a frame of honest queue {}", queue.0);
                    }
                }
                Some(Want::DmaRead { address, bytes, tag }) => self.reads.push((address, bytes, tag)),
                Some(Want::DmaWrite { address, data }) => {
                    let end = address as usize + data.len();
                    self.memory.bytes[address as usize..end].copy_from_slice(data);
                }
                Some(Want::ReadCompletion { value, .. }) => self.answer = Some(value),
                Some(_) => {}
            }
        }
        panic!("the device wants something for ever");
    }

    /// Answers one of the reads that wait. What an attacker names may lie anywhere; only his reads fail.
    fn answer(&mut self, which: usize, fails: bool) {
        let (address, bytes, tag) = self.reads.remove(which);
        let own = resources(HOSTILE).memory;
        let is_honest = (resources(0).memory..own).contains(&address);
        let end = address.checked_add(bytes.into()).filter(|end| *end <= self.memory.bytes.len() as u64);
        let data = end.map(|end| &self.memory.bytes[address as usize..end as usize]);
        let data = data.filter(|_| is_honest || !fails).ok_or(DmaError::BadAddress);
        self.nic.dma_completed(tag, data);
    }

    /// Runs until nothing is in flight.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.drain();
            if self.reads.is_empty() {
                return;
            }
            self.answer(0, false);
        }
        panic!("the device reads for ever");
    }

    /// An honest owner makes its next writes, of a new frame if none is under way and there is room.
    fn honest(&mut self, which: usize, writes: u8) {
        let honest = &mut self.honest[which];
        if honest.stores.is_empty() {
            let mut random = Random::new((which * MOST_FRAMES + honest.handed) as u64);
            let bytes = 14 + [random.below(80), random.below(LONGEST_BYTES)][random.below(2)];
            let frame: Vec<u8> = (0..bytes).map(|_| random.word() as u8).collect();
            if honest.handed == MOST_FRAMES {
                return;
            }
            let Some(stores) = honest.owner.send(&mut self.memory, &mut random, &frame) else { return };
            honest.handed += 1;
            honest.expected.push_back(honest.owner.on_the_wire(&frame));
            honest.stores = stores;
            honest.stores.reverse();
        }
        for _ in 0..=writes {
            let Some(store) = self.honest[which].stores.pop() else { return };
            self.store(&store);
        }
    }

    fn begin(&mut self, interface: u8, timeout_ns: u16, self_test: u8) {
        self.epoch = self.epoch.wrapping_add(1);
        self.hostile = owner(INTERFACES[usize::from(interface) % INTERFACES.len()], resources(HOSTILE));
        self.hostile.begin(self.epoch);
        self.memory.set_of(HOSTILE, queue::CONTROL, 0);
        self.memory.set_of(HOSTILE, queue::TX_PUSH, self_test.into());
        self.hostile.set_up(&mut self.memory);
        self.memory.set_of(HOSTILE, queue::HOLE_TIMEOUT_NS, timeout_ns.into());
        let control = control(self.hostile.as_ref(), self.epoch);
        self.memory.set_of(HOSTILE, queue::CONTROL, control);
        self.write_registers();
    }

    fn happen(&mut self, operation: Operation<'_>) {
        let own = resources(HOSTILE);
        let window_bytes = u64::from(WINDOW_LINES) * 64;
        match operation {
            Operation::Honest { which, writes } => {
                self.honest(usize::from(which) % INTERFACES.len(), writes);
            }
            Operation::Break(seed) => {
                for store in self.hostile.break_rules(&mut self.memory, &mut Random::new(seed)) {
                    self.store(&store);
                }
            }
            Operation::Bytes { at, data, enables } => {
                let at = u64::from(at) % window_bytes;
                let data = &data[..data.len().min((window_bytes - at) as usize)];
                let enables = enables.filter(|_| data.len() <= 64).map_or(Enables::All, Enables::Mask);
                self.write(own.window + at, data, enables);
            }
            Operation::Words { line, word, words } => {
                let at = u64::from(line) % u64::from(WINDOW_LINES) * 64 + u64::from(word % 8) * 8;
                let data: Vec<u8> = words.iter().flat_map(|word| word.value().to_le_bytes()).collect();
                self.write(
                    own.window + at,
                    &data[..data.len().min((window_bytes - at) as usize)],
                    Enables::All,
                );
            }
            Operation::Ring(value) => {
                let offset = regs::DOORBELL + u32::from(HOSTILE) * regs::DOORBELL_STRIDE + doorbell::TX_TAIL;
                self.write(offset.into(), &value.value().to_le_bytes(), Enables::All);
            }
            Operation::Poke { at, words } => {
                for (address, word) in
                    (u64::from(at) % (QueueResources::MEMORY_BYTES / 2)..).step_by(8).zip(words)
                {
                    self.memory.store(own.memory + address, &word.value().to_le_bytes());
                }
            }
            Operation::Begin { interface, timeout_ns, self_test } => {
                self.begin(interface, timeout_ns, self_test)
            }
            Operation::Stop => {
                self.memory.set_of(HOSTILE, queue::CONTROL, 0);
                self.write_registers();
            }
            Operation::Answer { which, fails } => {
                if let Some(which) = usize::from(which).checked_rem(self.reads.len()) {
                    self.answer(which, fails);
                }
            }
            Operation::WireReady(ready) => self.nic.wire_ready(ready),
            Operation::Time(ns) => self.time(ns.into()),
        }
    }

    fn time(&mut self, ns: u64) {
        self.now_ns += ns;
        self.nic.time_passed(SimTime::from_ns(self.now_ns));
    }

    /// Honest owners go on for a while, for what the attacker left behind, and end what they have begun; then everything
    /// has left, and is theirs again.
    fn end(&mut self) {
        self.nic.wire_ready(true);
        self.settle();
        for _ in 0..AFTERMATH {
            for which in 0..self.honest.len() {
                self.honest(which, 7);
            }
            self.settle();
        }
        for which in 0..self.honest.len() {
            while let Some(store) = self.honest[which].stores.pop() {
                self.store(&store);
            }
        }
        self.time(1_000_000);
        self.settle();
        for which in 0..self.honest.len() {
            let offset = regs::QUEUE + which as u32 * regs::QUEUE_STRIDE + queue::STATUS;
            self.nic.read_arrived(offset.into(), ReadTag(1));
            self.drain();
            let status = self.answer.take().expect("a read is answered");
            let honest = &self.honest[which];
            assert!(
                honest.expected.is_empty(),
                "{} frames of honest queue {which} are missing",
                honest.expected.len()
            );
            let state = status & (1 << queue_status::QUARANTINED_LSB | 1 << queue_status::ACTIVE_LSB);
            assert_eq!(state, 1 << queue_status::ACTIVE_LSB, "status {status:#x} of honest queue {which}");
            assert!(
                honest.owner.is_done(&self.memory),
                "the owner of honest queue {which} is owed something"
            );
        }
    }
}

/// The value that starts a queue, without back-pressure: that right has nobody here.
fn control(owner: &dyn Owner, epoch: u8) -> u64 {
    1 << queue_control::ENABLE_LSB
        | u64::from(owner.interface().code()) << queue_control::IFACE_LSB
        | u64::from(epoch) << queue_control::EPOCH_LSB
}

fuzz_target!(|input: (u8, Vec<(Operation<'_>, bool)>)| {
    let (interface, operations) = input;
    let mut world = World::new();
    world.begin(interface, 0, 0);
    for (operation, drains) in operations {
        world.happen(operation);
        // Between any two things that the attacker does every honest owner makes a write.
        for which in 0..INTERFACES.len() {
            world.honest(which, 0);
        }
        if drains {
            world.drain();
        }
    }
    world.end();
});
