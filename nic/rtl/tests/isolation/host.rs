//! A host at the NIC's pins: registers, windows and memory, and every cycle counted.
//!
//! Nothing here waits until the NIC has settled unless it is asked to: writes follow each other in neighbouring cycles,
//! reads of memory are answered after a fixed number of them, and the wire takes a beat a cycle or none.

use std::collections::{HashMap, VecDeque};

use beeline_contract_device::{Accept, Device, DmaTag, Enables, ReadTag, SimTime, Want, Write};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_spec::regs::field::{queue_control, queue_status};
use beeline_spec::regs::{self, queue};
use beeline_spec::{Header, Interface, Kind};
use beeline_tests::owners::{Bench, QueueResources};

/// Cycles from a read of host memory to its answer: 600 ns at 250 MHz.
pub const READ_CYCLES: u64 = 150;

/// Cycles after which a host gives up: generous, a watchdog.
const TIMEOUT_CYCLES: u64 = 200_000;

/// Where the credits of queue `q` go: this plus 64 `q`.
pub const CREDITS: u64 = 0x1000;

/// A host and the NIC under test.
pub struct Host {
    pub nic: RtlNic,
    pub config: RtlConfig,
    memory: Vec<u8>,
    /// Frames of each queue as they left.
    pub frames: HashMap<u16, Vec<Vec<u8>>>,
    /// Cycle at which the last of them had left.
    pub last_frame: HashMap<u16, u64>,
    answers: VecDeque<(u64, DmaTag, u64, u32)>,
    register: Option<u64>,
    /// Names of lines and contexts that nobody has while no queue is started.
    pub free_at_reset: (u32, u32),
}

/// What a queue is started with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub interface: Interface,
    pub epoch: u8,
    pub credits: bool,
}

impl Start {
    /// The value of the queue's control register.
    pub fn control(self) -> u64 {
        1 << queue_control::ENABLE_LSB
            | u64::from(self.interface.code()) << queue_control::IFACE_LSB
            | u64::from(self.epoch) << queue_control::EPOCH_LSB
            | u64::from(!self.credits) << queue_control::BACKPRESSURE_LSB
    }
}

impl Host {
    /// A NIC that is enabled, without queues.
    pub fn new(config: RtlConfig) -> Self {
        let nic = RtlNic::new(&config).unwrap();
        let mut host = Host {
            nic,
            config,
            memory: vec![0; 20 * QueueResources::MEMORY_BYTES as usize],
            frames: HashMap::new(),
            last_frame: HashMap::new(),
            answers: VecDeque::new(),
            register: None,
            free_at_reset: (0, 0),
        };
        // Time is what the cycles make it: 4 ns each.
        host.nic.set_stepped(true);
        host.idle_for(400);
        host.free_at_reset = (host.nic.free_lines(), host.nic.free_contexts());
        host.set(regs::CONTROL, 1);
        for queue in 0..16 {
            host.set_of(queue, queue::CREDIT_ADDRESS, CREDITS + 64 * u64::from(queue));
            host.set_of(queue, queue::CREDIT_COALESCE, 1);
        }
        host
    }

    pub fn cycles(&self) -> u64 {
        self.nic.cycles()
    }

    /// One cycle in which nothing is written.
    pub fn idle(&mut self) {
        self.nic.cycle();
        self.collect();
    }

    pub fn idle_for(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.idle();
        }
    }

    /// Does what the NIC wanted in the cycles that were made.
    fn collect(&mut self) {
        let now = self.nic.cycles();
        self.nic.time_passed(SimTime::from_ns(now * 4));
        while let Some(want) = self.nic.lend() {
            match want {
                Want::Transmit { queue, frame } => {
                    self.frames.entry(queue.0).or_default().push(frame.to_vec());
                    self.last_frame.insert(queue.0, now);
                }
                Want::DmaWrite { address, data } => {
                    // What a wrong queue names may lie anywhere.
                    if let Some(resources) =
                        self.memory.get_mut(address as usize..address as usize + data.len())
                    {
                        resources.copy_from_slice(data);
                    }
                }
                Want::DmaRead { address, bytes, tag } => {
                    self.answers.push_back((now + READ_CYCLES, tag, address, bytes));
                }
                Want::ReadCompletion { value, .. } => self.register = Some(value),
                _ => {}
            }
        }
        while self.answers.front().is_some_and(|(due, ..)| *due <= now) {
            let (_, tag, address, bytes) = self.answers.pop_front().unwrap();
            let range = address as usize..(address as usize).saturating_add(bytes as usize);
            let zeros = vec![0; bytes as usize];
            // Memory that is not there reads as zeros; a refused read would fail its queue alone as well.
            let data = self.memory.get(range).unwrap_or(&zeros);
            self.nic.dma_completed(tag, Ok(data));
        }
    }

    /// A write at the BAR; `false` when it was refused.
    pub fn try_write(&mut self, offset_bytes: u64, data: &[u8], enables: Enables) -> bool {
        let accept = self.nic.write_arrived(Write { offset_bytes, data, enables });
        self.collect();
        accept == Accept::Taken
    }

    pub fn write_at(&mut self, offset_bytes: u64, data: &[u8], enables: Enables) {
        let until = self.cycles() + TIMEOUT_CYCLES;
        while !self.try_write(offset_bytes, data, enables) {
            assert!(self.cycles() < until, "the BAR stands at {offset_bytes:#x}");
        }
    }

    /// A write to a window, at so many bytes from its start.
    pub fn write(&mut self, queue: u16, offset_bytes: u64, data: &[u8]) {
        let (aperture, stride) = self.config.aperture();
        self.write_at(aperture + u64::from(queue) * stride + offset_bytes, data, Enables::All);
    }

    /// Bytes `from..to` of the line at a position of the queue's window.
    pub fn piece(&mut self, queue: u16, position: u64, line: &[u8; 64], from: usize, to: usize) {
        let resources = position % u64::from(self.config.window_lines) * 64;
        self.write(queue, resources + from as u64, &line[from..to]);
    }

    pub fn set(&mut self, offset: u32, value: u64) {
        self.write_at(offset.into(), &value.to_le_bytes(), Enables::All);
    }

    /// Reads a register: what was written before has had its effect.
    pub fn get(&mut self, offset: u32) -> u64 {
        self.nic.read_arrived(offset.into(), ReadTag(1));
        let until = self.cycles() + TIMEOUT_CYCLES;
        loop {
            self.idle();
            if let Some(value) = self.register.take() {
                return value;
            }
            assert!(self.cycles() < until, "the read of {offset:#x} is not answered");
        }
    }

    pub fn get_of(&mut self, queue: u16, register: u32) -> u64 {
        self.get(regs::QUEUE + u32::from(queue) * regs::QUEUE_STRIDE + register)
    }

    /// Whether a queue takes writes, and the cause if it has failed.
    pub fn status(&mut self, queue: u16) -> (bool, u64) {
        let status = self.get_of(queue, queue::STATUS);
        let is_active = status >> queue_status::ACTIVE_LSB & queue_status::ACTIVE_MASK == 1;
        (is_active, status >> queue_status::CAUSE_LSB & queue_status::CAUSE_MASK)
    }

    pub fn is_active(&mut self, queue: u16) -> bool {
        self.status(queue).0
    }

    pub fn start(&mut self, queue: u16, start: Start) {
        self.store(CREDITS + 64 * u64::from(queue), &[0; 8]);
        self.set_of(queue, queue::CONTROL, start.control());
    }

    pub fn stop(&mut self, queue: u16) {
        self.set_of(queue, queue::CONTROL, 0);
    }

    pub fn wire_ready(&mut self, ready: bool) {
        self.nic.wire_ready(ready);
    }

    /// Lines that a queue may write again, as they were told last.
    pub fn freed(&self, queue: u16) -> u64 {
        self.load(CREDITS + 64 * u64::from(queue))
    }

    /// Until a queue has sent so many frames in all.
    pub fn until_sent(&mut self, queue: u16, frames: usize) {
        let until = self.cycles() + TIMEOUT_CYCLES;
        while self.frames.get(&queue).map_or(0, Vec::len) < frames && self.cycles() < until {
            self.idle();
        }
    }

    pub fn holds(&self) -> bool {
        !self.nic.has_failed()
    }
}

impl Bench for Host {
    fn store(&mut self, address: u64, data: &[u8]) {
        self.memory[address as usize..address as usize + data.len()].copy_from_slice(data);
    }

    fn load(&self, address: u64) -> u64 {
        u64::from_le_bytes(self.memory[address as usize..address as usize + 8].try_into().unwrap())
    }

    fn set_of(&mut self, queue: u16, register: u32, value: u64) {
        self.set(regs::QUEUE + u32::from(queue) * regs::QUEUE_STRIDE + register, value);
    }
}

/// A message of one line: frame of 56 bytes, all of them `fill` but for the first eight, which are `number`.
pub fn message(epoch: u8, number: u64, fill: u8) -> [u8; 64] {
    let mut line = [fill; 64];
    line[..8].copy_from_slice(&Header::new(Kind::Data, 56, epoch).encode().to_le_bytes());
    line[8..16].copy_from_slice(&number.to_le_bytes());
    line
}
