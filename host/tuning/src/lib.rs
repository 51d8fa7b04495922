//! How a window is used best between two cores of this machine: which kernel stores, what is prefetched, whether lines are
//! tested one or eight at a time, how often credits are pushed.
//!
//! A [`Tuning`] is found by timing the code that programs run between two cores ([`Found::now`]), and kept in a file of this
//! user with the round trip of a bare line between those cores. It holds for as long as a line takes about that time: where
//! the round trip has changed by half, another one is found; a program that runs for long asks a [`TuningWatch`]. Opening a
//! window times nothing but a store kernel that nobody has timed before ([`kernel_for`]); what is kept is used, else the
//! defaults of `host/window`. A child of fork is a process of its own in this, too.
//!
//! Not here: figures to compare with others (`bench/`), and the names of placements (`lab/floor`). Papers: HotOS'25 figure 2
//! and kPIO+WC §III show how much the kernel alone matters; `docs/decisions/0025` says what is timed when.
#![forbid(unsafe_code)]

mod choose;
mod find;
#[cfg(fuzzing)]
pub mod fuzzing;
mod in_use;
mod kept;
mod kernel;
mod line;
mod machine;
mod measure;
mod meeting;
mod once;
mod overrides;
mod stream;
mod tuning;
mod watch;

pub use find::{Basis, Found, kept_file, kernel_for, kernel_now, receive_for};
pub use kernel::KernelChoice;
pub use line::{same_placement, takes_turns};
pub use measure::{NotTimed, Timing};
pub use overrides::{NotFollowed, Overrides, TUNING_VARIABLE};
pub use tuning::{NotPrefetch, Prefetch, ReceiveTuning, Tuning, receiver, retune};
pub use watch::TuningWatch;
