//! Settings of `coherent` queues, transmit and receive.

use crate::receive::settings::InterruptModeration;
use crate::transmit::settings::TxQueueConfig;

/// A queue of coherent lines (CC-NIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoherentConfig {
    /// Settings common to all transmit queues.
    pub queue: TxQueueConfig,
    /// Entries of the ring, a power of two. Few, so that they stay in the caches.
    pub entries: u32,
    /// An entry has 2 to this power lines: 0, 1 or 2. A frame of up to 56, 120 or 248 bytes fits one; one names up to 7,
    /// 15 or 31 frames of a burst.
    pub entry_lines_log2: u32,
    /// Buffers of two lines, for short frames of bursts.
    pub short_buffers: u32,
    /// Buffers of the longest frame, at least one.
    pub long_buffers: u32,
}

impl Default for CoherentConfig {
    fn default() -> Self {
        CoherentConfig {
            queue: TxQueueConfig::default(),
            entries: 64,
            entry_lines_log2: 1,
            short_buffers: 512,
            long_buffers: 128,
        }
    }
}

/// A ring of coherent lines that the device fills (CC-NIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxCoherentConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises
    /// it by one.
    pub epoch: u8,
    /// Entries of the ring, a power of two; one a frame.
    pub entries: u32,
    /// An entry has 2 to this power lines: 0, 1 or 2. A frame of up to 56, 120 or 248 bytes fits one.
    pub entry_lines_log2: u32,
    /// Buffers for longer frames, at least one, each of the port's longest.
    pub buffers: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxCoherentConfig {
    fn default() -> Self {
        RxCoherentConfig {
            epoch: 1,
            entries: 256,
            entry_lines_log2: 1,
            buffers: 128,
            interrupts: InterruptModeration::default(),
        }
    }
}
