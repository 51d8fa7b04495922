//! Errors of the two ends, each with the numbers that were found. "Full" and "nothing there" are not errors.

use crate::Position;
use beeline_spec::batch::BatchError;
use beeline_spec::escape::EscapeError;
use beeline_spec::header::HeaderError;

/// The receiver pushed a count of freed lines that cannot be; the sender stores nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreditError {
    /// The count ran backwards.
    #[error("the receiver's count of freed lines fell from {before} to {found}; make a new window")]
    Backwards {
        /// Count pushed now.
        found: u64,
        /// Count known before.
        before: u64,
    },
    /// More lines are said to be free than were sent.
    #[error("the receiver says it freed {found} lines of {sent} sent; make a new window")]
    Ahead {
        /// Count pushed now.
        found: u64,
        /// Lines sent so far.
        sent: u64,
    },
}

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The payload is longer than any message in this window.
    #[error("a message of {bytes} bytes; this window takes {max_bytes} at most")]
    TooLong {
        /// Payload bytes asked for.
        bytes: usize,
        /// Longest payload in bytes.
        max_bytes: usize,
    },
    /// The receiver cannot be believed any more.
    #[error(transparent)]
    Credits(#[from] CreditError),
    /// The receiver died while the sender waited for credits.
    #[error("the receiver is gone")]
    ReceiverGone,
}

/// More bytes were written into a reservation than it has room for. Nothing of this write was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes into a reservation of {reserved_bytes} that holds {written_bytes} already")]
#[non_exhaustive]
pub struct WriteError {
    pub bytes: usize,
    /// Bytes written before.
    pub written_bytes: usize,
    pub reserved_bytes: usize,
}

impl WriteError {
    /// The error of a write of `bytes` after `written_bytes` of `reserved_bytes`.
    #[cold]
    pub const fn new(bytes: usize, written_bytes: usize, reserved_bytes: usize) -> Self {
        WriteError { bytes, written_bytes, reserved_bytes }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        "reserve more bytes, or write fewer"
    }
}

/// How the sender of a message that will never be complete went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderEnd {
    /// It is gone; who told the receiver so did not say how.
    #[default]
    Gone,
    /// Its process ended.
    Died,
    /// It closed the window in order, and its process lives on.
    Closed,
}

impl core::fmt::Display for SenderEnd {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            SenderEnd::Gone => "the sender is gone",
            SenderEnd::Died => "the sender died",
            SenderEnd::Closed => "the sender closed the window",
        })
    }
}

/// What a sender that is gone left behind: the start of a message that will never be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Torn {
    /// Where the message starts: the last next start.
    pub position: Position,
    /// Words from there on of which at least one byte arrived.
    pub words_seen: u64,
    /// Words of header and payload, if the header arrived.
    pub words_expected: Option<u32>,
    pub sender: SenderEnd,
}

impl Torn {
    /// The start of a message at `position`, of which this many words arrived, of this many.
    pub const fn new(position: Position, words_seen: u64, words_expected: Option<u32>) -> Self {
        Torn { position, words_seen, words_expected, sender: SenderEnd::Gone }
    }

    /// The same, left by a sender that went in this way.
    #[must_use]
    pub const fn left_by(self, sender: SenderEnd) -> Self {
        Torn { sender, ..self }
    }
}

impl core::fmt::Display for Torn {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "a torn message at {}: {} words arrived", self.position, self.words_seen)?;
        match self.words_expected {
            Some(words) => write!(out, " of {words}"),
            None => out.write_str(", its header did not"),
        }
    }
}

/// Why the receiver delivers nothing more. Every variant is final: later polls give the same error ([`Torn`] once,
/// then [`ReceiveError::Gone`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// The word at the next start is no header.
    #[error("malformed header at {position}: {error}")]
    Header {
        /// Start of the message.
        position: Position,
        error: HeaderError,
    },
    /// The chain of escaped words is broken.
    #[error("malformed escape in the message at {position}: {error}")]
    Escape {
        /// Start of the message.
        position: Position,
        /// The word that is no link.
        error: EscapeError,
    },
    /// An observed window knows no escapes, but a header names one.
    #[error("the header at {position} names word {index} as escaped in a window without blanks")]
    UnexpectedEscape {
        /// Start of the message.
        position: Position,
        /// Word index the header names.
        index: u32,
    },
    /// A record of a batch does not fit it.
    #[error("malformed batch at {position}: {error}")]
    Batch {
        /// Start of the message.
        position: Position,
        /// The record.
        error: BatchError,
    },
    /// A batch in a window that several threads receive from: it has one owner, they cannot share it.
    #[error(
        "a batch at {position} of a window that several threads receive from; send its messages one by one"
    )]
    SharedBatch {
        /// Start of the batch.
        position: Position,
    },
    /// Another receiver of the same window found it malformed, or went in the middle of several messages that belong
    /// together.
    #[error("another thread that receives from this window has given it up")]
    SharedFailed,
    /// A write arrived outside the observed window. It was dropped.
    #[error("a write of {bytes} bytes at offset {offset_bytes} of a window of {window_bytes} bytes")]
    Outside {
        /// Offset of its first byte.
        offset_bytes: u64,
        bytes: usize,
        window_bytes: u64,
    },
    /// A write arrived over a byte that is not free. It was dropped.
    #[error("a write over byte {offset_bytes} of the window, which is not free")]
    Clobber {
        /// Offset of the byte in the window.
        offset_bytes: u64,
    },
    /// The sender went in the middle of a message.
    #[error("{sender} and left {torn}", sender = .0.sender, torn = .0)]
    Torn(Torn),
    /// The sender is gone; everything it completed has been delivered.
    #[error("the sender is gone")]
    Gone,
}
