//! One error for every call, with what to do about it.

use std::time::Duration;

use beeline_window::{ReceiveError, SendError, Torn, WriteError};

/// Why a call failed. "Full" and "nothing there" are not errors: `try_…` calls say them in their results.
///
/// The text says what happened and where; [`Error::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The domain's folder cannot be made or used.
    #[error("cannot open domain `{name}`: {source}")]
    Domain {
        /// Name of the domain.
        name: String,
        /// Why.
        source: beeline_domain::DomainError,
    },
    /// A window cannot be offered or reached.
    #[error("cannot open window `{name}`: {source}")]
    Window {
        /// Name of the window.
        name: String,
        /// Why.
        source: beeline_domain::WindowError,
    },
    /// Calls cannot be offered or made.
    #[error("cannot open calls `{name}`: {source}")]
    Calls {
        /// Name of the server.
        name: String,
        /// Why.
        source: beeline_rpc::RpcError,
    },
    /// A call was not made or gave no answer.
    #[error("the call failed: {0}")]
    Call(#[from] beeline_rpc::CallFailure),
    /// A NIC cannot be reached.
    #[error("cannot open a port: {source}")]
    Nic {
        /// Why.
        source: beeline_link_shm::ConnectError,
    },
    /// A message cannot be sent, now or ever.
    #[error("cannot send: {0}")]
    Send(SendError),
    /// More was written into a reservation than was reserved.
    #[error("cannot write: {0}")]
    Write(#[from] WriteError),
    /// What the sender stored is no message.
    #[error("cannot receive: {0}")]
    Receive(ReceiveError),
    /// The program at the sending end has ended; everything it completed was received.
    #[error("the sender is gone")]
    SenderGone,
    /// It ended in the middle of a message.
    #[error("the sender died and left {0}")]
    Torn(Torn),
    /// The program at the receiving end has ended; what it had not received is lost.
    #[error("the receiver is gone")]
    ReceiverGone,
    /// The NIC process has ended or closed the port.
    #[error("the NIC is gone")]
    NicGone,
    /// The NIC cannot be brought up or a queue not be opened.
    #[error("the port cannot be used: {0}")]
    Port(beeline_driver::PortError),
    /// A frame cannot be sent, now or ever.
    #[error("cannot send the frame: {0}")]
    Transmit(#[from] beeline_driver::TxError),
    /// What the NIC wrote is no frame.
    #[error("cannot receive: {0}")]
    Frame(#[from] beeline_driver::RxError),
    /// Nothing happened for too long.
    #[error("waited {} ms for {what}", waited.as_millis())]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// How long.
        waited: Duration,
    },
    /// The system gives no random numbers, without which a window has no blank.
    #[error("the system gives no random numbers: {0}")]
    NoRandom(getrandom::Error),
}

impl Error {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Error::Domain { .. } => {
                "check that XDG_RUNTIME_DIR (or /tmp) is writable and that nobody else owns the domain's folder"
            }
            Error::Window { .. } => {
                "start the receiver first; a window has one sender at a time and a name one receiver"
            }
            Error::Calls { .. } => "start the server first; a name has one server",
            Error::Call(_) => {
                "see what the server answered; whether the request may be repeated only you know"
            }
            Error::Nic { .. } => {
                "start a NIC in this domain: `beeline nic`; `beeline doctor` says what is missing"
            }
            Error::Send(SendError::TooLong { .. }) => "send less at once, or offer a window of more lines",
            Error::Send(_) => "the receiver wrote an impossible count: end it, then open the window again",
            Error::Write(_) => "reserve more bytes, or write fewer",
            Error::Receive(_) => "the sender is faulty: end it; the next one gets a fresh window",
            Error::SenderGone | Error::Torn(_) => "receive again to wait for the next sender",
            Error::ReceiverGone => "start the receiver again, then open the window again",
            Error::NicGone => "start the NIC again, then open the port again",
            Error::Port(_) => "see `beeline stat` for the queue's state; open the port again",
            Error::Transmit(_) => {
                "send a frame of a length the port carries; open the port again if the NIC is faulty"
            }
            Error::Frame(_) => "the NIC is faulty: open the port again",
            Error::TimedOut { .. } => {
                "see `beeline doctor` and `beeline stat`; give the other side a core of its own"
            }
            Error::NoRandom(_) => "see that getrandom(2) or /dev/urandom is there",
        }
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::ReceiverGone => Error::ReceiverGone,
            other => Error::Send(other),
        }
    }
}

impl From<ReceiveError> for Error {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Gone => Error::SenderGone,
            ReceiveError::Torn(torn) => Error::Torn(torn),
            other => Error::Receive(other),
        }
    }
}

impl From<beeline_driver::PortError> for Error {
    fn from(error: beeline_driver::PortError) -> Self {
        use beeline_contract_link::LinkError;
        match error {
            beeline_driver::PortError::Link(LinkError::DeviceGone) => Error::NicGone,
            other => Error::Port(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_peer_has_a_name_of_its_own() {
        assert!(matches!(Error::from(SendError::ReceiverGone), Error::ReceiverGone));
        assert!(matches!(Error::from(ReceiveError::Gone), Error::SenderGone));
        let long = Error::from(SendError::TooLong { bytes: 9, max_bytes: 8 });
        assert_eq!(long.to_string(), "cannot send: a message of 9 bytes; this window takes 8 at most");
        assert!(long.remedy().contains("more lines"));
    }
}
