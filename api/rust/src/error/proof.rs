//! Why nothing proves who is at the other end of a connection.

use std::time::Duration;

use beeline_domain::{AdmitError, ExchangeError, NotShared};

use super::cause::Cause;

/// Why nothing proves who is at the other end of a connection; nobody is let in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The descriptor is no stream of a socket; where the kernel is asked, it is no connection of TCP.
    #[error("the descriptor is not that of a connection in which the other end can be known")]
    WrongKind,
    /// The kernel does not say for certain who has the other end. Asking changed nothing.
    #[error("nobody is known to have the other end of the connection")]
    NotShared {
        /// What is missing.
        source: Cause,
    },
    /// The other side sends something else than a token. All of it is still there to be read.
    #[error("the other side of the connection sends something else than a token")]
    NotToken,
    /// What came was this side's own token, or none that can be.
    #[error("the other side of the connection sent a token that is not its own")]
    Malformed,
    /// The other side closed the connection first.
    #[error("the other side closed the connection before it had sent its token")]
    Closed,
    /// The token did not come in time. A part of it may have been read.
    #[error("no token came in {} ms", waited.as_millis())]
    TimedOut {
        /// The time that was given.
        waited: Duration,
    },
    /// The call came from a forked child.
    #[error("nobody can be let in from here")]
    Misuse {
        /// The rule that was broken.
        source: Cause,
    },
    /// The kernel refused something.
    #[error("cannot find out who has the other end of the connection")]
    System {
        /// What the kernel said.
        source: Cause,
    },
}

impl ProofError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            ProofError::WrongKind => {
                "give a connected stream socket; for one that is not of TCP, exchange a token in it"
            }
            ProofError::NotShared { source } => match source.downcast_ref() {
                Some(NotShared::NotAccepted) => "ask again when the other side has accepted the connection",
                Some(NotShared::NotEstablished) => "ask while the connection is open in both directions",
                _ => "exchange a token in the connection, or list the user's uid (`allowed_uids`)",
            },
            ProofError::NotToken => {
                "let one side exchange a token and the other one admit it, before either sends anything else"
            }
            ProofError::Malformed => "close the connection: its other side cannot be trusted, or is an echo",
            ProofError::Closed => "connect again, and exchange a new token",
            ProofError::TimedOut { .. } => {
                "close the connection, of which a part may have been read; see that one side exchanges a token and the other one \
                 admits it"
            }
            ProofError::Misuse { .. } => "make admissions, and offer, in the process that lets others in",
            ProofError::System { .. } => {
                "see what the kernel refused; `ulimit -a` shows the limits of this process"
            }
        }
    }
}

impl From<NotShared> for ProofError {
    #[cold]
    fn from(error: NotShared) -> Self {
        match error {
            NotShared::NotTcp => ProofError::WrongKind,
            NotShared::System { .. } => ProofError::System { source: error.into() },
            other => ProofError::NotShared { source: other.into() },
        }
    }
}

impl From<ExchangeError> for ProofError {
    #[cold]
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::NotStream => ProofError::WrongKind,
            ExchangeError::NotOurs => ProofError::NotToken,
            ExchangeError::Malformed => ProofError::Malformed,
            ExchangeError::Closed => ProofError::Closed,
            ExchangeError::TimedOut { waited } => ProofError::TimedOut { waited },
            ExchangeError::System { .. } => ProofError::System { source: error.into() },
        }
    }
}

impl From<AdmitError> for ProofError {
    #[cold]
    fn from(error: AdmitError) -> Self {
        match error {
            AdmitError::Exchange(error) => error.into(),
            AdmitError::Misuse(error) => ProofError::Misuse { source: error.into() },
        }
    }
}
