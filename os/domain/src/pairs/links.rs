//! The connections of the domain that a process has with those that it shares connections of TCP with: at most one with each.
//!
//! Either process may connect. Where both do at once, the connection of the one with the smaller number stays: it refuses the other,
//! which takes it.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use beeline_mmio::Region;

use super::agreements::{Agreements, Heard, Message, SLOTS, Saying};
use crate::connection_table::ConnectionEnds;
use crate::{Admitted, Connection, Disposer, Notifications, Notified, Peer, PeerId};

/// Messages of one process that are taken in a turn.
const MESSAGES_A_TURN: usize = 64;
/// Messages that wait for a turn, at most: more than an honest process has.
const MAX_INCOMING: usize = 4 * SLOTS as usize;
/// Processes of other users that are let in, at most.
const MAX_OTHERS: usize = 512;
/// How long a process that did not let this one in is left alone.
const LEFT_ALONE: Duration = Duration::from_millis(100);

/// A process that has joined a table of connections: whose table, and under which number. Another user chooses its numbers as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessKey {
    /// The user's, by the kernel's word.
    pub(super) uid: u32,
    pub(super) number: NonZeroU64,
}

#[derive(Debug)]
pub(super) struct Links {
    own: ProcessKey,
    all: BTreeMap<ProcessKey, Link>,
    left_alone: BTreeMap<ProcessKey, Instant>,
    /// Connections of this process that are looked for, by their cookies.
    pub(super) wanted: BTreeMap<u64, Wanted>,
    /// What lets processes of other users in, for the connections of this process whose other end they have, by cookies.
    admitted: BTreeMap<u64, Admitted>,
    wrong: u64,
    without_memory: u64,
    /// Unmaps the memory of links that go, which takes time on the domain's thread and under the lock.
    disposer: Disposer,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) ends: ConnectionEnds,
    /// With whom it is being agreed on.
    pub(super) process: Option<ProcessKey>,
}

/// A process and what is said to it.
#[derive(Debug)]
pub(super) struct Link {
    end: End,
    agreements: Agreements,
    incoming: VecDeque<Message>,
    outgoing: VecDeque<Message>,
}

#[derive(Debug)]
enum End {
    /// A thread is connecting.
    Opening,
    Client(Opened),
    Owner {
        peer: Peer,
        memory: Region,
    },
}

/// A connection to a process that has let this one in.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) notifications: Notifications,
    pub(super) memory: Region,
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

/// How far two processes are.
pub(super) enum Standing {
    /// Nobody has tried, or not for a while.
    None,
    Opening,
    Open,
}

impl Links {
    pub(super) fn new(own: ProcessKey, disposer: Disposer) -> Self {
        let (all, left_alone, wanted) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let admitted = BTreeMap::new();
        Links { own, all, left_alone, wanted, admitted, wrong: 0, without_memory: 0, disposer }
    }

    /// Forgets everybody; what is returned ends the connections when it is dropped.
    pub(super) fn clear(&mut self) -> BTreeMap<ProcessKey, Link> {
        self.wanted.clear();
        self.admitted.clear();
        std::mem::take(&mut self.all)
    }

    /// Processes with which a connection is open, and those to which one is being opened.
    pub(super) fn count(&self) -> (usize, usize) {
        let opening = self.all.values().filter(|link| matches!(link.end, End::Opening)).count();
        (self.all.len() - opening, opening)
    }

    pub(super) fn wrong(&self) -> u64 {
        self.wrong + self.all.values().map(|link| link.agreements.wrong()).sum::<u64>()
    }

    pub(super) fn without_memory(&self) -> u64 {
        self.without_memory
    }

    /// This process could not make or map the memory of a pair.
    pub(super) fn lacks_memory(&mut self) {
        self.without_memory += 1;
    }

    pub(super) fn standing(&mut self, process: ProcessKey) -> Standing {
        match self.all.get(&process) {
            Some(Link { end: End::Opening, .. }) => Standing::Opening,
            Some(_) => Standing::Open,
            None if self.left_alone.get(&process).is_some_and(|until| *until > Instant::now()) => {
                Standing::Opening
            }
            None => Standing::None,
        }
    }

    /// A thread begins to connect to this process.
    pub(super) fn begin(&mut self, process: ProcessKey) {
        self.left_alone.remove(&process);
        self.all.insert(process, Link::new(End::Opening));
    }

    /// The thread that connected has done so, or not. What is not needed is given back.
    pub(super) fn opened(
        &mut self,
        process: ProcessKey,
        opened: Result<Opened, NotOpened>,
    ) -> Option<Opened> {
        let is_awaited = matches!(self.all.get(&process), Some(Link { end: End::Opening, .. }));
        match opened {
            Ok(opened) if is_awaited => {
                self.all.insert(process, Link::new(End::Client(opened)));
                return None;
            }
            Ok(unneeded) => return Some(unneeded),
            Err(NotOpened::Absent) => {}
            Err(NotOpened::WrongMemory) => self.wrong += 1,
            Err(NotOpened::NoRoom) => self.lacks_memory(),
        }
        if is_awaited {
            self.all.remove(&process);
            self.left_alone.insert(process, Instant::now() + LEFT_ALONE);
        }
        None
    }

    /// Another process has connected; `false` where it is to take this one's connection. `memory` is what it gets.
    pub(super) fn let_in(&mut self, process: ProcessKey, peer: &Peer, memory: Region) -> bool {
        let is_free = match self.all.get(&process) {
            None => process.uid == self.own.uid || self.have_room_for_others(),
            // By the numbers alone: of two user namespaces each has uids of its own.
            Some(Link { end: End::Opening, .. }) => process.number < self.own.number,
            Some(link) => link.has_ended(),
        };
        if is_free {
            self.keep(|other, _| *other != process);
            self.all.insert(process, Link::new(End::Owner { peer: peer.clone(), memory }));
        }
        is_free
    }

    /// A process that has connected says something; whether nothing waits before it. One that says more than there can be to say is let go of.
    pub(super) fn told(&mut self, peer: &Peer, message: &[u8]) -> bool {
        let Some(link) = self.all.values_mut().find(|link| link.is_of(peer.id())) else { return false };
        let is_first = link.incoming.is_empty();
        match Message::from_bytes(message) {
            Some(message) if link.incoming.len() < MAX_INCOMING => link.incoming.push_back(message),
            Some(_) => peer.disconnect(),
            None => self.wrong += 1,
        }
        is_first
    }

    pub(super) fn departed(&mut self, peer: &Peer) {
        self.keep(|_, link| !link.is_of(peer.id()));
    }

    fn keep(&mut self, is_kept: impl Fn(&ProcessKey, &Link) -> bool) {
        for (_, link) in self.all.extract_if(.., |process, link| !is_kept(process, link)) {
            self.wrong += link.agreements.wrong();
            match link.end {
                End::Client(Opened { memory, .. }) | End::Owner { memory, .. } => {
                    self.disposer.dispose(memory);
                }
                End::Opening => {}
            }
        }
    }

    /// What others have said, some of each. A process whose answers do not leave is not heard.
    pub(super) fn hear(&mut self) -> Vec<(ProcessKey, Message)> {
        self.keep(|_, link| !link.has_ended());
        let (mut heard, mut wrong) = (Vec::new(), 0);
        for (process, link) in &mut self.all {
            for _ in link.outgoing.len()..MESSAGES_A_TURN {
                match link.next() {
                    Some(Some(message)) => heard.push((*process, message)),
                    Some(None) => wrong += 1,
                    None => break,
                }
            }
        }
        self.wrong += wrong;
        heard
    }

    /// Whether there is something to say that has no room yet, or to hear from who has connected.
    pub(super) fn are_unfinished(&self) -> bool {
        self.all.values().any(|link| !link.outgoing.is_empty() || !link.incoming.is_empty())
    }

    /// Of those that have let this process in and would be heard.
    pub(super) fn notifications(&self) -> Vec<Notifications> {
        let of = |link: &Link| match &link.end {
            End::Client(Opened { notifications, .. }) if link.outgoing.len() < MESSAGES_A_TURN => {
                Some(notifications.clone())
            }
            _ => None,
        };
        self.all.values().filter_map(of).collect()
    }

    /// Memory of free slots that is to be emptied.
    pub(super) fn take_to_empty(&mut self) -> Vec<(ProcessKey, Region, Vec<u32>)> {
        let take = |(process, link): (&ProcessKey, &mut Link)| {
            let slots = link.agreements.take_to_empty();
            let (_, memory) = link.shared()?;
            (!slots.is_empty()).then(|| (*process, memory.clone(), slots))
        };
        self.all.iter_mut().filter_map(take).collect()
    }

    /// What [`Links::take_to_empty`] gave is empty. Where the process has gone meanwhile its memory has, too.
    pub(super) fn emptied(&mut self, process: ProcessKey, slots: Vec<u32>) {
        if let Some(link) = self.all.get_mut(&process) {
            link.agreements.emptied(slots);
        }
    }

    /// Takes a message. `is_shared` is whether this process has the connection of an announcement, by the kernel's word.
    pub(super) fn take(&mut self, process: ProcessKey, message: Message, is_shared: bool) {
        let Some(link) = self.all.get_mut(&process) else { return };
        match link.agreements.hear(message, is_shared) {
            Heard::Reply(reply) => {
                if let Saying::Accept(_) = reply.saying
                    && let Some(wanted) = self.wanted.get_mut(&reply.cookies.own)
                {
                    wanted.process = Some(process);
                }
                link.outgoing.push_back(reply);
            }
            Heard::Wrong(reply) => link.outgoing.extend(reply),
            Heard::Nothing => {}
        }
    }

    /// How far a connection is.
    pub(super) fn talk(&mut self, own_cookie: u64) -> Talk {
        let talk = self.told_of(own_cookie);
        if let Talk::Agreed(_) = talk {
            // Who was let in stays.
            self.admitted.remove(&own_cookie);
        }
        talk
    }

    fn told_of(&self, own_cookie: u64) -> Talk {
        let process = self.wanted.get(&own_cookie).and_then(|wanted| wanted.process);
        let Some(link) = process.and_then(|process| self.all.get(&process)) else { return Talk::None };
        if !link.agreements.knows(own_cookie) {
            return Talk::None;
        }
        match (link.agreements.agreed(own_cookie), link.shared()) {
            (Some((other_cookie, slot)), Some((peer, memory))) => {
                let owns = matches!(link.end, End::Owner { .. });
                let (peer, memory) = (peer.clone(), memory.clone());
                Talk::Agreed(Agreed { peer, other_cookie, slot, owns, memory })
            }
            _ => Talk::UnderWay,
        }
    }

    /// Says that this process has confirmed a connection.
    pub(super) fn announce(&mut self, process: ProcessKey, own_cookie: u64, other_cookie: u64) {
        let (Some(link), Some(wanted)) = (self.all.get_mut(&process), self.wanted.get_mut(&own_cookie))
        else {
            return;
        };
        let cookies = super::agreements::Cookies { own: own_cookie, other: other_cookie };
        link.outgoing.extend(link.agreements.announce(cookies));
        wanted.process = Some(process);
    }

    /// Has `admit` let processes of another user in that has the other end, unless it has, or they have agreed on it.
    pub(super) fn admit(&mut self, own_cookie: u64, admit: impl FnOnce() -> Option<Admitted>) {
        if self.wanted.contains_key(&own_cookie) && !self.admitted.contains_key(&own_cookie) {
            self.admitted.extend(admit().map(|admitted| (own_cookie, admitted)));
        }
    }

    /// Each of them has a mapped memory here, whatever it does with it.
    fn have_room_for_others(&self) -> bool {
        self.all.keys().filter(|process| process.uid != self.own.uid).count() < MAX_OTHERS
    }

    pub(super) fn release(&mut self, own_cookie: u64) {
        self.admitted.remove(&own_cookie);
        let Some(Wanted { process: Some(process), .. }) = self.wanted.remove(&own_cookie) else { return };
        if let Some(link) = self.all.get_mut(&process) {
            link.outgoing.extend(link.agreements.release(own_cookie));
        }
    }

    /// Sends what there is to say, as long as there is room.
    pub(super) fn flush(&mut self) {
        for link in self.all.values_mut() {
            while let Some(message) = link.outgoing.front()
                && link.send(*message)
            {
                link.outgoing.pop_front();
            }
        }
    }
}

/// How far two processes are with a connection.
pub(super) enum Talk {
    None,
    UnderWay,
    Agreed(Agreed),
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
}

impl Link {
    fn new(end: End) -> Self {
        let agreements = Agreements::new(matches!(end, End::Owner { .. }));
        Link { end, agreements, incoming: VecDeque::new(), outgoing: VecDeque::new() }
    }

    /// The other process, and the memory that it shares with this one.
    fn shared(&self) -> Option<(&Peer, &Region)> {
        match &self.end {
            End::Opening => None,
            End::Client(Opened { connection, memory, .. }) => Some((connection.peer(), memory)),
            End::Owner { peer, memory } => Some((peer, memory)),
        }
    }

    fn has_ended(&self) -> bool {
        self.shared().is_some_and(|(peer, _)| peer.departure().is_some())
    }

    fn is_of(&self, id: PeerId) -> bool {
        matches!(&self.end, End::Owner { peer, .. } if peer.id() == id)
    }

    /// Takes what was said next; `Some(None)` where that has no meaning.
    fn next(&mut self) -> Option<Option<Message>> {
        match &self.end {
            End::Opening => None,
            End::Owner { .. } => self.incoming.pop_front().map(Some),
            // What ends them ends the peer.
            End::Client(Opened { notifications, .. }) => {
                let told = notifications.try_next().ok()??;
                Some(Message::from_bytes(&told.payload))
            }
        }
    }

    /// Whether a message has been sent, or there is nobody to send it to.
    fn send(&self, message: Message) -> bool {
        let bytes = message.to_bytes();
        let sent = match &self.end {
            End::Opening => return false,
            End::Owner { peer, .. } => peer.notify(&bytes, &[]),
            End::Client(Opened { connection, .. }) => connection.tell(&bytes),
        };
        sent != Ok(Notified::WouldBlock)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::OwnedFd;
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::{Answer, Domain, DomainConfig, Refusal, Reply, Service};

    /// Tells who connects.
    struct Peers(Sender<Peer>);

    impl Service for Peers {
        fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            let _ = self.0.send(peer.clone());
            Ok(Reply::default().into())
        }

        fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Err(Refusal::new("nothing"))
        }

        fn departed(&mut self, _: &Peer) {}
    }

    #[test]
    fn where_both_connect_the_connection_of_the_smaller_number_stays() {
        let dir = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "d".to_owned() };
        let domain = Domain::open(&config).unwrap();
        let (peers, connected) = channel();
        let _offer = domain.offer("name", Box::new(Peers(peers))).unwrap();
        let connect = || {
            let (connection, _) = domain.connect("name", b"", &[]).unwrap();
            let notifications = connection.notifications().unwrap();
            let memory = Region::private(64);
            (Ok(Opened { connection, notifications, memory }), connected.recv().unwrap())
        };
        let [smaller, own, larger] =
            [3, 5, 7].map(|number| ProcessKey { uid: 0, number: NonZeroU64::new(number).unwrap() });
        let mut links = Links::new(own, Disposer::default());
        for other in [smaller, larger] {
            links.begin(other);
        }
        let (to_smaller, peer) = connect();
        let let_in = |links: &mut Links, process| links.let_in(process, &peer, Region::private(64));
        assert!(let_in(&mut links, smaller));
        assert!(links.opened(smaller, to_smaller).is_some(), "it is given back");
        let (to_larger, peer) = connect();
        let let_in = |links: &mut Links, process| links.let_in(process, &peer, Region::private(64));
        assert!(!let_in(&mut links, larger));
        assert!(links.opened(larger, to_larger).is_none());
        assert_eq!(links.count(), (2, 0));
        assert!(!let_in(&mut links, larger), "there is one");
        // One who let nobody in may come in itself.
        links.clear();
        links.begin(larger);
        assert!(links.opened(larger, Err(NotOpened::Absent)).is_none());
        assert!(let_in(&mut links, larger));
    }
}
