//! What copies and sends by the segments of a member, for each kind of member: DMA queues and message queues.
//!
//! A member is known by what [`Segments`] asks of it: parts of segments, mapped, and whether a connection is whole. So processes of one kernel
//! (`host/fabric/process`) and members that share a file or a BAR (`host/fabric/bar`) have the same queues. Not here: who may map what, and
//! for how long its memory is that segment's.
#![forbid(unsafe_code)]

mod credits;
mod dma;
#[cfg(fuzzing)]
pub mod fuzzing;
mod queue;
mod segments;

pub use credits::{Credits, Inlet, Sender};
pub use dma::{COPIED_AT_ONCE_BYTES, DmaDirection, DmaJob, DmaLocal, DmaQueue, DmaTransfer, Engine};
pub use queue::{MessageQueue, QueueConfig, Received, Sent};
pub use segments::{Mapped, Of, Place, Segments, Sequences};
