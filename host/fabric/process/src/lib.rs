//! A member of a fabric as a process: it meets others in a domain, and its segments are memory.
//!
//! [`FabricMember::open`] joins: the process is offered under a number of its own, which the registry of its node tells to others; it
//! publishes its board in memory that it alone can store into, and has a *bank* where all of its segments lie. Two processes that use each other's
//! segments have a connection for each direction, over which one request is ever made: claims and a yard for a board, a bank and bells. From then on
//! they load and store, and ring each other.
//!
//! The semantics are [`beeline_fabric`]'s, whose calls come in here; who carries out what they want is said in `shared.rs`. Not here:
//! handles and codes of SISCI (`api/sisci`), shared and named interrupts, interrupts of other users.
#![forbid(unsafe_code)]

mod backing;
mod bell;
mod config;
mod error;
mod events;
mod fetch;
mod foreign;
#[cfg(fuzzing)]
pub mod fuzzing;
mod groups;
mod interrupts;
mod map;
mod member;
mod names;
mod packets;
mod pair;
mod questions;
mod sequence;
mod service;
mod several;
mod shared;
#[cfg(test)]
mod sole_node;
mod state;
mod survey;
mod terms;
mod transfer;
mod users;
mod words;
mod yard;

pub use beeline_fabric_transfer::{
    COPIED_AT_ONCE_BYTES, DmaDirection, DmaJob, DmaLocal, DmaQueue, DmaTransfer, MessageQueue, QueueConfig,
    Received, Sent,
};
pub use config::{
    ConfigError, Configuration, FILE_VARIABLE, MEMORY_VARIABLE, NODE_VARIABLE, NamedNode, OneMemory,
};
pub use error::{NotCreated, NotMapped, NotRegistered, OpenError};
pub use events::{Happened, Source, Watch};
pub use groups::Held;
pub use interrupts::{DataInterrupt, DataTrigger, Interrupt, InterruptOptions, NotTaken, Trigger};
pub use map::{Map, MapOptions};
pub use member::{FabricConfig, FabricMember};
pub use questions::AnswerError;
pub use sequence::Sequence;
pub use survey::{AskError, Report, Survey, SurveyError};
pub use terms::Terms;
pub use users::{Exports, NodeOfUser, OtherUsers};
pub use words::WordsError;
