//! `descriptor`: transmit as nearly every NIC does it, built as if it were ours.
//!
//! The host writes 16-byte descriptors into a ring, rings a doorbell with their absolute count, and the device reads
//! the descriptors, then the payload, transmits, and writes the absolute count of completed descriptors back. So that
//! the comparison with `mmio` is fair, nothing that shipping NICs do is left out: one doorbell for many descriptors,
//! descriptors read in bursts and ahead of their use, payload reads of many frames under way at once and answered in
//! any order, completions and interrupts moderated by count and by time. No allocation per frame.
//!
//! Queues are independent: each has its own descriptors ahead, payload memory and completions, and takes turns with
//! the others for tags. A queue fails (cause "DMA error") when its ring cannot be read; a bad descriptor is only
//! counted.
//!
//! From: the doorbell register and the answers to reads. To: the egress arbiter, by [`FrameSource`]. Not here: the MUX
//! of kPIO+WC ([`crate::kpio`]), and which queue a frame is received by ([`crate::rx`], which calls [`RxDescriptors`]).
//! Larsen & Lee, NAS'15, §I and figure 1; HotOS'25 §1, figure 1 (a).

mod rx_descriptors;
#[cfg(test)]
mod tests;
mod tx_queue;

pub(crate) use rx_descriptors::RxDescriptors;

use crate::fetch::Fetching;

/// The transmit engine with descriptors.
pub(crate) type DescriptorEngine = Fetching<tx_queue::TxQueue>;
