//! Messages in windows for C and C++: what `include/beeline_window.h` declares, over the facade of Rust (`api/rust`).
//!
//! How a window comes to be is in `rendezvous.rs`; what a handle holds and what may be done with it in `inside.rs`,
//! `message.rs` and `open.rs`; `receiver.rs`, `sender.rs`, `set.rs` and `arena.rs` are the functions, each a
//! gate, a check and a call.

mod arena;
mod inside;
mod message;
mod open;
pub(crate) mod options;
mod receiver;
pub(crate) mod rendezvous;
mod sender;
mod set;
pub(crate) mod status;
