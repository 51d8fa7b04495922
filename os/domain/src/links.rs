//! The connections of a domain, as its background thread sees them: who is there, and when somebody goes.
//!
//! Every connection has two descriptors: its socket in the thread's epoll, and the pidfd of the process at its other end in a
//! second one within the first, so that deaths can be asked for at any time, before whatever else there is. Both are taken
//! out by hand when the connection ends: a forked child may hold copies, which would keep them in.

use std::collections::HashMap;
use std::os::fd::{AsFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::Peer;
use crate::channel::Channel;
use crate::descriptor::{Descriptor, Watching};
use crate::evidence::Evidence;
use crate::mailbox::Mailbox;
use crate::numbers::{Purpose, lowest};
use crate::outbox;
use crate::shares::Process;

/// What a connection without a goodbye is given to turn out as a death, where nothing shows that its process runs: a dying
/// process closes its sockets shortly before its pidfd tells. After that it is a live process that closed its end without
/// a word, as exec does.
pub(crate) const HANG_UP_GRACE: Duration = Duration::from_secs(1);

/// Deaths taken at a time.
const DEATHS: usize = 64;

/// What an event is about: two bits of its token, the rest is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The thread's inbox.
    Inbox,
    /// The listening socket of an offer.
    Listener(u64),
    /// The socket of a connection.
    Socket(u64),
    /// The epoll of the pidfds.
    Deaths,
}

impl Source {
    pub(crate) fn token(self) -> EventData {
        EventData::new_u64(match self {
            Source::Inbox => 0,
            Source::Listener(number) => number << 2 | 1,
            Source::Socket(number) => number << 2 | 2,
            Source::Deaths => 3,
        })
    }

    pub(crate) fn from_token(token: EventData) -> Self {
        let number = token.u64() >> 2;
        match token.u64() & 3 {
            0 => Source::Inbox,
            1 => Source::Listener(number),
            2 => Source::Socket(number),
            _ => Source::Deaths,
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
    /// Of a client, known from its first packet on.
    pub peer: Option<Peer>,
    /// When the connection is given up: no first packet, or nothing but a hang-up, until then.
    pub deadline: Option<Instant>,
    /// Whether a client has to show a secret before anything else is heard of it.
    pub must_prove: bool,
    /// Whether an answer of it is being worked on. Meanwhile nothing more is read.
    pub is_busy: bool,
    /// Whether the socket has hung up.
    hung_up: bool,
    /// Whether the socket is in the epoll.
    is_watched: bool,
}

/// A connection of an offer.
pub(crate) struct Present {
    pub number: u64,
    pub process: Process,
    pub has_spoken: bool,
    /// Whether it is kept only until it is known how it ended.
    pub has_hung_up: bool,
}

/// All connections, and the epoll they are watched by.
#[derive(Debug)]
pub(crate) struct Links {
    epoll: Arc<Descriptor>,
    wake: Arc<Descriptor>,
    /// The pidfds.
    deaths: Arc<Descriptor>,
    links: HashMap<u64, Link>,
}

/// What a domain's thread waits on, shared with whoever has it wait for more.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) epoll: Arc<Descriptor>,
    /// What makes the epoll ready for [`Source::Inbox`].
    pub(crate) wake: Arc<Descriptor>,
    deaths: Arc<Descriptor>,
}

impl Waits {
    /// Has the thread told of what a connection says and when its process ends.
    pub(crate) fn watch(&self, number: u64, link: &Link) -> Result<(), Errno> {
        let (channel, token) = (&link.channel, Source::Socket(number).token());
        channel.outbox().watched_by(&self.epoll, channel.fd().as_fd(), token.u64())?;
        let (process, token) = (link.evidence.pidfd().hold(), EventData::new_u64(number));
        epoll::add(self.deaths.hold(), process, token, EventFlags::IN).inspect_err(|_| {
            let _ = epoll::delete(self.epoll.hold(), channel.fd());
        })
    }
}

impl Link {
    pub(crate) fn new(channel: Arc<Channel>, evidence: Arc<Evidence>, role: Role) -> Self {
        Link {
            channel,
            evidence,
            role,
            peer: None,
            deadline: None,
            must_prove: false,
            is_busy: false,
            hung_up: false,
            is_watched: true,
        }
    }
}

impl Link {
    /// What nobody else has of it, if there is anything: whoever has the rest drops that.
    pub(crate) fn into_last(self) -> Option<impl Send + use<>> {
        let Link { channel, evidence, role, peer, .. } = self;
        // The peer first: it has the others, too.
        let peer = peer.and_then(Peer::into_last);
        let mailbox = match role {
            Role::Client(mailbox) => Arc::into_inner(mailbox),
            Role::Served(_) => None,
        };
        let (channel, evidence) = (Arc::into_inner(channel), Arc::into_inner(evidence));
        let is_any = peer.is_some() || mailbox.is_some() || channel.is_some() || evidence.is_some();
        is_any.then_some((peer, mailbox, channel, evidence))
    }
}

impl Links {
    pub(crate) fn new() -> Result<Self, Errno> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let wake = Arc::new(Descriptor::new(wake, Purpose::Event));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let epoll = Arc::new(Descriptor::epoll(epoll, &wake, Source::Inbox.token().u64())?);
        let deaths = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let deaths = Descriptor::watched(deaths, Purpose::Epoll, &epoll, Source::Deaths.token().u64())?;
        Ok(Links { epoll, wake, deaths: Arc::new(deaths), links: HashMap::new() })
    }

    pub(crate) fn epoll(&self) -> &Descriptor {
        &self.epoll
    }

    /// Whether other code of this process closed or replaced what the domain's thread waits on.
    pub(crate) fn is_lost(&self) -> bool {
        !(self.epoll.is_ours() && self.deaths.is_ours())
    }

    pub(crate) fn waits(&self) -> Waits {
        let (epoll, wake) = (Arc::clone(&self.epoll), Arc::clone(&self.wake));
        Waits { epoll, wake, deaths: Arc::clone(&self.deaths) }
    }

    /// Gives every descriptor a number of at least `lowest`; the first that could not have one is the error.
    pub(crate) fn move_above(&self, lowest: RawFd) -> Result<(), Errno> {
        let by = &*self.epoll;
        let watching = |source: Source| Watching { by, token: source.token(), flags: EventFlags::IN };
        let own = [
            self.epoll.move_above(lowest, None),
            self.wake.move_above(lowest, Some(&watching(Source::Inbox))),
            self.deaths.move_above(lowest, Some(&watching(Source::Deaths))),
        ];
        let links = self.links.iter().map(|(number, link)| self.move_link(*number, link, lowest));
        own.into_iter().chain(links).fold(Ok(()), Result::and)
    }

    fn move_link(&self, number: u64, link: &Link, lowest: RawFd) -> Result<(), Errno> {
        let (token, flags) = (EventData::new_u64(number), EventFlags::IN);
        let process =
            link.evidence.pidfd().move_above(lowest, Some(&Watching { by: &self.deaths, token, flags }));
        link.channel.move_above(lowest, link.is_watched.then_some(&*self.epoll)).and(process)
    }

    /// Connections whose process has ended, some at a time. It never waits.
    pub(crate) fn dead(&self) -> Vec<u64> {
        let Ok(deaths) = self.deaths.check() else { return Vec::new() };
        let mut events = Vec::with_capacity(DEATHS);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An error is a signal, or what the wait for everything will find too.
        let _ = epoll::wait(deaths, spare_capacity(&mut events), Some(&now));
        // A pidfd that other code closed cannot be taken out while a forked child holds a copy, and is told of for ever.
        let numbers = events.iter().map(|event| event.data.u64());
        numbers.filter(|number| self.links.contains_key(number)).collect()
    }

    /// Takes in a connection that is watched under this number ([`Waits::watch`]).
    pub(crate) fn insert(&mut self, number: u64, link: Link) {
        // One that was opened before the others were moved may come after them. Where no number is free it stays as it is.
        let lowest = lowest();
        if lowest > 0 {
            let _ = self.move_link(number, &link, lowest);
        }
        self.links.insert(number, link);
    }

    /// Reads nothing more of a connection, until [`Links::resume`]: an answer of it is being worked on. What waits for room in
    /// its socket is passed on all the same.
    pub(crate) fn pause(&mut self, number: u64) {
        let Some(link) = self.links.get_mut(&number) else { return };
        link.is_busy = true;
        link.channel.outbox().await_packets(link.channel.fd().as_fd(), false);
    }

    /// Reads a connection again. Fails when this process lacks memory.
    pub(crate) fn resume(&mut self, number: u64) -> Result<(), Errno> {
        let Some(link) = self.links.get_mut(&number) else { return Ok(()) };
        link.is_busy = false;
        if !link.is_watched && !link.hung_up {
            epoll::add(self.epoll.hold(), link.channel.fd(), Source::Socket(number).token(), outbox::ALWAYS)?;
            link.is_watched = true;
        }
        link.channel.outbox().await_packets(link.channel.fd().as_fd(), true);
        Ok(())
    }

    /// Takes a connection's socket out of the epoll; [`Links::resume`] puts it back.
    pub(crate) fn unwatch(&mut self, number: u64) {
        if let Some(link) = self.links.get_mut(&number)
            && std::mem::take(&mut link.is_watched)
        {
            let _ = epoll::delete(self.epoll.hold(), link.channel.fd());
        }
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Link> {
        self.links.get_mut(&number)
    }

    /// Stops watching a connection and shuts it down for every copy of its socket.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Link> {
        let link = self.links.remove(&number)?;
        if link.is_watched {
            let _ = epoll::delete(self.epoll.hold(), link.channel.fd());
        }
        let _ = epoll::delete(self.deaths.hold(), link.evidence.pidfd().hold());
        link.channel.close();
        Some(link)
    }

    /// The socket has hung up without a goodbye while the process lives: no more events from it, and a deadline.
    pub(crate) fn hung_up(&mut self, number: u64, now: Instant) {
        let Some(link) = self.links.get_mut(&number) else { return };
        if !link.hung_up {
            link.hung_up = true;
            link.deadline = Some(now + HANG_UP_GRACE);
            self.unwatch(number);
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

    /// The connections of one offer, oldest first.
    pub(crate) fn of_offer(&self, offer: u64) -> Vec<Present> {
        let served = |link: &Link| matches!(link.role, Role::Served(number) if number == offer);
        let present = |(number, link): (&u64, &Link)| Present {
            number: *number,
            process: Process { pid: link.evidence.pid(), uid: link.evidence.uid() },
            has_spoken: link.peer.is_some(),
            has_hung_up: link.hung_up,
        };
        let mut found: Vec<_> = self.links.iter().filter(|(_, link)| served(link)).map(present).collect();
        found.sort_unstable_by_key(|present| present.number);
        found
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.links.keys().copied().collect()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn death_without_a_connection_is_passed_over() {
        let links = Links::new().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        epoll::add(links.deaths.hold(), &pidfd, EventData::new_u64(7), EventFlags::IN).unwrap();
        assert_eq!(links.dead(), [0; 0]);
    }

    #[test]
    fn pidfd_that_has_moved_is_watched_under_its_new_number() {
        let mut links = Links::new().unwrap();
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let evidence = Arc::new(Evidence::of_peer(socket.as_fd()).unwrap());
        let channel = Arc::new(Channel::new(socket.into(), crate::channel::End::Owner));
        let (number, link) = (1, Link::new(channel, Arc::clone(&evidence), Role::Served(1)));
        links.waits().watch(number, &link).unwrap();
        links.insert(number, link);
        links.move_above(700).unwrap();
        // Under no other number can it be taken out while a forked child holds a copy.
        let token = EventData::new_u64(number);
        epoll::modify(links.deaths.hold(), evidence.pidfd().hold(), token, EventFlags::IN).unwrap();
    }

    #[test]
    fn tokens_come_back() {
        for source in [Source::Inbox, Source::Listener(0), Source::Socket(1 << 60), Source::Deaths] {
            assert_eq!(Source::from_token(source.token()), source);
        }
    }
}
