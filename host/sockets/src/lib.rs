//! Connections of TCP, streams of `AF_UNIX`, and sockets of UDP, of programs that know nothing of it: their bytes go by windows where both processes have this, and by the kernel's
//! socket wherever that is not so, or not any more.
//!
//! A preloaded library gives calls to [`Sockets`] before they reach the kernel. A connection begins as the kernel's and costs one load and a
//! count for each call. One that was worth it gets an [`Endpoint`]; a thread in the background finds the process at the other end ([`beeline_domain::Pairs`]);
//! from then on `host/stream` says by which path each byte goes. Whatever the other path does not have leaves it to the kernel for ever, with a
//! reason ([`beeline_socket_rules::Why`]).
//!
//! Not here: C, hooks, signals, `fork` itself: those are of the library that programs load. Record 0068 (`docs/decisions/0068-sockets-by-preload.md`) has the rules.
#![forbid(unsafe_code)]

mod answers;
mod at_once;
mod background;
mod carried;
mod catch_up;
mod copies;
mod counts;
mod courtesy;
mod datagrams;
mod deaths;
mod debts;
mod endpoint;
mod endpoints;
mod fail_over;
mod forks;
mod give_back;
mod hand_over;
mod handlers;
mod held;
mod hosts;
mod inside;
mod leaving;
mod lock;
mod marks;
mod memory;
mod names;
mod numbers;
mod poll;
mod prepared;
mod process;
mod quiet;
pub mod readiness;
mod receive;
mod returns;
mod rung_sleep;
mod send;
mod silence;
mod sleepers;
mod sockets;
mod switch;
mod talk;
mod turn;
mod unseen_sets;
mod waiters;
mod waiting;
mod watching;
mod whose;
mod windows;
mod words;

pub use carried::Carried;
pub use counts::Traffic;
pub use datagrams::{Datagram, DatagramSocket, DatagramTraffic, DatagramTurn, Membership};
pub use endpoint::Endpoint;
pub use handlers::{has_put_off, take_put_off};
pub use leaving::Rest;
pub use names::end_name;
pub use numbers::Pass;
pub use process::Sleep;
pub use sleepers::{OwnBell, SleeperId};
pub use sockets::Sockets;
pub use switch::{Switched, switch};
pub use turn::Turn;
