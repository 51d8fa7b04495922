//! A pair: what this process has with another member in one direction.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use beeline_domain::{ConnectError, Connection, Disposer, Domain, Peer, RingWatch};
use beeline_fabric::{MemberNumber, NodeId, Reached};
use beeline_mmio::{Flag, MapError, SharedMemory};
use rustix::fs::fcntl_get_seals;

use crate::bell::Bells;
use crate::interrupts::gear::Gear;
use crate::interrupts::inbox::User;
use crate::names::offer_name;
use crate::packets::{Hello, PacketError, Welcome, Who};
use crate::words::{BOARD, CLAIMS, Published, View, WordsError};
use crate::yard::Yard;

/// How long a member may take to answer. One that is stopped never does; whoever connects to its segments waits so long.
/// A unit test is not to end by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1000 } else { 5 });

/// A member that this one uses, or is used by.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The other process; `None` if it is this one.
    other: Option<Other>,
    side: Side,
}

/// Which of the two this process is.
#[derive(Debug)]
enum Side {
    /// It uses the other member.
    Using {
        bank: Arc<SharedMemory>,
        gear: Arc<Gear>,
        /// Keeps the mapping of the other side's board, which is to be dropped where this is.
        _board: View,
    },
    /// The other member uses this one's segments and interrupts.
    Used(Arc<User>),
}

#[derive(Debug)]
struct Other {
    // Before what it watches.
    _rings: [RingWatch; 2],
    peer: Peer,
    /// Of who uses the other member.
    connection: Option<Arc<Connection>>,
}

impl Pair {
    /// Both directions with this process itself: as the one that is used, and as the one that uses.
    pub(crate) fn with_itself(
        user: Arc<User>,
        bank: Arc<SharedMemory>,
        gear: Gear,
        board: View,
    ) -> [Self; 2] {
        let using = Side::Using { bank, gear: Arc::new(gear), _board: board };
        [Side::Used(user), using].map(|side| Pair { other: None, side })
    }

    /// With a member that uses this one's segments and interrupts. Its rings wake who sleeps on `bells`.
    pub(crate) fn of_consumer(peer: &Peer, user: User, bells: [&Flag; 2]) -> Self {
        let rings = bells.map(|bell| peer.watch_rings(bell));
        let other = Other { _rings: rings, peer: peer.clone(), connection: None };
        Pair { other: Some(other), side: Side::Used(Arc::new(user)) }
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

    /// The user of the other process, if that is another one than this process's.
    pub(crate) fn other_user(&self) -> Option<u32> {
        other_user(self.peer()?)
    }

    /// The connection to a member that is used, over which it can be asked; `None` if that is this process.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        self.other.as_ref()?.connection.as_ref()
    }

    /// The bank of a member that is used. Nobody has that of another user's.
    pub(crate) fn bank(&self) -> Option<&Arc<SharedMemory>> {
        match &self.side {
            Side::Using { bank, .. } if self.other_user().is_none() => Some(bank),
            Side::Using { .. } | Side::Used(_) => None,
        }
    }

    /// What interrupts of a member that is used are triggered with.
    pub(crate) fn gear(&self) -> Option<&Arc<Gear>> {
        match &self.side {
            Side::Using { gear, .. } => Some(gear),
            Side::Used(_) => None,
        }
    }

    /// A member that uses this one.
    pub(crate) fn user(&self) -> Option<&Arc<User>> {
        match &self.side {
            Side::Used(user) => Some(user),
            Side::Using { .. } => None,
        }
    }
}

/// The user of a process, if that is another one than this process's.
pub(crate) fn other_user(peer: &Peer) -> Option<u32> {
    (peer.uid() != rustix::process::geteuid().as_raw()).then(|| peer.uid())
}

/// Why a member is not reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReachError {
    #[error("its domain is of another user, who does not let this one in")]
    Closed,
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error(transparent)]
    Descriptors(#[from] NotMemories),
    #[error(transparent)]
    Words(#[from] WordsError),
    #[error("the bank of the other member: {0}")]
    Bank(#[from] MapError),
}

/// A member that is reached: the pair, and what its segments are used by.
pub(crate) type Reachable = (Pair, Reached<View, Published>);

/// Connects to a member of a node. Blocks until it has answered, or `is_wanted` says that nobody waits for that any more.
pub(crate) fn reach(
    domain: &Domain,
    (node, member): (NodeId, MemberNumber),
    own: Who,
    (rung, is_wanted): ([&Flag; 2], &dyn Fn() -> bool),
) -> Result<Reachable, ReachError> {
    let (claims, _, memory) = Published::new("beeline-claims", CLAIMS)?;
    let (yard, yard_memory) = Yard::create()?;
    let name = offer_name(node, member);
    let hello = Hello { who: own, yard_bytes: yard_memory.bytes() as u64 };
    let passed = [memory.fd(), yard_memory.fd()];
    let (connection, reply) =
        domain.connect_while(&name, &hello.to_bytes(), &passed, (PATIENCE, is_wanted))?;
    let (board, bank, bells) = welcomed(&reply.payload, reply.fds, &domain.disposer())?;
    let peer = connection.peer().clone();
    let rings = rung.map(|bell| peer.watch_rings(bell));
    let other = Other { _rings: rings, peer, connection: Some(Arc::new(connection)) };
    let gear = Arc::new(Gear::new(member, bells, yard));
    let side = Side::Using { bank: Arc::new(bank), gear, _board: board.clone() };
    let pair = Pair { other: Some(other), side };
    Ok((pair, Reached::Provider { board, claims }))
}

/// What a member has answered, checked.
fn welcomed(
    packet: &[u8],
    fds: Vec<OwnedFd>,
    disposer: &Disposer,
) -> Result<(View, SharedMemory, Bells), ReachError> {
    let [board, bank, bells] = memories(fds, "a board, a bank and bells", disposer)?;
    let welcome = Welcome::of(packet)?;
    let bytes = usize::try_from(welcome.bank_bytes).unwrap_or(0);
    Ok((View::of(board, BOARD)?, SharedMemory::from_fd(bank, bytes)?, Bells::of(bells)?))
}

/// Why what another member has passed is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotMemories {
    #[error("the other member has passed {has} descriptors, and not {wanted}")]
    Count { has: usize, wanted: &'static str },
    #[error("the other member has passed a descriptor that is of no memory")]
    Other,
}

/// Descriptors that another member has passed, all of them of memory, which is closed at once. Closing anything else may take as long as its
/// sender likes (a file system in a program, a socket), so that is done elsewhere.
pub(crate) fn memories<const COUNT: usize>(
    fds: Vec<OwnedFd>,
    wanted: &'static str,
    disposer: &Disposer,
) -> Result<[OwnedFd; COUNT], NotMemories> {
    // Only memory has seals; the kernel knows without asking anybody.
    if fds.iter().any(|fd| fcntl_get_seals(fd).is_err()) {
        disposer.dispose(fds);
        return Err(NotMemories::Other);
    }
    <[OwnedFd; COUNT]>::try_from(fds).map_err(|fds| NotMemories::Count { has: fds.len(), wanted })
}
