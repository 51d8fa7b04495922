//! Waiting: spin, then yield, then sleep, each with a budget, until something is found or a deadline has passed.
//!
//! The state machines of windows, drivers and calls do not wait and read no clock. Whoever waits for one of them does
//! it here: [`Idle`] says what to do after a look that found nothing, for loops that look at several things; [`Waiter`]
//! is the whole loop for one thing, with a [`Sleeper`] that the other side wakes. The policy, [`WaitPolicy`], is in
//! `contract/memory`, where the state machines can name it.
//!
//! Not here: what is slept on and who wakes it (`os/domain`, `link/shm`).
#![forbid(unsafe_code)]

mod idle;
mod waiter;

pub use beeline_contract_memory::{Sleeper, Wait, WaitPolicy};
pub use idle::{Idle, Rest};
pub use waiter::{Awake, Waiter};
