//! What the tests of the whole device share: a host that only knows registers and windows, a sender that lays messages
//! out as `spec` says, an adversary, and random numbers from a printed seed.
//!
//! Every test of a random kind prints its seed when it fails; `BEELINE_SEED=n` runs that seed alone.

mod adversary;
mod oracle;
mod random;
mod sender;

use beeline_contract_device::{
    Accept, Device, DmaError, Enables, QueueId, ReadTag, SimTime, Want, WatchTag, Write,
};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::formats::interface;
use beeline_spec::regs::field::{credit_coalesce, queue_control, queue_status};
use beeline_spec::regs::{self, queue as r};

pub use adversary::{Chunk, Cut, cut};
pub use oracle::Oracle;
pub use random::{Random, for_seeds};
pub use sender::{PlacedLine, Sender};

/// Where the credit word of queue 0 lies; those of the others follow at 64 bytes each.
const CREDITS: u64 = 1 << 20;

/// How a test enables a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueSetup {
    pub interface: u8,
    pub epoch: u8,
    pub class: u8,
    pub weight: u8,
    pub backpressure: bool,
    pub blank: u64,
    pub credit_lines: u32,
    pub credit_time_ns: u32,
    pub hole_timeout_ns: u64,
}

impl Default for QueueSetup {
    fn default() -> Self {
        QueueSetup {
            interface: interface::MMIO,
            epoch: 1,
            class: 0,
            weight: 1,
            backpressure: false,
            blank: 0,
            credit_lines: 1,
            credit_time_ns: 0,
            hole_timeout_ns: 0,
        }
    }
}

/// Four queues with windows of 16 lines, and room for all of them on credits.
pub fn small_config() -> NicConfig {
    NicConfig {
        queues: 4,
        window_lines: 16,
        span_lines: 8,
        contexts: 4,
        pool_lines: 64,
        ..NicConfig::default()
    }
}

/// A queue's status register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub active: bool,
    pub quarantined: bool,
    pub cause: u64,
    pub epoch: u8,
}

/// A NIC and everything that came out of it.
pub struct Rig {
    pub nic: Nic,
    pub now_ns: u64,
    aperture: u64,
    stride: u64,
    /// Frames put on the wire, with their queue.
    pub frames: Vec<(u16, Vec<u8>)>,
    /// Credits as last pushed, for each queue.
    pub credits: Vec<u64>,
    pub interrupts: Vec<u16>,
    /// Reads of host memory that were asked for: address, bytes, tag.
    pub reads: Vec<(u64, u32, beeline_contract_device::DmaTag)>,
    /// Lines that were to be watched: tag, address, the first word as known; and those to be forgotten.
    pub watches: Vec<(WatchTag, u64, u64)>,
    pub forgotten: Vec<WatchTag>,
    /// Writes to host memory other than credits.
    pub writes: Vec<(u64, Vec<u8>)>,
    answer: Option<u64>,
}

impl Rig {
    /// An enabled device with no queue enabled.
    pub fn new(config: NicConfig) -> Self {
        let (aperture, stride) = (config.aperture_bytes(), config.window_stride_bytes());
        let queues = config.queues as usize;
        let mut rig = Rig {
            nic: Nic::new(config).expect("the test's sizes make sense"),
            now_ns: 0,
            aperture,
            stride,
            frames: Vec::new(),
            credits: vec![0; queues],
            interrupts: Vec::new(),
            reads: Vec::new(),
            watches: Vec::new(),
            forgotten: Vec::new(),
            writes: Vec::new(),
            answer: None,
        };
        rig.set(regs::CONTROL, 1);
        rig
    }

    pub fn set(&mut self, offset: u32, value: u64) {
        let write = Write { offset_bytes: offset.into(), data: &value.to_le_bytes(), enables: Enables::All };
        assert_eq!(self.nic.write_arrived(write), Accept::Taken);
        self.settle();
    }

    pub fn get(&mut self, offset: u32) -> u64 {
        self.answer = None;
        self.nic.read_arrived(offset.into(), ReadTag(7));
        self.settle();
        self.answer.expect("a register read is answered")
    }

    pub fn queue_register(queue: u16, register: u32) -> u32 {
        regs::QUEUE + u32::from(queue) * regs::QUEUE_STRIDE + register
    }

    pub fn control_word(setup: &QueueSetup) -> u64 {
        use queue_control as f;
        1 << f::ENABLE_LSB
            | u64::from(setup.interface) << f::IFACE_LSB
            | u64::from(setup.epoch) << f::EPOCH_LSB
            | u64::from(setup.class) << f::CLASS_LSB
            | u64::from(setup.weight) << f::WEIGHT_LSB
            | u64::from(setup.backpressure) << f::BACKPRESSURE_LSB
    }

    pub fn enable(&mut self, queue: u16, setup: &QueueSetup) {
        let coalesce = u64::from(setup.credit_lines) << credit_coalesce::LINES_LSB
            | u64::from(setup.credit_time_ns) << credit_coalesce::TIME_NS_LSB;
        for (register, value) in [
            (r::BLANK, setup.blank),
            (r::CREDIT_ADDRESS, CREDITS + u64::from(queue) * 64),
            (r::CREDIT_COALESCE, coalesce),
            (r::HOLE_TIMEOUT_NS, setup.hole_timeout_ns),
            (r::CONTROL, Self::control_word(setup)),
        ] {
            self.set(Self::queue_register(queue, register), value);
        }
        self.credits[usize::from(queue)] = 0;
    }

    pub fn disable(&mut self, queue: u16) {
        self.set(Self::queue_register(queue, r::CONTROL), 0);
    }

    pub fn status(&mut self, queue: u16) -> Status {
        use queue_status as f;
        let word = self.get(Self::queue_register(queue, r::STATUS));
        Status {
            active: word >> f::ACTIVE_LSB & f::ACTIVE_MASK == 1,
            quarantined: word >> f::QUARANTINED_LSB & f::QUARANTINED_MASK == 1,
            cause: word >> f::CAUSE_LSB & f::CAUSE_MASK,
            epoch: (word >> f::EPOCH_LSB & f::EPOCH_MASK) as u8,
        }
    }

    pub fn next_start(&mut self, queue: u16) -> u64 {
        self.get(Self::queue_register(queue, r::NEXT_START))
    }

    /// A write to a queue's window; wants are not looked at.
    pub fn write_only(&mut self, queue: u16, at: u64, data: &[u8], enables: Enables) -> Accept {
        let offset_bytes = self.aperture + u64::from(queue) * self.stride + at;
        self.nic.write_arrived(Write { offset_bytes, data, enables })
    }

    /// A write, and then everything that the device wants.
    pub fn write(&mut self, queue: u16, at: u64, data: &[u8], enables: Enables) -> Accept {
        let accept = self.write_only(queue, at, data, enables);
        self.settle();
        accept
    }

    /// A chunk of a message, at its place in the window.
    pub fn write_chunk(&mut self, queue: u16, chunk: &Chunk) -> Accept {
        let window_bytes = u64::from(self.nic.config().window_lines) * 64;
        let at = chunk.at % window_bytes;
        self.write(queue, at, &chunk.bytes, chunk.enables)
    }

    /// Whole lines in order.
    pub fn write_lines(&mut self, queue: u16, lines: &[PlacedLine]) {
        for line in lines {
            let window_lines = u64::from(self.nic.config().window_lines);
            let at = line.position % window_lines * 64;
            assert_eq!(self.write(queue, at, &line.bytes, Enables::All), Accept::Taken);
        }
    }

    pub fn pass_time(&mut self, ns: u64) {
        self.now_ns += ns;
        self.nic.time_passed(SimTime::from_ns(self.now_ns));
        self.settle();
    }

    /// Whole lines from a position on, in one call; wants are not looked at.
    pub fn write_run(&mut self, queue: u16, position: u64, lines: &[[u8; 64]]) -> usize {
        let at = position % u64::from(self.nic.config().window_lines) * 64;
        self.nic.lines_arrived(self.aperture + u64::from(queue) * self.stride + at, lines)
    }

    /// Lines from a position on that the device says it waits for.
    pub fn awaited_lines(&self, queue: u16, position: u64) -> u32 {
        let at = position % u64::from(self.nic.config().window_lines) * 64;
        self.nic.awaited_lines(self.aperture + u64::from(queue) * self.stride + at)
    }

    /// Takes everything the device wants. DMA reads are noted and not answered.
    pub fn settle(&mut self) {
        while self.take_want() {}
    }

    /// Takes one want; `false` when there is none.
    pub fn take_want(&mut self) -> bool {
        let queues = self.credits.len() as u64;
        match self.nic.next() {
            None => return false,
            Some(Want::Transmit { queue: QueueId(queue), frame }) => {
                self.frames.push((queue, frame.to_vec()))
            }
            Some(Want::DmaWrite { address, data }) => {
                let index = address.wrapping_sub(CREDITS) / 64;
                match <[u8; 8]>::try_from(data) {
                    Ok(word) if address >= CREDITS && index < queues => {
                        self.credits[index as usize] = u64::from_le_bytes(word);
                    }
                    _ => self.writes.push((address, data.to_vec())),
                }
            }
            Some(Want::ReadCompletion { value, .. }) => self.answer = Some(value),
            Some(Want::Aborted { .. }) => panic!("no queue of the rig cuts through"),
            Some(Want::Interrupt { vector }) => self.interrupts.push(vector),
            Some(Want::WatchLine { tag, address, known, .. }) => self.watches.push((tag, address, known)),
            Some(Want::ForgetLine { tag }) => self.forgotten.push(tag),
            Some(Want::DmaRead { address, bytes, tag }) => self.reads.push((address, bytes, tag)),
        }
        true
    }

    /// Answers every noted read with an error.
    pub fn refuse_reads(&mut self) {
        for (_, _, tag) in std::mem::take(&mut self.reads) {
            self.nic.dma_completed(tag, Err(DmaError::BadAddress));
        }
    }

    /// The frames of one queue, in the order they left.
    pub fn frames_of(&self, queue: u16) -> Vec<Vec<u8>> {
        self.frames.iter().filter(|(from, _)| *from == queue).map(|(_, frame)| frame.clone()).collect()
    }

    /// Nothing is held that should have been let go.
    pub fn assert_empty(&self) {
        assert_eq!(self.nic.free_pool_lines(), self.nic.config().pool_lines, "pool lines are lost");
        assert_eq!(self.nic.free_contexts(), self.nic.config().contexts, "contexts are lost");
    }
}
