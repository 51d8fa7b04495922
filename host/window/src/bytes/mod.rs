//! A window as a byte stream: the payloads of its messages one after the other, whatever their sizes.
//!
//! A [`ByteWriter`] cuts what it is given into messages; a [`ByteReader`] gives the bytes in pieces of any size. Neither
//! needs more than messages are: the stream has no format of its own, and its end is a message without bytes (decision
//! 0027). A writer that dies leaves no such mark, so a reader tells an end from a loss.
//!
//! Both are non-blocking state machines like the ends that they own, and wait in the forms of `wait.rs` only. What several
//! threads write to one stream goes through [`crate::Shared`], which has the lock; who owns an end alone has none.
//!
//! Bytes come from the caller and go to [`crate::Writer`]; from [`crate::Receiver`] they go to the caller. Not here: sockets,
//! their options and their descriptors.

mod account;
mod ahead;
mod look;
mod reader;
mod wait;
mod writer;

pub use reader::{ByteRead, ByteReader};
pub use writer::{ByteWriteError, ByteWriter, MESSAGE_LINES};
