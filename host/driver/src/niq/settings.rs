//! Settings of `niq` queues, transmit and receive.

use crate::descriptor::settings::RxDescriptorConfig;
use crate::enso::settings::RxEnsoConfig;
use crate::receive::settings::InterruptModeration;
use crate::receive::settings::RxRingConfig;
use crate::transmit::settings::TxQueueConfig;

/// A queue of entries in the BAR (NIQ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NiqConfig {
    /// Settings common to all transmit queues.
    pub queue: TxQueueConfig,
    /// 64 random bits; as in [`crate::MmioConfig`].
    pub random: u64,
    /// An entry has 2 to this power lines: 0, 1 or 2. Short frames of up to 48, 112 or 240 bytes fit one.
    pub entry_lines_log2: u32,
    /// Bytes of the memory that long frames are copied to; a power of two and at least twice the longest frame.
    pub buffer_bytes: usize,
    /// The device writes its head back after this many entries; at most half of those that the window holds.
    pub completion_frames: u32,
    /// Longest time in ns from a finished frame to the completion that reports it.
    pub completion_time_ns: u32,
}

impl Default for NiqConfig {
    fn default() -> Self {
        NiqConfig {
            queue: TxQueueConfig::default(),
            random: 0,
            entry_lines_log2: 1,
            buffer_bytes: 256 * 1024,
            completion_frames: 16,
            completion_time_ns: 2_000,
        }
    }
}

/// Receiving by reads of entries in the BAR (NIQ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxNiqConfig {
    /// Epoch the queue starts with, as [`TxQueueConfig::epoch`]: that of the transmit half where there is one.
    pub epoch: u8,
    /// An entry has 2 to this power lines: 0, 1 or 2. A transmit half of the queue must have the same.
    pub entry_lines_log2: u32,
    /// How long the device may hold a read of an entry that is not there, in ns; 0: not at all. Shorter than the host's
    /// PCIe completion time-out, which is 50 us or more.
    pub hold_ns: u32,
    /// Freed entries are told to the device after this many, and whenever a read was held in vain; 0 takes a quarter of
    /// those that the window holds, and half of them is the most.
    pub freed_coalesce: u32,
    /// Whether the next entry is asked for while the frame of one is used, so that frames which follow each other do
    /// not each wait for a crossing. Not for a program that answers a frame on a processor that stands still in an
    /// uncached load: its answer would wait for the next frame.
    pub reads_ahead: bool,
    /// Where frames go that do not fit an entry. `interrupts` in it says nothing.
    pub long: LongFrameConfig,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxNiqConfig {
    fn default() -> Self {
        RxNiqConfig {
            epoch: 1,
            entry_lines_log2: 1,
            hold_ns: 10_000,
            freed_coalesce: 0,
            reads_ahead: true,
            long: LongFrameConfig::default(),
            interrupts: InterruptModeration::default(),
        }
    }
}

/// Where frames go that do not fit an entry in the BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongFrameConfig {
    /// Nowhere: the device drops and counts them.
    Dropped,
    /// A contiguous ring.
    Ring(RxRingConfig),
    /// Lent buffers.
    Descriptors(RxDescriptorConfig),
    Pipe(RxEnsoConfig),
}

impl Default for LongFrameConfig {
    fn default() -> Self {
        LongFrameConfig::Ring(RxRingConfig::default())
    }
}
