//! One process that this one shares connections with: how they are connected, what they have agreed on, and what they say.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;

use beeline_mmio::Region;

use super::agreements::Agreements;
use super::said::Said;
use crate::{Connection, Notifications, Notified, Peer, PeerId, Ringer};

/// A process that has joined a table of connections: whose table, and under which number. Another user chooses its numbers as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessKey {
    /// The user's, by the kernel's word.
    pub(super) uid: u32,
    pub(super) number: NonZeroU64,
}

/// A process and what is said to it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) end: End,
    pub(super) agreements: Agreements,
    pub(super) incoming: VecDeque<Said>,
    pub(super) outgoing: VecDeque<Said>,
}

#[derive(Debug)]
pub(super) enum End {
    /// A thread is connecting.
    Opening,
    Client(Opened),
    Owner {
        peer: Peer,
        memory: Region,
        ringer: Option<Arc<Ringer>>,
    },
}

/// A connection to a process that has let this one in.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) notifications: Notifications,
    pub(super) memory: Region,
    /// What rings bells of a process in another network namespace; it has handed that out.
    pub(super) ringer: Option<Arc<Ringer>>,
}

/// Why a connection was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotOpened {
    /// Nobody is there, or it lets nobody in.
    Absent,
    /// The owner handed out what is not the pair's memory.
    WrongMemory,
    /// This process has no room for the memory.
    NoRoom,
}

/// What two processes have agreed on for a connection.
#[derive(Clone, Debug)]
pub struct Agreed {
    /// The process at the other end.
    pub peer: Peer,
    /// The cookie of the socket at the other end (`SO_COOKIE`), which both processes have confirmed.
    pub other_cookie: u64,
    /// No other connection of the two processes has it until both have released this one.
    pub slot: u32,
    /// Whether this process owns the connection of the domain between the two; the other one has connected.
    pub owns: bool,
    /// The memory that the two processes share, of the size that both have asked for, and zero before anybody writes there. The other
    /// process writes any bytes at any time. It is unmapped when the connection between the two has ended and the last clone is gone.
    pub memory: Region,
    /// What rings the other process's bells, where that is in another network namespace; none where every [`Ringer`] of this process does.
    pub ringer: Option<Arc<Ringer>>,
}

impl Link {
    pub(super) fn new(end: End) -> Self {
        let agreements = Agreements::new(matches!(end, End::Owner { .. }));
        Link { end, agreements, incoming: VecDeque::new(), outgoing: VecDeque::new() }
    }

    /// The other process, and the memory that it shares with this one.
    pub(super) fn shared(&self) -> Option<(&Peer, &Region)> {
        match &self.end {
            End::Opening => None,
            End::Client(Opened { connection, memory, .. }) => Some((connection.peer(), memory)),
            End::Owner { peer, memory, .. } => Some((peer, memory)),
        }
    }

    /// What rings the bells of a process in another network namespace.
    pub(super) fn ringer(&self) -> Option<Arc<Ringer>> {
        match &self.end {
            End::Opening => None,
            End::Client(Opened { ringer, .. }) | End::Owner { ringer, .. } => ringer.clone(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.shared().is_some_and(|(peer, _)| peer.departure().is_some())
    }

    /// Ends the connection of one who has connected; that to an owner ends when it is dropped.
    pub(super) fn is_let_go(&self) -> bool {
        if let End::Owner { peer, .. } = &self.end {
            peer.disconnect();
        }
        true
    }

    pub(super) fn is_of(&self, id: PeerId) -> bool {
        matches!(&self.end, End::Owner { peer, .. } if peer.id() == id)
    }

    /// Takes what was said next; `Some(None)` where that has no meaning.
    pub(super) fn next(&mut self) -> Option<Option<Said>> {
        match &self.end {
            End::Opening => None,
            End::Owner { .. } => self.incoming.pop_front().map(Some),
            // What ends them ends the peer.
            End::Client(Opened { notifications, .. }) => {
                let told = notifications.try_next().ok()??;
                Some(Said::from_bytes(&told.payload))
            }
        }
    }

    /// Says what there is to say, as long as there is room.
    pub(super) fn flush(&mut self) {
        while let Some(said) = self.outgoing.front()
            && self.send(*said)
        {
            self.outgoing.pop_front();
        }
    }

    /// Whether a message has been sent, or there is nobody to send it to.
    pub(super) fn send(&self, said: Said) -> bool {
        let bytes = said.to_bytes();
        let sent = match &self.end {
            End::Opening => return false,
            End::Owner { peer, .. } => peer.notify(&bytes, &[]),
            End::Client(Opened { connection, .. }) => connection.tell(&bytes),
        };
        sent != Ok(Notified::WouldBlock)
    }
}
