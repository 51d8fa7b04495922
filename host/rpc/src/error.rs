//! How calls end when they do not end well, and why there is no server.

use std::time::Duration;

use beeline_domain::{Absence, ConnectError, MayArrive, OfferError, WindowError};

/// How a call ended without an answer. A call is executed at most once, whatever this says; where it says more, the
/// variant tells.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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

impl CallError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
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
}

/// The server's process in the middle of a sentence; nothing for one that is not known.
fn in_parentheses(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// Reasons for which a server is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// Its process ended.
    #[error("the server{} died", in_parentheses(*.pid))]
    Died {
        /// Its process id; `None` for one outside this pid namespace.
        pid: Option<u32>,
    },
    /// The server closed the connection.
    #[error("the server{} closed the connection", in_parentheses(*.pid))]
    Closed {
        /// Its process id; `None` for one outside this pid namespace.
        pid: Option<u32>,
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
#[non_exhaustive]
pub enum StartError {
    /// The request is longer than any may be.
    #[error("a request of {bytes} bytes; the longest is {max_bytes}")]
    TooLong {
        bytes: usize,
        /// The bound.
        max_bytes: usize,
    },
    /// There is no server now. It is looked for again whenever the client is polled, unless the client connected with a token.
    #[error("{loss}; there is no server now")]
    NotConnected {
        /// Reason for which the last server was lost.
        loss: Loss,
    },
}

impl StartError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            StartError::TooLong { .. } => "send a shorter request, or offer longer request windows",
            StartError::NotConnected { .. } => {
                "start the server again; the client finds it when it is polled, and one that has a token is made anew"
            }
        }
    }
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
#[non_exhaustive]
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

impl CallFailure {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            CallFailure::Start(error) => error.remedy(),
            CallFailure::Call(error) => error.remedy(),
            CallFailure::NoRoom { .. } => {
                "give the server more workers or longer windows, or the call more time"
            }
            CallFailure::Outstanding { .. } => {
                "poll until no call is outstanding, or begin this one with `start`"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_outside_the_pid_namespace_has_no_number_in_a_loss() {
        for (pid, expected) in [(None, "the server died"), (Some(7), "the server (process 7) died")] {
            assert_eq!(Loss::Died { pid }.to_string(), expected);
        }
        assert_eq!(Loss::Closed { pid: None }.to_string(), "the server closed the connection");
    }
}
