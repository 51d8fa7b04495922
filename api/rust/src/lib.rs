//! Beeline: messages between programs, and frames to a NIC, by plain stores that nobody fences.
//!
//! One [`Domain`] per group of programs that know each other by name. Through it:
//!
//! - a **window** takes messages from one program to another: [`Sender`] stores them, [`Receiver`] recovers the order
//!   and hands them out where they lie;
//! - a **NIC port** ([`NicPort`]) takes Ethernet frames to and from a NIC, a process of `beeline nic` by default.
//!
//! ```no_run
//! # fn main() -> Result<(), beeline::Error> {
//! let domain = beeline::Domain::open("demo")?;
//! let mut receiver = domain.receiver("greetings")?; // one program
//! let mut sender = domain.sender("greetings")?; // another one
//! sender.send(b"hello")?;
//! assert_eq!(receiver.recv()?.to_vec(), b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! Calls named `try_…` never wait. The others wait as their [`WaitPolicy`] says: they look for some microseconds, then
//! offer the core to others, then sleep until they are woken; `WaitPolicy::SPIN` never sleeps. No call allocates,
//! locks or enters the kernel while there is something to do.
//!
//! Every kind of call has an error of its own, which says what happened, why, and what to do; [`Error`] holds any of them.
//!
//! This crate is a facade: types without parameters over `os/domain`, `host/window`, `host/rpc`, `host/driver` and `link/shm`,
//! for programs that want messages and not choices. A program with a link, a store kernel or a device of its own uses
//! those crates. Not here: sockets, segments.
#![forbid(unsafe_code)]

mod answer;
mod domain;
mod error;
mod port;
mod receiver;
mod sender;
mod waiting;

pub use answer::{Flushed, Sent, Taken};
pub use beeline_driver::{FencePolicy, RxFrame as Frame};
pub use beeline_mmio::Traffic;
/// Calls: what [`Domain::server`] and [`Domain::client`] give, and what handlers are given.
pub use beeline_rpc as rpc;
pub use beeline_spec::Interface;
pub use beeline_window::{Torn, WaitPolicy};
pub use domain::{Domain, PortOptions, ReceiverOptions, SenderOptions};
pub use error::{
    ConnectError, Error, OfferError, OpenError, PortError, PortRecvError, PortSendError, RecvError,
    SendError, Target, WriteError,
};
pub use port::NicPort;
pub use receiver::{Message, Receiver};
pub use sender::{Batch, Reservation, Sender};

/// A result of any call here, for programs that hand errors up.
pub type Result<T, E = Error> = core::result::Result<T, E>;
