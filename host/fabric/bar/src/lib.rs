//! A member of a fabric that shares one mapped file or BAR with the others, and nothing else: no kernel, socket, descriptor or futex.
//!
//! [`BarMember::open`] maps the memory, takes a slot in it, and clears what is that slot's: its board, what it claims of each other member,
//! its names, and an area where its segments lie (`layout.rs`). Everything is in one memory at one place, so a store is seen by all who load
//! it, and the barrier of a handshake is a fence; of a device it reads the memory, too (`space.rs`). Who lives is known by heartbeats with
//! the bound of [`beeline_heartbeat::MappedFile`].
//!
//! The semantics are [`beeline_fabric`]'s. Everybody can store everywhere here, so nothing that this member publishes is loaded again to be
//! used, and of what others publish every offset is checked against the area of who says it. Not here: memory of the program behind a
//! segment, who may connect. Records 0055 and 0067.
#![forbid(unsafe_code)]

mod claim;
mod error;
mod events;
mod groups;
mod interrupts;
mod joint;
mod layout;
mod map;
mod member;
mod memory;
mod names;
mod peer;
mod private;
mod questions;
mod sequence;
mod shared;
mod space;
mod survey;
#[cfg(test)]
mod test_members;
mod transfer;
mod waiting;
mod words;

pub use beeline_fabric_transfer::{
    DmaDirection, DmaJob, DmaLocal, DmaQueue, DmaTransfer, MessageQueue, QueueConfig, Received, Sent,
};
pub use error::{Lost, NotMapped, OpenError};
pub use groups::BarHeld;
pub use interrupts::{
    BarDataInterrupt, BarDataTrigger, BarInterrupt, BarInterruptOptions, BarTrigger, NotTaken,
};
pub use map::{BarMap, BarMapOptions};
pub use member::{BarConfig, BarMember};
pub use memory::BarMemory;
pub use questions::BarAskError;
pub use sequence::BarSequence;
pub use survey::{BarEntry, BarReport, BarSurvey, BarSwept};
