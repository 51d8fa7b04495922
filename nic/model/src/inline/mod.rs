//! `inline`: a ring of entries, each pushed as well, so that the device need not fetch it.
//!
//! The host writes an entry into its ring, as with descriptors, and then stores the same bytes into the queue's window:
//! two halves, used in turn. An entry holds a short frame whole, or its address. What is pushed whole and in turn goes
//! to the wire without a read; whatever else comes of a push, the ring is the truth: the first word of a push names
//! the entry's place, so a push that is torn, late, early or too long still counts as the doorbell for everything up
//! to its end, and the entry is fetched ([`line_ring`](crate::fetch)). Nothing that arrives in the window can fail
//! the queue. With TX_PUSH `self_test` every n-th whole push is not used, so that the fall-back is exercised at work.
//! Bursts and long frames are announced by the doorbell register alone.
//!
//! The limit of it, which `mmio` does not have: stores of a push must have arrived before the next push to the same
//! half begins, so the sender fences after each, as the authors' does.
//!
//! From: writes to the window, the doorbell, answers to reads. To: the egress arbiter, by `FrameSource`.
//! HotOS'25 §2.4 (BlueFlame, inlining).

mod inline_queue;
mod push_half;
#[cfg(test)]
mod tests;

use crate::fetch::Fetching;

/// The transmit engine of entries that are pushed.
pub(crate) type InlineEngine = Fetching<inline_queue::InlineQueue>;
