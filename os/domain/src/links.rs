//! The connections of a domain, as its background thread sees them: who is there, and when somebody goes.
//!
//! Every connection has two descriptors in the thread's epoll: its socket and the pidfd of the process at its other
//! end. Both are taken out by hand when the connection ends: a forked child may hold copies, which would keep them in.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::Peer;
use crate::channel::Channel;
use crate::evidence::Evidence;
use crate::mailbox::Mailbox;
use crate::outbox;

/// What a connection without a goodbye is given to turn out as a death: a dying process closes its sockets shortly
/// before its pidfd tells. After that it is a live process that closed its end without a word, as exec does.
const HANG_UP_GRACE: Duration = Duration::from_secs(1);

/// What an event is about: two bits of its token, the rest is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The thread's inbox.
    Inbox,
    /// The listening socket of an offer.
    Listener(u64),
    /// The socket of a connection.
    Socket(u64),
    /// The pidfd of the process at a connection's other end.
    Process(u64),
}

impl Source {
    pub(crate) fn token(self) -> EventData {
        EventData::new_u64(match self {
            Source::Inbox => 0,
            Source::Listener(number) => number << 2 | 1,
            Source::Socket(number) => number << 2 | 2,
            Source::Process(number) => number << 2 | 3,
        })
    }

    pub(crate) fn from_token(token: EventData) -> Self {
        let number = token.u64() >> 2;
        match token.u64() & 3 {
            0 => Source::Inbox,
            1 => Source::Listener(number),
            2 => Source::Socket(number),
            _ => Source::Process(number),
        }
    }
}

/// Which half of the protocol a connection speaks.
#[derive(Debug)]
pub(crate) enum Role {
    /// A client of the offer of this number.
    Served(u64),
    /// The owner of an offer that this process connected to.
    Client(Arc<Mailbox>),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub channel: Arc<Channel>,
    pub evidence: Arc<Evidence>,
    pub role: Role,
    /// Known from the other side's first packet on.
    pub peer: Option<Peer>,
    /// When the connection is given up: no first packet, or nothing but a hang-up, until then.
    pub deadline: Option<Instant>,
    /// Whether the socket has hung up and was taken out of the epoll.
    hung_up: bool,
}

/// All connections, and the epoll they are watched by.
#[derive(Debug)]
pub(crate) struct Links {
    epoll: Arc<OwnedFd>,
    links: HashMap<u64, Link>,
    next: u64,
}

impl Links {
    pub(crate) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Links { epoll: Arc::new(epoll), links: HashMap::new(), next: 1 })
    }

    pub(crate) fn epoll(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Watches a connection; gives it a number.
    pub(crate) fn insert(
        &mut self,
        channel: Arc<Channel>,
        evidence: Arc<Evidence>,
        role: Role,
        deadline: Option<Instant>,
    ) -> Result<u64, Errno> {
        let number = self.next;
        let source = Source::Socket(number);
        epoll::add(&self.epoll, channel.fd(), source.token(), outbox::ALWAYS)?;
        channel.outbox().watched_by(Arc::clone(&self.epoll), source.token().u64());
        if let Err(error) =
            epoll::add(&self.epoll, evidence.pidfd(), Source::Process(number).token(), EventFlags::IN)
        {
            let _ = epoll::delete(&self.epoll, channel.fd());
            return Err(error);
        }
        self.next += 1;
        self.links.insert(number, Link { channel, evidence, role, peer: None, deadline, hung_up: false });
        Ok(number)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Link> {
        self.links.get_mut(&number)
    }

    /// Stops watching a connection and shuts it down for every copy of its socket.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Link> {
        let link = self.links.remove(&number)?;
        if !link.hung_up {
            let _ = epoll::delete(&self.epoll, link.channel.fd());
        }
        let _ = epoll::delete(&self.epoll, link.evidence.pidfd());
        link.channel.close();
        Some(link)
    }

    /// The socket has hung up without a goodbye while the process lives: no more events from it, and a deadline.
    pub(crate) fn hung_up(&mut self, number: u64, now: Instant) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if !link.hung_up {
            let _ = epoll::delete(&self.epoll, link.channel.fd());
            link.hung_up = true;
            link.deadline = Some(now + HANG_UP_GRACE);
        }
    }

    /// The connections whose deadline has passed.
    pub(crate) fn expired(&self, now: Instant) -> Vec<u64> {
        let late = |link: &Link| link.deadline.is_some_and(|deadline| deadline <= now);
        self.links.iter().filter(|(_, link)| late(link)).map(|(number, _)| *number).collect()
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.links.values().filter_map(|link| link.deadline).min()
    }

    /// The connections of one offer, oldest first, each with whether it has said something.
    pub(crate) fn of_offer(&self, offer: u64) -> Vec<(u64, bool)> {
        let served = |link: &Link| matches!(link.role, Role::Served(number) if number == offer);
        let mut found: Vec<_> = self
            .links
            .iter()
            .filter(|(_, link)| served(link))
            .map(|(n, link)| (*n, link.peer.is_some()))
            .collect();
        found.sort_unstable();
        found
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.links.keys().copied().collect()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        for source in [Source::Inbox, Source::Listener(0), Source::Socket(7), Source::Process(1 << 60)] {
            assert_eq!(Source::from_token(source.token()), source);
        }
    }
}
