//! Why calls fail: a small enum for each kind of call, and [`Error`], which holds any of them.
//!
//! The text of an error says what happened and where; its `source()`, where it has one, says why and is not repeated in the
//! text, so a printer of chains prints everything once. `remedy()` says what to do about the cause. "Full" and "nothing
//! there" are answers, not errors.

mod cause;
mod notify;
mod open;
#[cfg(feature = "nic")]
mod port;
mod proof;
mod window;

pub use notify::{NotifyError, SubscriptionEnded};
pub use open::{ConnectError, OfferError, OpenError, Target};
#[cfg(feature = "nic")]
pub(crate) use port::NicGone;
#[cfg(feature = "nic")]
pub use port::{PortError, PortRecvError, PortSendError};
pub use proof::ProofError;
pub use window::{KernelError, RecvError, SendError, WriteError};

use crate::MemberError;
#[cfg(feature = "rpc")]
use beeline_rpc::{CallFailure, StartError};

/// Any error of this crate, for programs that hand errors up without looking at them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A domain cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A name cannot be offered.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// An offered name cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A message cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// More was written into a reservation than it has room for.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A sender cannot store with a kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// No message can be received.
    #[error(transparent)]
    Recv(#[from] RecvError),
    /// A sender of a member of a set of receivers is over.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// A subscriber cannot be told something.
    #[error(transparent)]
    Notify(#[from] NotifyError),
    /// A subscription gives nothing more.
    #[error(transparent)]
    Ended(#[from] SubscriptionEnded),
    /// Nothing proves who is at the other end of a connection.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A port of a NIC cannot be opened.
    #[cfg(feature = "nic")]
    #[error(transparent)]
    Port(#[from] PortError),
    /// A frame cannot be sent.
    #[cfg(feature = "nic")]
    #[error(transparent)]
    PortSend(#[from] PortSendError),
    /// No frame can be received.
    #[cfg(feature = "nic")]
    #[error(transparent)]
    PortRecv(#[from] PortRecvError),
    /// A call gave no answer.
    #[cfg(feature = "rpc")]
    #[error(transparent)]
    Call(#[from] CallFailure),
    /// A call was not begun.
    #[cfg(feature = "rpc")]
    #[error(transparent)]
    StartCall(#[from] StartError),
}

impl Error {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::Open(error) => error.remedy(),
            Error::Offer(error) => error.remedy(),
            Error::Connect(error) => error.remedy(),
            Error::Send(error) => error.remedy(),
            Error::Write(error) => error.remedy(),
            Error::Kernel(error) => error.remedy(),
            Error::Recv(error) => error.remedy(),
            Error::Member(error) => error.remedy(),
            Error::Notify(error) => error.remedy(),
            Error::Ended(error) => error.remedy(),
            Error::Proof(error) => error.remedy(),
            #[cfg(feature = "nic")]
            Error::Port(error) => error.remedy(),
            #[cfg(feature = "nic")]
            Error::PortSend(error) => error.remedy(),
            #[cfg(feature = "nic")]
            Error::PortRecv(error) => error.remedy(),
            #[cfg(feature = "rpc")]
            Error::Call(error) => error.remedy(),
            #[cfg(feature = "rpc")]
            Error::StartCall(error) => error.remedy(),
        }
    }
}

#[cfg(all(test, feature = "rpc", feature = "nic"))]
mod tests;
