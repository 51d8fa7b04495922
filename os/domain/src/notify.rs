//! A notification: what is told, what becomes of it, and why no more come.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::channel::Channel;
use crate::error::MisuseError;
use crate::wire::{MAX_NOTIFICATION_BYTES, MAX_NOTIFICATION_FDS, WireError};

/// What an owner told this client unasked.
#[derive(Debug)]
pub struct Notification {
    /// At most [`MAX_NOTIFICATION_BYTES`]. From a process that is not trusted: check before use.
    pub payload: Vec<u8>,
    /// At most [`MAX_NOTIFICATION_FDS`].
    pub fds: Vec<OwnedFd>,
    /// Answers of the owner that came over the connection before it: the one to the connect, and one for each call, in time
    /// or too late. So after `n` calls that were all answered in time, a notification that says at most `n` was sent before
    /// the answer to the last call.
    pub answers_before: u64,
}

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Notified {
    /// It is on its way, behind everything that this connection was told before it.
    Accepted,
    /// Nothing was sent: the client has to take earlier ones first. [`crate::Service::has_room`] says when it did.
    WouldBlock,
}

/// Why a client cannot be notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotifyError {
    /// The client has died or closed its end, or this side has.
    #[error("the peer has gone")]
    Gone,
    /// More than a notification may have.
    #[error(
        "a notification of {bytes} bytes and {fds} descriptors; at most {MAX_NOTIFICATION_BYTES} bytes and \
         {MAX_NOTIFICATION_FDS} descriptors travel"
    )]
    TooLarge {
        /// Bytes of the payload.
        bytes: usize,
        /// Number of descriptors.
        fds: usize,
    },
    /// The kernel refused something; nothing was sent.
    #[error("cannot notify the peer: {errno}")]
    System { errno: Errno },
    /// A call that must not be made.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

/// Why no further notification comes. Those that came before are taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotificationsEnded {
    /// The connection was closed on this side.
    #[error("the connection was closed on this side")]
    ClosedHere,
    /// The owner closed the connection, and every notification that it had sent was taken.
    #[error("the owner closed the connection")]
    Closed,
    /// The owner closed the connection while notifications waited on its side for room in the socket.
    #[error("the owner closed the connection before {} of its notifications had left", number(*missing))]
    CutOff {
        /// How many, where the owner could say it.
        missing: Option<u32>,
    },
    /// The owner died. What had left it came.
    #[error("the owner has died")]
    OwnerDied,
    /// The owner sent something that is not in order.
    #[error("the owner broke the protocol: {0}")]
    Broken(WireError),
    /// A call that must not be made.
    #[error(transparent)]
    Misuse(#[from] MisuseError),
}

fn number(missing: Option<u32>) -> String {
    missing.map_or("some".to_owned(), |missing| missing.to_string())
}

pub(crate) fn forked(channel: &Channel) -> MisuseError {
    MisuseError::Forked { opened_by: channel.opened_by(), pid: std::process::id() }
}

/// Sends a notification to the other end of `channel`, which is a client's.
pub(crate) fn notify(
    channel: &Channel,
    payload: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<Notified, NotifyError> {
    if payload.len() > MAX_NOTIFICATION_BYTES || fds.len() > MAX_NOTIFICATION_FDS {
        return Err(NotifyError::TooLarge { bytes: payload.len(), fds: fds.len() });
    }
    if !channel.is_own() {
        return Err(forked(channel).into());
    }
    let Ok(socket) = channel.live() else { return Err(MisuseError::DescriptorLost.into()) };
    match channel.outbox().notify(socket.as_fd(), payload, fds) {
        Ok(true) => Ok(Notified::Accepted),
        Ok(false) => Ok(Notified::WouldBlock),
        Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(NotifyError::Gone),
        Err(errno) => Err(NotifyError::System { errno }),
    }
}
