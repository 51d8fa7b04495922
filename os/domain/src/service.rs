//! What stands behind an offered name: the owner's half of requests and answers.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use beeline_mmio::{Pace, ThisProcess};

use crate::Peer;
use crate::admissions::Admissions;
use crate::shares::Shares;

/// Answers the peers of an offer.
///
/// Every call comes from the domain's background thread, one at a time. It must not block, or nobody's death is seen
/// meanwhile: whatever takes time in proportion to what was asked for is left to an [`Answer::Later`]. A panic is caught
/// and refused. What a peer sends is not trusted: check before use. Signals are blocked on that thread, and on threads that
/// a callback starts. A child that a callback forks executes a program or exits; if it returns, it is aborted.
pub trait Service: Send {
    /// A peer connected; `request` and `fds` are what it connected with. A refused peer is disconnected. Of one that is
    /// refused here nothing more is heard; of one whose work refuses it, [`Service::departed`] is.
    ///
    /// # Errors
    /// A refusal, whose reason the peer is told.
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal>;

    /// A connected peer asks for something.
    ///
    /// # Errors
    /// A refusal, whose reason the peer is told; it stays connected.
    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal>;

    /// A connected peer died or closed its end; [`Peer::departure`] says which. Called once for each, and never while work
    /// for an answer to it is under way.
    fn departed(&mut self, peer: &Peer);

    /// A connected peer tells something that it gets no answer to ([`crate::Connection::tell`]), at most
    /// [`crate::MAX_NOTIFICATION_BYTES`].
    fn told(&mut self, _peer: &Peer, _message: &[u8]) {}

    /// A peer has taken notifications since [`Peer::notify`] last said [`crate::Notified::WouldBlock`], and there is room for
    /// at least one.
    fn has_room(&mut self, _peer: &Peer) {}

    /// A packet of a connected peer was read, whatever it was, and what it asked for is done. For services whose peers tell them things
    /// in memory: a wake-up that finds no room is followed by the reading of those that have taken it.
    fn heard(&mut self, _peer: &Peer) {}
}

/// Work that gives an answer. It runs on a thread of the domain's workers, never on the one that watches, and may take its
/// time: whoever asked waits for it, and nobody else does. Long work on memory is done in pieces, at the [`Pace`] it is
/// given. It is dropped without being called when the peer has gone, or the domain goes.
pub type Work = Box<dyn FnOnce(&dyn Pace) -> Result<Reply, Refusal> + Send>;

/// What is done after an answer was sent, on the domain's thread, whether the peer is still there or not. A constant bounds the time
/// that it takes.
pub type Afterwards = Box<dyn FnOnce() + Send>;

/// What a service says to a request.
pub enum Answer {
    /// This, at once.
    Now(Reply),
    /// This, at once, and then, on the same thread, what whoever asked need not wait for.
    Then(Reply, Afterwards),
    /// What the work gives.
    Later(Work),
}

impl Answer {
    /// The answer that `work` gives; for everything whose time grows with what was asked for, as making, mapping and filling
    /// memory, and for what may wait, as closing descriptors of a peer.
    pub fn later(work: impl FnOnce(&dyn Pace) -> Result<Reply, Refusal> + Send + 'static) -> Self {
        Answer::Later(Box::new(work))
    }

    /// A refusal of a request that came with descriptors; a worker closes them, which may wait for the peer.
    pub fn refusal(refusal: Refusal, fds: Vec<OwnedFd>) -> Self {
        Answer::later(move |_| {
            drop(fds);
            Err(refusal)
        })
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Answer::Now(reply)
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Now(reply) => out.debug_tuple("Now").field(reply).finish(),
            Answer::Then(reply, _) => out.debug_tuple("Then").field(reply).finish(),
            Answer::Later(_) => out.write_str("Later"),
        }
    }
}

/// An answer.
#[derive(Debug, Default)]
pub struct Reply {
    /// At most [`crate::MAX_PAYLOAD_BYTES`].
    pub payload: Vec<u8>,
    /// At most [`crate::MAX_FDS`]; closed on this side once they are sent.
    pub fds: Vec<OwnedFd>,
}

impl Reply {
    /// An answer without descriptors.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Reply { payload: payload.into(), fds: Vec::new() }
    }
}

/// Longest reason in bytes; what is longer is cut.
const MAX_REASON_BYTES: usize = 1024;

/// Why a request is refused, in words for the peer's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reason: String,
}

impl Refusal {
    /// Makes a refusal; what is longer than 1,024 bytes is cut when it is sent.
    pub fn new(reason: impl Into<String>) -> Self {
        Refusal { reason: reason.into() }
    }

    /// Returns the words that the peer's user reads.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub(crate) fn to_wire(&self) -> &[u8] {
        let end = self.reason.floor_char_boundary(MAX_REASON_BYTES);
        &self.reason.as_bytes()[..end]
    }

    /// The reason a peer sent, fit to be printed: its control characters are escaped.
    pub(crate) fn from_wire(payload: &[u8]) -> String {
        let cut = &payload[..payload.len().min(MAX_REASON_BYTES)];
        let mut reason = String::new();
        for character in String::from_utf8_lossy(cut).chars() {
            if character.is_control() {
                reason.extend(character.escape_default());
            } else {
                reason.push(character);
            }
        }
        reason
    }
}

/// Who may connect, and how patient an offer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferOptions {
    /// Users besides the owner whose processes may connect, by their uids in this process's user namespace. Only if there
    /// is one are the folder and the socket opened to others: the socket to all, who are then told apart by the kernel's
    /// word. A user whom the namespace does not map has no uid here, and the number that stands for all of those (65534)
    /// lets nobody in.
    pub allowed_uids: Vec<u32>,
    /// Who is let in besides, because it shares a connection with this process. `None`: nobody. It opens folder and socket to
    /// others as a list does.
    pub admissions: Option<Admissions>,
    /// Connections at the same time, those included that have not said anything yet.
    pub max_connections: usize,
    /// How many of them one process, and one user besides the owner, may have; `None`: [`Shares::of`] them.
    pub shares: Option<Shares>,
    /// How long a connection may take for its first request.
    pub hello_timeout: Duration,
}

impl Default for OfferOptions {
    /// The owner only, 1024 connections, 5 s.
    fn default() -> Self {
        OfferOptions {
            allowed_uids: Vec::new(),
            admissions: None,
            max_connections: 1024,
            shares: None,
            hello_timeout: Duration::from_secs(5),
        }
    }
}

impl OfferOptions {
    /// Whether anybody but the owner may be let in.
    pub(crate) fn is_for_others(&self) -> bool {
        !self.allowed_uids.is_empty() || self.admissions.is_some()
    }
}

/// Calls a service so that its panic does not end the thread that watches everybody.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    let process = ThisProcess::get();
    let result = catch_unwind(AssertUnwindSafe(call));
    if !process.is_this() {
        // Two processes would go on with one epoll and answer one request.
        tracing::error!("a child that a service forked has returned from it; it is ended");
        std::process::abort();
    }
    result.unwrap_or_else(|_| {
        tracing::error!("a service panicked");
        Err(Refusal::new("the service failed; see the owner's log"))
    })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_reason_travels_cut_and_harmless() {
        let long = Refusal::new("ä".repeat(MAX_REASON_BYTES));
        assert_eq!(long.to_wire().len(), MAX_REASON_BYTES);
        assert_eq!(Refusal::from_wire(Refusal::new("taken by process 7").to_wire()), "taken by process 7");
        assert_eq!(Refusal::from_wire(b"\x1b[2J\xff"), "\\u{1b}[2J\u{fffd}");
        assert!(Refusal::from_wire(&[b'x'; 5000]).len() <= MAX_REASON_BYTES);
    }
}
