//! `enso`: frames back to back in a pipe in host memory, with nothing in between to fetch.
//!
//! To send, the host appends frames to the queue's pipe and writes one tail doorbell; the device reads the pipe in long
//! contiguous reads and cuts it into frames ([`tx_pipe`]). To receive, the device appends frames to another pipe and
//! writes a notification, one for all frames since the last ([`rx_pipe`]). No descriptor on either side. Notifications
//! are reactive, as the authors' are: there is one when a pipe that the host had emptied is not empty any more, and one
//! when it has begun to free what the last one told it of, so that a busy host is told once a batch and not once a
//! frame. Pipes of several queues may share one ring of notifications ([`notify_ring`]): a host that serves many polls
//! one place, and a notification names its pipe. There are no transmit notifications to share: what has left is a count
//! in host memory.
//!
//! Other than in the authors' NIC, the length of a frame stands in front of it (theirs reads IP headers), and a tail
//! write announces bytes of the pipe itself, as HotOS'25 figure 1 (b) draws it, instead of an entry of a notification
//! ring that is fetched first.
//!
//! From: the doorbell and answers to reads; frames from the wire. To: the egress arbiter, by `FrameSource`; host memory.
//! Sadok et al., OSDI'23; HotOS'25 §1, figure 1 (b), and §4.1.

mod notify_ring;
mod rx_pipe;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
mod tx_pipe;

pub(crate) use notify_ring::{NotifyRing, NotifyRings};
pub(crate) use rx_pipe::RxPipe;

use crate::fetch::Fetching;

/// The transmit engine of pipes.
pub(crate) type EnsoEngine = Fetching<tx_pipe::TxPipe>;
