//! Settings of `inline` queues.

use crate::transmit::settings::CreditCoalescing;
use crate::transmit::settings::TxQueueConfig;

/// A queue of entries that are pushed (HotOS'25 §2.4, BlueFlame).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineConfig {
    /// Settings common to all transmit queues. `hole_timeout_ns` is how long a push may be incomplete before its entry is fetched.
    pub queue: TxQueueConfig,
    /// 64 random bits; as in [`crate::MmioConfig`].
    pub random: u64,
    /// Lines of the ring of entries, a power of two.
    pub ring_lines: u32,
    /// Bytes of the memory that long frames are copied to; a power of two and at least twice the longest frame.
    pub buffer_bytes: usize,
    /// The device writes its head back after this many frames; at most half the lines.
    pub completion_frames: u32,
    /// Longest time in ns from a finished frame to the completion that reports it.
    pub completion_time_ns: u32,
    /// Of a window in memory: when credits come back.
    pub credits: CreditCoalescing,
    /// Every so many pushes one is not used, so that the fall-back is exercised; 0: none.
    pub self_test: u32,
}

impl Default for InlineConfig {
    fn default() -> Self {
        InlineConfig {
            queue: TxQueueConfig::default(),
            random: 0,
            ring_lines: 1024,
            buffer_bytes: 256 * 1024,
            completion_frames: 32,
            completion_time_ns: 2_000,
            credits: CreditCoalescing::default(),
            self_test: 0,
        }
    }
}
