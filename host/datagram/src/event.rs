//! What a program is told: whether a message was taken, and what happened.

use crate::{Address, ConnectionId, Down};

/// Whether a message was taken. Both are success; `Full` means: poll, and try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The message is kept until the other side has it, or the connection's end is reported.
    Sent,
    /// Nothing was taken: the window is full, the other side has no room, or the connection is not open yet.
    Full,
}

/// An event that [`crate::Endpoint::poll`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection is open: one that this side asked for, or that `remote` began.
    Opened {
        id: ConnectionId,
        /// The other endpoint.
        remote: Address,
    },
    /// A message came; [`crate::Endpoint::message`] shows it until the next poll.
    Message {
        id: ConnectionId,
        /// Bytes of the message.
        bytes: usize,
    },
    /// A connection ended. Nothing more is heard of it, and its name is not used again.
    Closed {
        id: ConnectionId,
        why: Down,
        /// Messages that were taken from the program and not acknowledged: each may have arrived or not.
        unacknowledged: u32,
    },
}
