//! Why messages cannot be sent or received.

use beeline_domain::Departure;
use beeline_mmio::NotChosen;
use beeline_window::{ByteWriteError, ReceiveError, SenderEnd, Torn};

use super::cause::Cause;

pub use beeline_window::WriteError;

/// Why a message cannot be sent, now or ever.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// It can never fit this window.
    #[error("cannot send a message of {bytes} bytes: this window takes {max_bytes} at most")]
    TooLong {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes of the longest one.
        max_bytes: usize,
    },
    /// The program at the receiving end has ended; what it had not received is lost.
    #[error("the receiver is gone")]
    ReceiverGone,
    /// The receiver wrote what no sound one writes; nothing more is stored into its window.
    #[error("the receiver is faulty")]
    ReceiverFaulty {
        /// The value that the receiver wrote, and what was possible.
        source: Cause,
    },
    /// The byte stream was shut down by [`crate::ByteSender::shut_down`].
    #[error("the stream was shut down")]
    ShutDown,
}

impl SendError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            SendError::TooLong { .. } => "send less at once, or offer a window of more lines",
            SendError::ReceiverGone => "start the receiver again, then open the window again",
            SendError::ReceiverFaulty { .. } => {
                "end the receiver; start it again, then open the window again"
            }
            SendError::ShutDown => "write before the stream is shut down, or open a window for another one",
        }
    }
}

impl From<beeline_window::SendError> for SendError {
    #[cold]
    fn from(error: beeline_window::SendError) -> Self {
        use beeline_window::SendError as Below;
        match error {
            Below::TooLong { bytes, max_bytes } => SendError::TooLong { bytes, max_bytes },
            Below::ReceiverGone => SendError::ReceiverGone,
            Below::Credits(error) => SendError::ReceiverFaulty { source: error.into() },
        }
    }
}

impl From<ByteWriteError> for SendError {
    #[cold]
    fn from(error: ByteWriteError) -> Self {
        match error {
            ByteWriteError::Send(error) => error.into(),
            _ => SendError::ShutDown,
        }
    }
}

/// A store kernel that this machine lacks, or that does not store to memory. The sender stores as before.
#[derive(Debug, thiserror::Error)]
#[error("cannot store with another kernel")]
pub struct KernelError {
    /// Which kernel, and what it needs.
    #[from]
    source: NotChosen,
}

impl KernelError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        "take one of `StoreKernel::available()`, or a tuning that was found on this machine"
    }
}

/// Why no message can be received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecvError {
    /// The program at the sending end has ended; everything it completed was received.
    #[error("the sender is gone")]
    SenderGone,
    /// It ended in the middle of a message: its process died, or it closed the window and lives on.
    #[error("{sender} and left {torn}", sender = .0.sender, torn = .0)]
    Torn(Torn),
    /// What the sender stored is no message.
    #[error("the sender is faulty")]
    SenderFaulty {
        /// What it stored.
        source: Cause,
    },
    /// This process was forked from the one that made the receiver, to which its senders connect.
    #[error("the receiver belongs to the process that this one was forked from")]
    Forked,
}

impl RecvError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            RecvError::SenderGone | RecvError::Torn(_) => {
                "receive again to wait for the next sender; with a byte stream, call `next_stream` first"
            }
            RecvError::SenderFaulty { .. } => "end the sender; the next one gets a fresh window",
            RecvError::Forked => "make a receiver of another name in this process",
        }
    }
}

impl RecvError {
    /// The error of a window whose sender went in this way, if it went.
    #[cold]
    pub(crate) fn new(error: ReceiveError, departure: Option<Departure>) -> Self {
        let sender = match departure {
            None => SenderEnd::Gone,
            Some(Departure::Died) => SenderEnd::Died,
            Some(Departure::Closed) => SenderEnd::Closed,
        };
        match error {
            ReceiveError::Gone => RecvError::SenderGone,
            ReceiveError::Torn(torn) => RecvError::Torn(torn.left_by(sender)),
            other => RecvError::SenderFaulty { source: other.into() },
        }
    }
}
