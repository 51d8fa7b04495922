//! Settings of `enso` pipes, transmit and receive.

use crate::receive::settings::InterruptModeration;
use crate::transmit::settings::TxQueueConfig;

/// A transmit pipe (Ensō).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnsoConfig {
    /// Settings common to all transmit queues.
    pub queue: TxQueueConfig,
    /// Lines of the pipe, a power of two, enough for the longest frame twice.
    pub lines: u32,
    /// The device writes its head back after this many frames; at most half the lines.
    pub completion_frames: u32,
    /// Longest time in ns from a finished frame to the completion that reports it.
    pub completion_time_ns: u32,
}

impl Default for EnsoConfig {
    fn default() -> Self {
        EnsoConfig {
            queue: TxQueueConfig::default(),
            lines: 4096,
            completion_frames: 32,
            completion_time_ns: 2_000,
        }
    }
}

/// A receive pipe (Ensō).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxEnsoConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises
    /// it by one. Behind a queue that receives by reads it says nothing.
    pub epoch: u8,
    /// Lines of the pipe, a power of two, enough for the longest frame twice.
    pub lines: u32,
    /// Entries of the notification ring, a power of two; one at least for each pipe that it tells of.
    pub notifications: u32,
    /// Freed lines are told to the device after this many, and whenever a batch is used up; 0 takes a quarter of the
    /// pipe.
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxEnsoConfig {
    fn default() -> Self {
        RxEnsoConfig {
            epoch: 1,
            lines: 4096,
            notifications: 64,
            freed_coalesce: 0,
            interrupts: InterruptModeration::default(),
        }
    }
}

/// A receive pipe told of in the notification ring of another queue (Ensō).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxEnsoMemberConfig {
    /// Epoch the queue starts with, as [`TxQueueConfig::epoch`]: that of the transmit half where there is one.
    pub epoch: u8,
    /// Lines of the pipe, a power of two, enough for the longest frame twice.
    pub lines: u32,
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxEnsoMemberConfig {
    fn default() -> Self {
        RxEnsoMemberConfig {
            epoch: 1,
            lines: 4096,
            freed_coalesce: 0,
            interrupts: InterruptModeration::default(),
        }
    }
}
