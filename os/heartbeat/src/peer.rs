//! A peer with the evidence that there is for it, for edges that serve both kinds.

use beeline_domain::{Departure, Peer};

use crate::link::HeartbeatLink;
use crate::status::{Down, Status};

/// What shows whether a peer is there: the kernel where it can, heartbeats elsewhere. Nothing has both, so that nobody who shares
/// a kernel is declared down for silence.
#[derive(Debug)]
pub enum PeerEvidence {
    /// The process at the other end of a connection; the kernel tells of its end.
    Kernel(Peer),
    /// The other side of a link; it is down after a silence.
    Heartbeat(HeartbeatLink),
}

/// How a peer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The kernel has shown it: for good.
    Departed(Departure),
    /// Its link is down, and may come up again.
    Down(Down),
}

impl PeerEvidence {
    /// Whether the peer is there, as far as is known: one relaxed load.
    #[inline]
    pub fn is_there(&self) -> bool {
        match self {
            PeerEvidence::Kernel(peer) => peer.is_alive(),
            PeerEvidence::Heartbeat(link) => link.is_up(),
        }
    }

    /// Returns how the peer went; `None` while it is there, and before it has come.
    pub fn gone(&self) -> Option<Gone> {
        match self {
            PeerEvidence::Kernel(peer) => peer.departure().map(Gone::Departed),
            PeerEvidence::Heartbeat(link) => match link.status() {
                Status::Down { reason, .. } => Some(Gone::Down(reason)),
                Status::NeverUp | Status::Up { .. } => None,
            },
        }
    }
}
