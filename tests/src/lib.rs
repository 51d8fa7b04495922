//! Whole-system tests: conformance bodies that know neither link, device nor interface, and a link for them.
//!
//! A body ([`conformance`]) drives the real host halves of `host/driver` against whatever stands behind a [`Rig`]: a
//! port, and a way to let the other side work. The same bodies hold for the behavioural NIC in this process
//! ([`MemoryRig`]), for one in another process, and for others to come; what differs is the rig.
//!
//! Not here: tests of one crate (they stand beside its code), timings (`bench/`).
#![forbid(unsafe_code)]

pub mod conformance;
pub mod owners;
mod random;
pub mod registers;
mod rig;

pub use random::Random;
pub use rig::{MemoryRig, Rig, finish, open};
