//! Beeline: messages between programs, and frames to a NIC, by plain stores that nobody fences.
//!
//! One [`Domain`] per group of programs that know each other by name. Through it:
//!
//! - a **window** takes messages from one program to another: [`Sender`] stores them, [`Receiver`] recovers the order
//!   and hands them out where they lie;
//! - the same window takes a **byte stream**, read and written in pieces of any size ([`ByteSender`], [`ByteReceiver`]);
//! - **many windows** are received from by one thread with one wait ([`ReceiverSet`]);
//! - an **arena** has thousands of windows between two programs in a few descriptors ([`ReceiverArena`], [`SenderArena`]);
//! - a **notifier** tells its subscribers things unasked, in order with its answers ([`Notifier`], [`Subscription`]);
//! - **admissions** let in who shares a connection with this process, though no list names its user ([`Admissions`], [`Token`],
//!   [`OtherEnd`]);
//! - a **segment** is memory that several programs have mapped ([`segment`]);
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
//! offer the core to others, then sleep until they are woken. `WaitPolicy::SPIN` never sleeps once the peer is connected; a
//! wait for a peer that is not there yet, as [`Receiver::recv`] has it without a sender, sleeps under every policy. No call
//! allocates, locks or enters the kernel while there is something to do.
//!
//! To wait for several things at once, [`Polled`] puts a descriptor beside each, for poll, epoll, or whatever runs on them.
//!
//! A child of fork uses its parent's [`Domain`], and opens what it needs there itself: what the parent opened says that it is the
//! parent's. [`descriptors`] lists what the library holds open; all of it is closed by exec.
//!
//! Every kind of call has an error of its own, which says what happened, why, and what to do; [`Error`] holds any of them but
//! those of [`segment`].
//!
//! This crate is a facade: types without parameters over `os/domain`, `host/window`, `host/tuning`, `host/rpc`, `host/driver` and `link/shm`,
//! for programs that want messages and not choices. A program with a link, a store kernel or a device of its own uses
//! those crates. Not here: sockets, SISCI.
#![forbid(unsafe_code)]

mod admission;
mod answer;
mod byte_receiver;
mod byte_sender;
#[cfg(feature = "rpc")]
mod calls;
mod domain;
mod error;
#[cfg(feature = "nic")]
mod nic;
mod notifier;
mod options;
mod origin;
#[cfg(feature = "nic")]
mod port;
#[cfg(feature = "nic")]
mod port_options;
mod receiver;
mod receiver_arena;
mod receiver_set;
#[cfg(feature = "rpc")]
pub mod rpc;
pub mod segment;
mod sender;
mod sender_arena;
mod subscription;
mod threads;
#[cfg(feature = "nic")]
mod waiting;

pub use admission::{Admissions, OtherEnd, Token};
pub use answer::{Flushed, Sent, Taken};
pub use beeline_domain::{
    Admitted, Armed, CallbackThread, Event, NETWORK_NAMESPACE, Notification, Notified, PeerId, Polled,
    Purpose, Source, descriptors, move_descriptors_above, place_descriptors_above,
};
#[cfg(feature = "nic")]
pub use beeline_driver::RxFrame as Frame;
pub use beeline_mmio::{StoreKernel, Traffic};
#[cfg(feature = "nic")]
pub use beeline_spec::Interface;
pub use beeline_tuning::{Prefetch, ReceiveTuning, Tuning, TuningWatch};
pub use beeline_window::{ByteRead, FencePolicy, SenderEnd, Shared, Torn, Turn, WaitPolicy};
pub use byte_receiver::ByteReceiver;
pub use byte_sender::ByteSender;
#[cfg(feature = "rpc")]
pub use calls::{ClientOptions, ServerOptions};
pub use domain::Domain;
pub use error::{
    ConnectError, Error, KernelError, NotifyError, OfferError, OpenError, ProofError, RecvError, SendError,
    SubscriptionEnded, Target, WriteError,
};
#[cfg(feature = "nic")]
pub use error::{PortError, PortRecvError, PortSendError};
pub use notifier::{Answer, Notifier, NotifierEvent, NotifierOptions, Subscriber};
pub use options::{ReceiverOptions, SenderOptions};
#[cfg(feature = "nic")]
pub use port::NicPort;
#[cfg(feature = "nic")]
pub use port_options::PortOptions;
pub use receiver::{Message, MessageRef, Receiver};
pub use receiver_arena::{ArenaOptions, ReceiverArena};
pub use receiver_set::{MemberError, MemberId, ReceiverSet};
pub use sender::{Batch, Reservation, Sender};
pub use sender_arena::SenderArena;
pub use subscription::Subscription;

/// A result of any call here, for programs that hand errors up.
pub type Result<T, E = Error> = core::result::Result<T, E>;
