//! The memory of a window: what its sender and its receiver may do with it, and how each of them sleeps.
//!
//! A window is written once against these traits. `os/mmio` gives it real memory, `link/shm` and `link/sim` the memory behind a
//! link, and tests the ordering adversary or loom. What a store *costs* is the implementor's; what it *means* is fixed here:
//! a store is plain. It becomes visible at some time, whole in each aligned 8-byte word, in no order relative to other stores of the
//! same port unless [`StorePort::fence`] stands between them.
#![no_std]
#![forbid(unsafe_code)]

mod adversary;
mod forward;
mod line;
mod sleep;
mod window;

pub use adversary::{Adversary, Tolerance};
pub use line::{fill_words, has_word};
pub use sleep::{Sleeper, Wait, WaitPolicy};
pub use window::{
    CreditSink, CreditSource, GROUP_LINES, Group, Groups, GroupsLineByLine, HeaderPort, LineByLine, LoadPort,
    ReadOnlyPort, SplitHeaders, StorePort, StoreTask,
};

/// One line as its eight words.
pub type Line = [u64; 8];
