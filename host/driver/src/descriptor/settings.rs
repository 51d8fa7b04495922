//! Settings of `descriptor` queues, transmit and receive.

use crate::receive::settings::InterruptModeration;
use crate::transmit::settings::TxQueueConfig;

/// A queue of descriptors in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorConfig {
    /// Settings common to all transmit queues.
    pub queue: TxQueueConfig,
    /// Entries of the ring, a power of two.
    pub entries: u32,
    /// Bytes of the memory that frames are copied to; a power of two and at least twice the longest frame.
    pub buffer_bytes: usize,
    /// The device writes its head back after this many frames; at most half the entries.
    pub completion_frames: u32,
    /// Longest time in ns from a finished frame to the completion that reports it.
    pub completion_time_ns: u32,
    /// Whether the last frame of each burst asks for an interrupt when it is done.
    pub interrupts: bool,
}

impl Default for DescriptorConfig {
    fn default() -> Self {
        DescriptorConfig {
            queue: TxQueueConfig::default(),
            entries: 1024,
            buffer_bytes: 256 * 1024,
            completion_frames: 32,
            completion_time_ns: 2_000,
            interrupts: false,
        }
    }
}

/// A ring of receive buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxDescriptorConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises
    /// it by one. Behind a queue that receives by reads it says nothing.
    pub epoch: u8,
    /// Buffers, a power of two.
    pub entries: u32,
    /// Bytes of each buffer, a multiple of 64; frames that are longer are dropped by the device and counted. 0 takes
    /// the device's longest frame.
    pub buffer_bytes: usize,
    /// Freed buffers are told to the device after this many, and whenever none is complete; 0 takes a quarter.
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxDescriptorConfig {
    fn default() -> Self {
        RxDescriptorConfig {
            epoch: 1,
            entries: 512,
            buffer_bytes: 0,
            freed_coalesce: 0,
            interrupts: InterruptModeration::default(),
        }
    }
}
