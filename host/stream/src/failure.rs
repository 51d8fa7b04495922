//! Why a stream cannot go on.

use beeline_ledger::{Broken, Refused};
use thiserror::Error;

/// What a call on a stream ends with instead of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Failure<E> {
    /// What the kernel said of the socket: the program gets the same answer.
    #[error("the socket failed: {0}")]
    Socket(E),
    /// Which byte comes next is not known, or it is lost: both ends are to be reset, so that nobody reads a wrong one.
    #[error(transparent)]
    Reset(#[from] Reset),
}

/// Why a connection is to be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Reset {
    /// The other side broke the ledger's rules.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Bytes of the window are lost, and the other side has ended, with what it could send again.
    #[error("bytes of the window are lost, and the other side has ended")]
    Lost,
    /// The other side has lost the window, and its bytes were not kept here.
    #[error("the other side has lost the window behind byte {from}, and those bytes were not kept")]
    NotKept {
        /// Bytes of the stream that the other side has.
        from: u64,
    },
    /// The window was left for ever while the other side looked for the last time where the stream goes on, and it did not say what it found.
    #[error(
        "the other side was about to look for the last time where the stream goes on, and did not say what it found"
    )]
    Unseen,
}

impl<E> Failure<E> {
    pub(crate) fn of(refused: Refused<E>) -> Self {
        match refused {
            Refused::Socket(error) => Failure::Socket(error),
            Refused::Lost => Reset::Lost.into(),
            Refused::Broken(broken) => broken.into(),
        }
    }
}

impl<E> From<Broken> for Failure<E> {
    fn from(broken: Broken) -> Self {
        Failure::Reset(broken.into())
    }
}
