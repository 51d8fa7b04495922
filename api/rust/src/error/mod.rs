//! Why calls fail: a small enum for each kind of call, and [`Error`], which holds any of them.
//!
//! The text of an error says what happened and where; its `source()`, where it has one, says why and is not repeated in the
//! text, so a printer of chains prints everything once. `remedy()` says what to do about the cause. "Full" and "nothing
//! there" are answers, not errors.

mod cause;
mod open;
#[cfg(feature = "nic")]
mod port;
mod window;

pub use open::{ConnectError, OfferError, OpenError, Target};
#[cfg(feature = "nic")]
pub(crate) use port::NicGone;
#[cfg(feature = "nic")]
pub use port::{PortError, PortRecvError, PortSendError};
pub use window::{RecvError, SendError, WriteError};

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
    /// No message can be received.
    #[error(transparent)]
    Recv(#[from] RecvError),
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
            Error::Write(_) => "reserve more bytes, or write fewer",
            Error::Recv(error) => error.remedy(),
            #[cfg(feature = "nic")]
            Error::Port(error) => error.remedy(),
            #[cfg(feature = "nic")]
            Error::PortSend(error) => error.remedy(),
            #[cfg(feature = "nic")]
            Error::PortRecv(error) => error.remedy(),
            #[cfg(feature = "rpc")]
            Error::Call(CallFailure::Start(error)) | Error::StartCall(error) => remedy_of_start(error),
            #[cfg(feature = "rpc")]
            Error::Call(CallFailure::Call(error)) => remedy_of_call(error),
            #[cfg(feature = "rpc")]
            Error::Call(CallFailure::NoRoom { .. }) => {
                "give the server more workers or longer windows, or the call more time"
            }
            #[cfg(feature = "rpc")]
            Error::Call(CallFailure::Outstanding { .. }) => {
                "poll until no call is outstanding, or begin this one with `start`"
            }
        }
    }
}

#[cfg(feature = "rpc")]
fn remedy_of_start(error: &StartError) -> &'static str {
    match error {
        StartError::TooLong { .. } => "send a shorter request, or offer longer request windows",
        StartError::NotConnected { .. } => "start the server again; the client finds it when it is polled",
    }
}

#[cfg(feature = "rpc")]
fn remedy_of_call(error: &beeline_rpc::CallError) -> &'static str {
    use beeline_rpc::CallError;
    match error {
        CallError::Failed { .. } => "see the handler's code and detail",
        CallError::UnknownMethod => "use a server and a client of versions that go together",
        CallError::DeadlinePassed | CallError::Overloaded => "repeat the call later; it was not executed",
        CallError::TimedOut | CallError::Cancelled => {
            "find out whether the request was executed before you repeat it"
        }
        CallError::TooLong => "send or ask for less, or offer longer windows",
        CallError::Crashed => "see the server's log; the request may have been executed in part",
        CallError::ServerGone { was_sent: false, .. } => "start the server again and repeat the call",
        CallError::ServerGone { was_sent: true, .. } => {
            "start the server again; find out whether the request was executed before you repeat it"
        }
    }
}

#[cfg(all(test, feature = "rpc", feature = "nic"))]
mod tests;
