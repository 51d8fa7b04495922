//! The connections of the domain that a process has with those that it shares connections of TCP with: at most one with each.
//!
//! Either process may connect. Where both do at once, the connection of the one with the smaller number stays: it refuses the other,
//! which takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_mmio::Region;

use super::agreements::{Cookies, Heard, Message, SLOTS, Saying};
use super::claims::Claims;
use super::link::{Agreed, End, Link, NotOpened, Opened, ProcessKey};
use super::said::{Claim, Said};
use crate::connection_table::ConnectionEnds;
use crate::{Admitted, Disposer, Notifications, Peer, Ringer};

/// Messages of one process that are taken in a turn.
const MESSAGES_A_TURN: usize = 64;
/// Messages that wait for a turn, at most: more than an honest process has.
const MAX_INCOMING: usize = 4 * SLOTS as usize;
/// Processes of other users with which there is a connection of the domain, or is being made one, at most: of all of them, and of one.
const MAX_OTHERS: usize = 256;
const MAX_OF_USER: usize = 128;
/// Other users with processes among those, at most: for each there is a thread here.
pub(super) const MAX_USERS: usize = 16;
/// Threads that connect at the same time: each may meet a process that is stopped. Those to other users, and to one of them, take no place of the own user's.
const MAX_OPENING: usize = 8;
const MAX_OPENING_TO_OTHERS: usize = 4;
const MAX_OPENING_TO_USER: usize = 2;
/// What a process of another user may say that cannot be; more ends its connection, since each has cost a question to the kernel.
const MAX_WRONG: u64 = 64;
/// How long a process that did not let this one in is left alone.
const LEFT_ALONE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Links {
    own: ProcessKey,
    all: BTreeMap<ProcessKey, Link>,
    left_alone: BTreeMap<ProcessKey, Instant>,
    /// Connections of this process that are looked for, by their cookies.
    pub(super) wanted: BTreeMap<u64, Wanted>,
    /// Of those between hosts, what others say of their other ends.
    claims: Claims,
    /// What lets processes of other users in, for the connections of this process whose other end they have, by cookies.
    admitted: BTreeMap<u64, Admitted>,
    wrong: u64,
    without_memory: u64,
    /// Processes with which a connection was opened, and connections that others have agreed on, that nobody was told of yet.
    news: usize,
    /// Unmaps the memory of links that go, which takes time on the domain's thread and under the lock.
    disposer: Disposer,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) ends: ConnectionEnds,
    /// With whom it is being agreed on.
    pub(super) process: Option<ProcessKey>,
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
        let (claims, admitted) = (Claims::default(), BTreeMap::new());
        let (wrong, without_memory, news) = (0, 0, 0);
        Links { own, all, left_alone, wanted, claims, admitted, wrong, without_memory, news, disposer }
    }

    /// Forgets everybody; what is returned ends the connections when it is dropped.
    pub(super) fn clear(&mut self) -> BTreeMap<ProcessKey, Link> {
        self.wanted.clear();
        self.claims.clear();
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
                self.news += 1;
                return None;
            }
            Ok(unneeded) => return Some(unneeded),
            Err(NotOpened::Absent) => {}
            Err(NotOpened::WrongMemory) => self.wrong += 1,
            Err(NotOpened::NoRoom) => self.lacks_memory(),
        }
        if is_awaited {
            self.all.remove(&process);
            let now = Instant::now();
            // Another user names as many processes as it likes.
            self.left_alone.retain(|_, until| *until > now);
            self.left_alone.insert(process, now + LEFT_ALONE);
        }
        None
    }

    /// Has something dropped on another thread.
    pub(super) fn dispose(&self, thing: impl Send + 'static) {
        self.disposer.dispose(thing);
    }

    /// Another process has connected; `false` where it is to take this one's connection. `memory` is what it gets, and `ringer` what it gave.
    pub(super) fn let_in(
        &mut self,
        process: ProcessKey,
        peer: &Peer,
        memory: Region,
        ringer: Option<Arc<Ringer>>,
    ) -> bool {
        let is_free = self.may_come(process);
        if is_free {
            self.keep(|other, _| *other != process);
            self.all.insert(process, Link::new(End::Owner { peer: peer.clone(), memory, ringer }));
            self.news += 1;
        } else {
            self.disposer.dispose((memory, ringer));
        }
        is_free
    }

    /// Whether another process that connects now would be let in.
    pub(super) fn may_come(&self, process: ProcessKey) -> bool {
        match self.all.get(&process) {
            None => self.have_room_for(process),
            // By the numbers alone: of two user namespaces each has uids of its own.
            Some(Link { end: End::Opening, .. }) => process.number < self.own.number,
            Some(link) => link.has_ended(),
        }
    }

    /// A process that has connected says something; whether nothing waits before it. One that says more than there can be to say is let go of.
    pub(super) fn told(&mut self, peer: &Peer, message: &[u8]) -> bool {
        let Some(link) = self.all.values_mut().find(|link| link.is_of(peer.id())) else { return false };
        let is_first = link.incoming.is_empty();
        match Said::from_bytes(message) {
            Some(said) if link.incoming.len() < MAX_INCOMING => link.incoming.push_back(said),
            // It is claimed again.
            Some(Said::Claim(_)) => {}
            Some(Said::Message(_)) => peer.disconnect(),
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
                End::Client(Opened { memory, ringer, .. }) | End::Owner { memory, ringer, .. } => {
                    self.disposer.dispose((memory, ringer));
                }
                End::Opening => {}
            }
        }
    }

    /// What others have said, some of each. A process whose answers do not leave is not heard.
    pub(super) fn hear(&mut self) -> Vec<(ProcessKey, Said)> {
        let own = self.own.uid;
        self.keep(|process, link| {
            let is_liar = process.uid != own && link.agreements.wrong() > MAX_WRONG;
            !(link.has_ended() || is_liar && link.is_let_go())
        });
        let (mut heard, mut wrong, mut heard_of_others) = (Vec::new(), 0, 0);
        for (process, link) in &mut self.all {
            for _ in link.outgoing.len()..MESSAGES_A_TURN {
                // All of them together take no more of a turn than one process of the own user.
                if process.uid != own && heard_of_others >= MESSAGES_A_TURN {
                    break;
                }
                match link.next() {
                    Some(Some(said)) => {
                        heard_of_others += usize::from(process.uid != own);
                        heard.push((*process, said));
                    }
                    Some(None) => wrong += 1,
                    None => break,
                }
            }
        }
        self.wrong += wrong;
        heard
    }

    /// How much has become known since the last time.
    pub(super) fn take_news(&mut self) -> usize {
        std::mem::take(&mut self.news)
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
                    self.news += 1;
                }
                link.outgoing.push_back(Said::Message(reply));
            }
            Heard::Wrong(reply) => link.outgoing.extend(reply.map(Said::Message)),
            Heard::Nothing => self.news += usize::from(matches!(message.saying, Saying::Accept(_))),
        }
    }

    /// How far a connection is.
    pub(super) fn talk(&mut self, own_cookie: u64) -> Talk {
        let talk = self.told_of(own_cookie);
        if let Talk::Agreed(_) = talk {
            // Who was let in stays.
            self.admitted.remove(&own_cookie);
            if let Some(Wanted { ends, .. }) = self.wanted.get(&own_cookie) {
                self.claims.found(own_cookie, ends);
            }
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
                let (peer, memory, ringer) = (peer.clone(), memory.clone(), link.ringer());
                Talk::Agreed(Agreed { peer, other_cookie, slot, owns, memory, ringer })
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
        let cookies = Cookies { own: own_cookie, other: other_cookie };
        link.outgoing.extend(link.agreements.announce(cookies).map(Said::Message));
        wanted.process = Some(process);
    }

    /// This process looks for the other end of a connection.
    pub(super) fn want(&mut self, own_cookie: u64, ends: &ConnectionEnds) {
        let wanted = self.wanted.entry(own_cookie).or_insert(Wanted { ends: *ends, process: None });
        wanted.ends = *ends;
        self.claims.look_for(own_cookie, ends);
    }

    /// Whether a process is to be told that this one has a socket. Where it takes long to hear, it is told later.
    pub(super) fn is_to_be_told(&self, process: ProcessKey, own_cookie: u64) -> bool {
        let has_room = |link: &Link| link.outgoing.len() < MESSAGES_A_TURN;
        self.all.get(&process).is_some_and(has_room)
            && self.claims.is_due(own_cookie, process, Instant::now())
    }

    /// Says to a process that this one has a socket.
    pub(super) fn claim(&mut self, process: ProcessKey, claim: Claim) {
        if let Some(link) = self.all.get_mut(&process) {
            link.outgoing.push_back(Said::Claim(claim));
            link.flush();
            self.claims.has_claimed(claim.cookie, process, Instant::now());
        }
    }

    /// The cookie of this process's connection whose other end a process claims. Nothing of the sort is another user's to say.
    pub(super) fn own_cookie_of(&mut self, process: ProcessKey, claim: &Claim) -> Option<u64> {
        if process.uid != self.own.uid {
            self.wrong += 1;
            return None;
        }
        self.claims.own_cookie_of(claim)
    }

    /// A claim fits to what the kernel says here; whether that is new.
    pub(super) fn believe(&mut self, own_cookie: u64, process: ProcessKey, claim: &Claim) -> bool {
        // It may have been let go of meanwhile.
        let is_new = self.wanted.contains_key(&own_cookie) && self.claims.believe(own_cookie, process, claim);
        self.news += usize::from(is_new);
        is_new
    }

    /// What a process has claimed to have at the other end of a connection.
    pub(super) fn claimed(&self, own_cookie: u64, process: ProcessKey) -> Option<u64> {
        self.claims.other_cookie(own_cookie, process)
    }

    /// Has `admit` let processes of another user in that has the other end, unless it has, or they have agreed on it.
    pub(super) fn admit(&mut self, own_cookie: u64, admit: impl FnOnce() -> Option<Admitted>) {
        if self.wanted.contains_key(&own_cookie) && !self.admitted.contains_key(&own_cookie) {
            self.admitted.extend(admit().map(|admitted| (own_cookie, admitted)));
        }
    }

    /// Whether one more process may be there: each has a mapped memory here, whatever it does with it.
    fn have_room_for(&self, process: ProcessKey) -> bool {
        let others = || self.all.keys().filter(|other| other.uid != self.own.uid);
        let users: BTreeSet<u32> = others().map(|other| other.uid).collect();
        let of_user = others().filter(|other| other.uid == process.uid).count();
        process.uid == self.own.uid
            || others().count() < MAX_OTHERS
                && of_user < MAX_OF_USER
                && (users.len() < MAX_USERS || users.contains(&process.uid))
    }

    /// Whether a thread may begin to connect to a process.
    pub(super) fn may_open(&mut self, process: ProcessKey) -> bool {
        let (own, uid) = (self.own.uid, process.uid);
        let opening = |is_meant: &dyn Fn(u32) -> bool| {
            let is_opening = |link: &Link| matches!(link.end, End::Opening);
            self.all.iter().filter(|(other, link)| is_opening(link) && is_meant(other.uid)).count()
        };
        let is_free = match uid == own {
            true => opening(&|other| other == own) < MAX_OPENING,
            false => {
                opening(&|other| other != own) < MAX_OPENING_TO_OTHERS
                    && opening(&|other| other == uid) < MAX_OPENING_TO_USER
                    && self.have_room_for(process)
            }
        };
        is_free && matches!(self.standing(process), Standing::None)
    }

    /// Whether a process has been told already that this one has the connection: the kernel need not be asked again.
    pub(super) fn have_agreed_on(&self, process: ProcessKey, cookies: Cookies) -> bool {
        let link = self.all.get(&process);
        link.and_then(|link| link.agreements.agreed(cookies.own))
            .is_some_and(|(other, _)| other == cookies.other)
    }

    pub(super) fn release(&mut self, own_cookie: u64) {
        self.admitted.remove(&own_cookie);
        let Some(Wanted { ends, process }) = self.wanted.remove(&own_cookie) else { return };
        self.claims.forget(own_cookie, &ends);
        if let Some(link) = process.and_then(|process| self.all.get_mut(&process)) {
            link.outgoing.extend(link.agreements.release(own_cookie).map(Said::Message));
        }
    }

    /// Sends what there is to say, as long as there is room.
    pub(super) fn flush(&mut self) {
        self.all.values_mut().for_each(Link::flush);
    }
}

/// How far two processes are with a connection.
pub(super) enum Talk {
    None,
    UnderWay,
    Agreed(Agreed),
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::num::NonZeroU64;
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

    fn process(uid: u32, number: u64) -> ProcessKey {
        ProcessKey { uid, number: NonZeroU64::new(number).unwrap() }
    }

    #[test]
    fn other_users_take_a_part_of_what_there_is_and_none_of_the_own_users() {
        let dir = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "d".to_owned() };
        let domain = Domain::open(&config).unwrap();
        let (peers, connected) = channel();
        let _offer = domain.offer("name", Box::new(Peers(peers))).unwrap();
        let (_connection, _) = domain.connect("name", b"", &[]).unwrap();
        let peer = connected.recv().unwrap();
        let mut links = Links::new(process(0, 5), Disposer::default());
        // One user names as many processes as it likes, and lets nobody in.
        let may_begin = |links: &mut Links, process| {
            let may = links.may_open(process);
            may.then(|| links.begin(process)).is_some()
        };
        assert_eq!((1..100).filter(|n| may_begin(&mut links, process(7, *n))).count(), MAX_OPENING_TO_USER);
        assert_eq!((1..100).filter(|uid| may_begin(&mut links, process(10 + uid, 1))).count(), 2);
        assert_eq!((1..100).filter(|n| may_begin(&mut links, process(0, *n))).count(), MAX_OPENING);
        let all: Vec<ProcessKey> = links.all.keys().copied().collect();
        all.into_iter().for_each(|process| _ = links.opened(process, Err(NotOpened::Absent)));
        assert!(!links.may_open(process(7, 1)), "it is left alone");
        // Those that come.
        let let_in = |links: &mut Links, process| links.let_in(process, &peer, Region::private(64), None);
        assert_eq!((1..1000).filter(|n| let_in(&mut links, process(7, *n))).count(), MAX_OF_USER);
        assert!((8..7 + MAX_USERS as u32).all(|uid| let_in(&mut links, process(uid, 1))));
        assert!(!let_in(&mut links, process(99, 1)), "of too many users");
        assert_eq!((1..1000).filter(|n| let_in(&mut links, process(8, *n))).count(), MAX_OF_USER - 1 - 14);
        assert!(!links.may_open(process(9, 2)), "of too many processes");
        assert!(let_in(&mut links, process(0, 201)) && links.may_open(process(0, 202)));
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
            (Ok(Opened { connection, notifications, memory, ringer: None }), connected.recv().unwrap())
        };
        let [smaller, own, larger] = [3, 5, 7].map(|number| process(0, number));
        let mut links = Links::new(own, Disposer::default());
        for other in [smaller, larger] {
            links.begin(other);
        }
        let (to_smaller, peer) = connect();
        let let_in = |links: &mut Links, process| links.let_in(process, &peer, Region::private(64), None);
        assert!(let_in(&mut links, smaller));
        assert!(links.opened(smaller, to_smaller).is_some(), "it is given back");
        let (to_larger, peer) = connect();
        let let_in = |links: &mut Links, process| links.let_in(process, &peer, Region::private(64), None);
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
