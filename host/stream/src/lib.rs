//! A connection's bytes by a kernel's socket and by windows, as one stream in each direction that never waits.
//!
//! [`Outgoing`] and [`Incoming`] join the ledger, which says which path carries which bytes, to a window and to the socket. A window
//! that is lost costs no byte where the sender keeps what it sent ([`Outgoing::keeping`]): such a window's messages carry a checksum
//! ([`CheckedWriter`], [`CheckedReader`]), and what the receiver has not got is sent anew through the socket.
//!
//! Record 0068 (`docs/decisions/0068-sockets-by-preload.md`) has the rules, record 0072 the format of the messages and what is kept.
//! Not here: descriptors, waiting, locks, and which connections leave the socket.
#![forbid(unsafe_code)]

mod checked;
mod failure;
mod incoming;
mod kept;
mod outgoing;
mod plain;
mod socket;
mod tcp;

pub use checked::{CHECKED_MESSAGE_BYTES, CheckedReader, CheckedWriter, StreamId};
pub use failure::{Failure, Reset};
pub use incoming::Incoming;
pub use outgoing::{Outgoing, Sent, Unmoved};
pub use plain::{PlainReader, PlainWriter};
pub use socket::{Socket, WindowFailed, WindowSink};
pub use tcp::{Tcp, TcpError};
