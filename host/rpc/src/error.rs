//! How calls end when they do not end well, and why there is no server.

use std::time::Duration;

use beeline_domain::{Absence, ConnectError, MayArrive, OfferError, WindowError};

/// How a call ended without an answer. A call is executed at most once, whatever this says; where it says more, the
/// variant tells.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The handler ran and gave an error of its own.
    #[error("the handler failed with code {code} and {} bytes of detail", .detail.len())]
    Failed {
        /// The handler's code.
        code: u16,
        detail: Box<[u8]>,
    },
    /// The server has no such method. It was not executed.
    #[error("the server has no such method; is it an older version?")]
    UnknownMethod,
    /// The deadline was past when the request's turn came. It was not executed.
    #[error("the deadline was past when the request's turn came; it was not executed")]
    DeadlinePassed,
    /// No answer came before the deadline. It may have been executed, or may be yet.
    #[error("no answer came before the deadline; the request may have been executed")]
    TimedOut,
    /// [`crate::Client::cancel`]. It may have been executed, or may be yet.
    #[error("the call was cancelled; the request may have been executed")]
    Cancelled,
    /// The server takes no more work now. It was not executed: try again later.
    #[error("the server is overloaded and did not execute the request; try again later")]
    Overloaded,
    /// The request or the answer is longer than the server allows.
    #[error("the request or its answer is longer than the server allows")]
    TooLong,
    /// The handler panicked or gave up; it may have been executed in part.
    #[error("the handler gave up in the middle of the request; see the server's log")]
    Crashed,
    /// The server went while the call was outstanding.
    #[error("{loss} while the call was outstanding; {}", if *.was_sent { "the request may have been executed" } else { "the request was not executed" })]
    ServerGone {
        loss: Loss,
        /// Whether the whole request had been sent; `false`: it was certainly not executed.
        was_sent: bool,
    },
}

/// Reasons for which a server is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// Its process ended.
    #[error("the server (pid {pid}) died")]
    Died {
        /// Its process id.
        pid: u32,
    },
    /// The server closed the connection.
    #[error("the server (pid {pid}) closed the connection")]
    Closed {
        /// Its process id.
        pid: u32,
    },
    /// It said something that no server says; this side closed the connection.
    #[error("the server broke the protocol ({what})")]
    Broke { what: String },
    /// Over a wire: the connection ended.
    #[error("the connection to the server is down: {why}")]
    Down { why: String },
}

/// Reasons for which a call was not begun. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The request is longer than any may be.
    #[error("a request of {bytes} bytes; the longest is {max_bytes}")]
    TooLong {
        bytes: usize,
        /// The bound.
        max_bytes: usize,
    },
    /// There is no server now; it is looked for again whenever the client is polled.
    #[error("{loss}; it is looked for whenever the client is polled")]
    NotConnected {
        /// Reason for which the last server was lost.
        loss: Loss,
    },
}

/// Reasons for which a client or a server cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The server cannot be reached, or refuses.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The name cannot be offered.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// A window or its memory cannot be had.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The datagram endpoint cannot be set up.
    #[cfg(feature = "wire")]
    #[error(transparent)]
    Endpoint(beeline_datagram::EndpointError),
    /// The server's station cannot be reached from this endpoint.
    #[cfg(feature = "wire")]
    #[error(transparent)]
    Station(beeline_datagram::ConnectError),
    /// An option is out of bounds.
    #[error("{option} = {value}; it must be {bounds}")]
    Option { option: &'static str, value: u64, bounds: &'static str },
    /// The other side's first message makes no sense.
    #[error("the server's answer to the connection is malformed: {what}")]
    Malformed { what: String },
}

impl MayArrive for RpcError {
    fn absence(&self) -> Option<Absence> {
        match self {
            RpcError::Connect(error) => error.absence(),
            RpcError::Window(error) => error.absence(),
            _ => None,
        }
    }
}

/// Reasons for which [`crate::Client::call`] gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The call was not begun.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The call ended without an answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// There was no room for it before its deadline. Nothing was sent.
    #[error("no room for the request in {waited:?}: the server does not take requests as fast as they come")]
    NoRoom { waited: Duration },
    /// Other calls are outstanding, whose answers this one would have to drop.
    #[error(
        "{outstanding} calls are outstanding; poll for their answers before a call that waits for its own"
    )]
    Outstanding { outstanding: usize },
}
