//! What a driver may ask of a link: opening a device, its windows, registers and doorbells, and memory that both see.
//!
//! The host halves of the interfaces are written once against these traits. `link/shm` gives them real memory, `link/sim`
//! virtual time, and `link/memory` one thread. The crate names no interface and no device.
//!
//! Nothing here reads across the link in order to send: credits and flags lie in memory of the side that reads them.
//! [`ReadPort`] is for interfaces that receive by reading the device. Every kind of link says what shows that its other end is
//! gone ([`LinkKind`]).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod evidence;
mod link;
mod memory;
mod reads;

pub use evidence::{Evidence, Heartbeat, LinkKind, StatePort};
pub use link::{Doorbell, Link, LinkError, RegisterRead};
pub use memory::DmaMemory;
pub use reads::{NoReads, ReadPort, WindowRead};
