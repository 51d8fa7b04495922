//! Devices that measure: they do what an experiment wants, and nothing that a NIC does.
//!
//! From: `link/sim`, by the trait of `contract/device`. To: experiments, which look at what they saw. Not here: how long
//! anything takes.

mod engine;
mod sink;

pub use engine::{Engine, Job};
pub use sink::{Seen, Sink};
