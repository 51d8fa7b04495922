//! What interfaces that read host memory share: rings, reads under way, frames put together, completions.
//!
//! [`Fetching`] is an engine of queues that fetch ([`FetchQueue`]); some interfaces fetch all that they
//! send, others the payload that their entries name. [`DescriptorRing`], [`Reads`] and [`Moderation`] serve
//! the receive engine too, and [`FrameRing`] serves `kpio`. Not here: what a line of a ring means (each interface's
//! folder), and the queue of accesses before the link ([`crate::dma_port`]).

mod descriptor_ring;
mod fetching;
mod frame_queue;
mod frame_ring;
mod head_report;
mod line_ring;
mod moderation;
mod reads;
#[cfg(test)]
pub(crate) mod test_host;

pub(crate) use descriptor_ring::{DESCRIPTOR_BYTES, DescriptorRing};
pub(crate) use fetching::{FetchQueue, Fetching, PushQueue, Turn, WatchQueue};
pub(crate) use frame_queue::{Described, FrameQueue};
pub(crate) use frame_ring::FrameRing;
pub(crate) use head_report::HeadReport;
pub(crate) use line_ring::{Ahead, LineRing};
pub(crate) use moderation::Moderation;
#[cfg(test)]
pub(crate) use reads::MAX_READS;
pub(crate) use reads::{Purpose, Read, Reads};
