//! What can happen to a device, as the fuzzer writes it: registers set to values that mostly mean something, stores into
//! windows, answers to reads, frames, time.

use arbitrary::Arbitrary;
use beeline_nic_model::NicConfig;
use beeline_spec::regs::field::{entry, queue_control, rx_mode};
use beeline_spec::regs::{self, doorbell, queue as r};

use crate::{BLANK, Word};

/// Queues of the device.
pub const QUEUES: u32 = 3;
/// Lines of each window.
pub const LINES: u32 = 16;
/// Longest frame of the device.
pub const MAX_FRAME_BYTES: u32 = 900;

/// A small device, in which contexts and pool are scarce.
pub fn config(blank: bool, rx_lossless: bool) -> NicConfig {
    NicConfig {
        queues: QUEUES,
        window_lines: LINES,
        span_lines: 8,
        contexts: 2,
        pool_lines: 3 * LINES,
        blank,
        max_frame_bytes: MAX_FRAME_BYTES,
        rx_lossless,
        ..NicConfig::default()
    }
}

/// One thing that happens.
#[derive(Arbitrary, Debug)]
pub enum Event<'a> {
    /// A queue is set up, mostly as a driver would.
    SetUp(Setup),
    /// A register is written.
    Register {
        address: RegisterAddress,
        value: Word,
    },
    Write {
        offset: u64,
        data: &'a [u8],
        enables: Option<u64>,
    },
    /// Words are stored into a window.
    Words {
        queue: u8,
        line: u8,
        word: u8,
        words: Vec<Word>,
    },
    /// Bytes are stored into a window.
    Bytes {
        queue: u8,
        at: u16,
        data: &'a [u8],
        enables: Option<u64>,
    },
    Read(RegisterAddress),
    /// A DMA read or a watch is answered; an answer without words is an error.
    Answer {
        which: u8,
        words: Vec<Word>,
    },
    /// A frame comes from the wire.
    Frame {
        bytes: u16,
        fill: u8,
    },
    /// Time passes.
    Time {
        ns: u32,
    },
    /// The wire takes frames, or stops.
    WireReady(bool),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum RegisterAddress {
    Device(u8),
    Queue {
        queue: u8,
        register: u8,
    },
    Doorbell {
        queue: u8,
        is_rx: bool,
    },
    /// Any offset.
    Any(u32),
}

/// Returns the offset of a register.
pub fn offset_of(address: RegisterAddress) -> u32 {
    // One queue more than there is.
    let queue = |queue: u8| u32::from(queue) % (QUEUES + 1);
    match address {
        RegisterAddress::Device(index) => u32::from(index) * 8,
        RegisterAddress::Queue { queue: index, register } => {
            let registers = r::ALL.len();
            let (_, register) = r::ALL[usize::from(register) % registers];
            regs::QUEUE + queue(index) * regs::QUEUE_STRIDE + register
        }
        RegisterAddress::Doorbell { queue: index, is_rx } => {
            let register = if is_rx { doorbell::RX_FREED } else { doorbell::TX_TAIL };
            regs::DOORBELL + queue(index) * regs::DOORBELL_STRIDE + register
        }
        RegisterAddress::Any(offset) => offset,
    }
}

/// A queue's registers.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Setup {
    queue: u8,
    control: u16,
    epoch: u8,
    ring_log2: u8,
    rx: u8,
    credit_lines: u8,
    moderation_frames: u8,
    time_ns: u16,
}

impl Setup {
    /// A queue of an interface, as a driver sets it up, which also receives into a ring.
    pub fn honest(queue: u8, interface: u8) -> Self {
        let (ring_log2, moderation_frames) = (4, 1);
        let control = u16::from(interface);
        Setup { queue, control, epoch: 0, ring_log2, rx: 1, credit_lines: 1, moderation_frames, time_ns: 0 }
    }

    /// The queue, its interface (0: none) and its epoch.
    pub fn queue(&self) -> (u32, u8, u8) {
        (u32::from(self.queue) % QUEUES, self.control as u8 & 7, self.epoch % 2)
    }

    /// Returns whether frames are received into lent buffers.
    pub fn lends_buffers(&self) -> bool {
        self.rx >> 4 & 1 == 0 && self.rx % 4 == 2
    }

    /// The receive mode register: a ring, buffers, a pipe, or coherent lines.
    fn rx_mode(&self) -> u64 {
        match self.rx >> 4 & 1 {
            0 => u64::from(self.rx % 4) << rx_mode::MODE_LSB,
            _ => 1 << rx_mode::LINES_LSB | u64::from(self.rx >> 5 & 3) << rx_mode::LINES_LOG2_LSB,
        }
    }

    /// Gives every register of the set-up, the control register last.
    pub fn registers(&self, mut set: impl FnMut(u32, u64)) {
        use queue_control as c;
        let queue = u32::from(self.queue) % QUEUES;
        let base = regs::QUEUE + queue * regs::QUEUE_STRIDE;
        let address = u64::from(queue + 1) << 32;
        let moderation = u64::from(self.moderation_frames) | u64::from(self.time_ns) << 32;
        let control = u64::from(self.control);
        for (register, value) in [
            (r::CONTROL, 0),
            (r::BLANK, BLANK),
            (r::CREDIT_ADDRESS, address),
            (r::CREDIT_COALESCE, u64::from(self.credit_lines) | u64::from(self.time_ns) << 32),
            (r::HOLE_TIMEOUT_NS, u64::from(self.time_ns)),
            (r::TX_RING_ADDRESS, address + (1 << 16)),
            (r::TX_RING_ENTRIES, 1 << (self.ring_log2 % 8)),
            (r::TX_HEAD_ADDRESS, address + 64),
            (r::TX_MODERATION, moderation),
            (r::RX_MODE, self.rx_mode()),
            (r::RX_RING_ADDRESS, address + (2 << 16)),
            (r::RX_RING_ENTRIES, 1 << (self.ring_log2 % 8)),
            (r::RX_COMPLETION_ADDRESS, address + (3 << 16)),
            (r::RX_MODERATION, moderation),
            (r::RX_NOTIFY_ENTRIES, 1 << (self.ring_log2 % 8)),
            (r::RX_NOTIFY_SHARE, u64::from(self.rx >> 4 & 1) | u64::from(self.rx >> 5) << 16),
            (r::TX_PUSH, u64::from(self.moderation_frames)),
            (
                r::ENTRY,
                u64::from(self.rx >> 2 & 3) << entry::LINES_LOG2_LSB
                    | u64::from(self.time_ns) << entry::HOLD_NS_LSB,
            ),
            (
                r::CONTROL,
                1 << c::ENABLE_LSB
                    | (control & 7) << c::IFACE_LSB
                    | (control >> 3 & 3) << c::CLASS_LSB
                    | (control >> 5 & 7) << c::WEIGHT_LSB
                    | (control >> 8 & 1) << c::BACKPRESSURE_LSB
                    | u64::from(self.epoch % 2) << c::EPOCH_LSB,
            ),
        ] {
            set(base + register, value);
        }
    }
}
