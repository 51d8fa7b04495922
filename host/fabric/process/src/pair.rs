//! A pair: what this process has with another member in one direction.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use beeline_domain::{ConnectError, Connection, Disposer, Domain, Peer, RingWatch};
use beeline_fabric::{MemberNumber, NodeId, Reached};
use beeline_mmio::{Flag, MapError, SharedMemory};

use crate::names::offer_name;
use crate::packets::{Hello, PacketError, Welcome};
use crate::words::{BOARD, CLAIMS, Published, View, WordsError};

/// How long a member may take to answer. One that is stopped never does; whoever connects to its segments waits so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// A member that this one uses, or is used by.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The other process; `None` if it is this one.
    other: Option<Other>,
    /// Of a member that is used.
    bank: Option<Arc<SharedMemory>>,
    /// Keeps the mapping of the other side's words, which is to be dropped where this is.
    _words: View,
}

#[derive(Debug)]
struct Other {
    // Before what it watches.
    _rings: RingWatch,
    peer: Peer,
    _connection: Option<Connection>,
}

impl Pair {
    /// With this process itself, whose words these are.
    pub(crate) fn with_itself(bank: Option<Arc<SharedMemory>>, words: View) -> Self {
        Pair { other: None, bank, _words: words }
    }

    /// With a member that uses this one's segments. Its rings wake who sleeps on `bell`.
    pub(crate) fn of_consumer(peer: &Peer, claims: View, bell: &Flag) -> Self {
        let other = Other { _rings: peer.watch_rings(bell), peer: peer.clone(), _connection: None };
        Pair { other: Some(other), bank: None, _words: claims }
    }

    /// Whether the other side is still there. One relaxed load, until it is gone.
    pub(crate) fn is_there(&self) -> bool {
        // The departure, after which every store that the peer made before is visible.
        self.other.as_ref().is_none_or(|other| other.peer.is_alive() || other.peer.departure().is_none())
    }

    /// The other process; `None` if it is this one.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.other.as_ref().map(|other| &other.peer)
    }

    /// The bank of a member that is used.
    pub(crate) fn bank(&self) -> Option<&Arc<SharedMemory>> {
        self.bank.as_ref()
    }
}

/// Why a member is not reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReachError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("the other member has passed {0} descriptors, and not a board and a bank")]
    Descriptors(usize),
    #[error(transparent)]
    Words(#[from] WordsError),
    #[error("the bank of the other member: {0}")]
    Bank(#[from] MapError),
}

/// A member that is reached: the pair, and what its segments are used by.
pub(crate) type Reachable = (Pair, Reached<View, Published>);

/// Connects to a member of a node. Blocks until it has answered.
pub(crate) fn reach(
    domain: &Domain,
    (node, member): (NodeId, MemberNumber),
    own: Hello,
    bell: &Flag,
) -> Result<Reachable, ReachError> {
    let (claims, _, memory) = Published::new("beeline-claims", CLAIMS)?;
    let name = offer_name(node, member);
    let (connection, reply) =
        domain.connect_within(&name, &own.to_bytes(), &[memory.fd().as_fd()], PATIENCE)?;
    let (board, bank) = welcomed(&reply.payload, reply.fds, &domain.disposer())?;
    let peer = connection.peer().clone();
    let other = Other { _rings: peer.watch_rings(bell), peer, _connection: Some(connection) };
    let pair = Pair { other: Some(other), bank: Some(Arc::new(bank)), _words: board.clone() };
    Ok((pair, Reached::Provider { board, claims }))
}

/// What a member has answered, checked.
fn welcomed(
    packet: &[u8],
    fds: Vec<OwnedFd>,
    disposer: &Disposer,
) -> Result<(View, SharedMemory), ReachError> {
    let welcome = Welcome::of(packet)?;
    let [board, bank] = <[OwnedFd; 2]>::try_from(fds).map_err(|fds| {
        let count = fds.len();
        // Closing what a peer has passed may take as long as it likes.
        disposer.dispose(fds);
        ReachError::Descriptors(count)
    })?;
    let bytes = usize::try_from(welcome.bank_bytes).unwrap_or(0);
    Ok((View::of(board, BOARD)?, SharedMemory::from_fd(bank, bytes)?))
}
