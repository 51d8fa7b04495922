//! Settings of `mmio` queues.

use beeline_window::FencePolicy;

use crate::transmit::settings::CreditCoalescing;
use crate::transmit::settings::TxQueueConfig;

/// A queue fed by plain stores in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmioConfig {
    /// Settings common to all transmit queues.
    pub queue: TxQueueConfig,
    /// 64 random bits; the blank is made of them where the device's windows are blank, and they are unused elsewhere.
    pub random: u64,
    /// Where the sender fences; `none` is the principle, the others are rivals.
    pub fence_policy: FencePolicy,
    /// How many lines the device frees before it pushes a credit.
    pub credits: CreditCoalescing,
    /// Which frames of a burst share a message.
    pub batching: Batching,
    /// Lines of a message with which the device may begin its frame before all of it is there (cut-through); 0: only
    /// whole messages begin. Worth it where the wire is slower than the sender stores: a wire that runs dry costs the
    /// frame's front, and the message leaves whole later. The device must have the feature, and does not use it for a
    /// queue with `checksums`.
    pub cut_through_lines: u16,
}

/// Which frames of a burst are packed into batch messages.
///
/// Consecutive frames of at most `max_frame_bytes` are gathered until the batch would pass `max_lines`; they are sent
/// as one message if that takes fewer lines than one message each, and one by one if it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Longest frame that is packed; longer ones gain less than one line in `max_frame_bytes / 64`. 0 packs nothing.
    pub max_frame_bytes: usize,
    /// Lines of the longest batch: what a receiver waits for before the first frame of it moves on. Cut to half the
    /// window.
    pub max_lines: u32,
}

impl Batching {
    /// Every frame is a message of its own.
    pub const OFF: Batching = Batching { max_frame_bytes: 0, max_lines: 0 };
}

impl Default for Batching {
    fn default() -> Self {
        Batching { max_frame_bytes: 256, max_lines: 16 }
    }
}
