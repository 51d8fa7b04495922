//! What a driver may ask of a link, and a window of the memory it lies in.
//!
//! Everything above (windows, host halves of the interfaces) is written once against these traits; `link/shm` and
//! `link/bar` give them real memory, `link/sim` virtual time, tests an ordering adversary or loom. The crate names no
//! interface and no device. Implementors decide what a store *costs*; what it *means* is fixed here:
//!
//! - a store is plain: it becomes visible at some time, whole in each aligned 8-byte word, in no order relative to
//!   other stores of the same port unless [`StorePort::fence`] stands between them;
//! - nothing here reads across the link in order to send (docs/design.md, decision 3): credits and flags lie in memory
//!   local to the side that reads them. [`ReadPort`] is for those that receive by reads.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod adversary;
mod line;
mod link;
mod memory;
mod reads;
mod sleep;
mod window;

pub use adversary::{Adversary, Tolerance};
pub use line::{fill_words, has_word};
pub use link::{Doorbell, Link, LinkError, RegisterRead};
pub use memory::DmaMemory;
pub use reads::{NoReads, ReadPort, WindowRead};
pub use sleep::Sleeper;
pub use window::{CreditSink, CreditSource, LoadPort, StorePort};

/// One line as its eight words.
pub type Line = [u64; 8];
