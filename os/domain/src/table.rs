//! Offers and their connections on the background thread: how they begin and end. What is said in between is in
//! `dialogue.rs`.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use crate::Peer;
use crate::channel::{Channel, End};
use crate::descriptor::{Descriptor, Watching};
use crate::disposer::Disposer;
use crate::evidence::{Evidence, EvidenceError};
use crate::inbox::Inbox;
use crate::links::{Link, Links, Role, Source};
use crate::mailbox::Mail;
use crate::notices::Going;
use crate::numbers::lowest;
use crate::peer::Severed;
use crate::protocol::Departure;
use crate::service::{OfferOptions, Refusal, Service, guarded};
use crate::shares::{Exceeded, Process, Shares};
use crate::socket::{self, PacketBuffer};
use crate::uid;
use crate::wire::{Identity, Kind};
use crate::workers::Workers;

/// Connections accepted for one event; more wait for the next round, so that nobody else starves.
const ACCEPTS: usize = 16;
/// Branches of an ended connection whose sleepers are woken at a time, so that nobody's death waits for more.
const SEVERED: usize = 64;
/// How long a listener rests when this process has no descriptors left.
const REST: Duration = Duration::from_millis(100);

pub(crate) struct Offered {
    listener: Descriptor,
    pub(crate) service: Box<dyn Service>,
    pub(crate) options: OfferOptions,
    /// Set while the listener is not watched.
    rests_until: Option<Instant>,
}

/// A peer that went while an answer to it was being worked on: its service hears of that when the work is done.
struct Leaving {
    offer: u64,
    peer: Peer,
}

/// Everything the background thread looks after.
pub(crate) struct Table {
    pub(crate) links: Links,
    pub(crate) offers: HashMap<u64, Offered>,
    pub(crate) identity: Identity,
    /// Where workers say that they are done.
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) workers: Workers,
    /// Takes what peers have sent and what is left of them, which may take time to drop.
    pub(crate) disposer: Disposer,
    /// By the number that their connection had.
    leaving: HashMap<u64, Leaving>,
    /// Of connections that have ended.
    severed: VecDeque<Severed>,
}

impl Table {
    pub(crate) fn new(
        links: Links,
        identity: Identity,
        inbox: Arc<Inbox>,
        workers: Workers,
        disposer: Disposer,
    ) -> Self {
        let (offers, leaving, severed) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Table { links, offers, identity, inbox, workers, disposer, leaving, severed }
    }

    pub(crate) fn epoll(&self) -> &Descriptor {
        self.links.epoll()
    }

    /// Gives every descriptor a number of at least `lowest`; the first that could not have one is the error.
    pub(crate) fn move_above(&self, lowest: RawFd) -> Result<(), Errno> {
        let by = self.links.epoll();
        let offers = self.offers.iter().map(|(number, offer)| {
            let (token, flags) = (Source::Listener(*number).token(), EventFlags::IN);
            let watching = offer.rests_until.is_none().then_some(Watching { by, token, flags });
            offer.listener.move_above(lowest, watching.as_ref())
        });
        offers.fold(self.links.move_above(lowest), Result::and)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let rests = self.offers.values().filter_map(|offer| offer.rests_until);
        rests.chain(self.links.next_deadline()).min()
    }

    pub(crate) fn add_offer(
        &mut self,
        number: u64,
        listener: Descriptor,
        service: Box<dyn Service>,
        options: OfferOptions,
    ) -> Result<(), Errno> {
        epoll::add(
            self.links.epoll().hold(),
            listener.hold(),
            Source::Listener(number).token(),
            EventFlags::IN,
        )?;
        self.offers.insert(number, Offered { listener, service, options, rests_until: None });
        // One that was opened before the others were moved may come after them. Where no number is free it stays as it is.
        let _ = self.move_above(lowest());
        Ok(())
    }

    /// Has the thread watch a connection; gives it a number.
    fn watch(&mut self, link: Link) -> Result<u64, Errno> {
        let number = self.inbox.next_link();
        self.links.waits().watch(number, &link)?;
        self.links.insert(number, link);
        Ok(number)
    }

    /// Ends an offer: nobody connects any more, and who is connected is told goodbye. Gives the service, to be dropped.
    pub(crate) fn withdraw(&mut self, number: u64) -> Option<Box<dyn Service>> {
        let offer = self.offers.get(&number)?;
        if offer.rests_until.is_none() {
            let _ = epoll::delete(self.links.epoll().hold(), offer.listener.hold());
        }
        // A forked child may hold a copy of the listener; so whoever waits in it is sent away by hand.
        if let Ok(listener) = offer.listener.check() {
            while let Ok(Some(waiting)) = socket::accept(&listener) {
                socket::shut_down(&waiting);
                self.disposer.dispose(waiting);
            }
            socket::shut_down(listener);
        }
        for present in self.links.of_offer(number) {
            self.end(present.number, Departure::Closed);
        }
        self.offers.remove(&number).map(|offered| offered.service)
    }

    pub(crate) fn end_all(&mut self) {
        let offers: Vec<_> = self.offers.keys().copied().collect();
        offers.into_iter().for_each(|number| drop(self.withdraw(number)));
        self.links.numbers().into_iter().for_each(|number| self.end(number, Departure::Closed));
    }

    /// Takes new connections of an offer, and what each has said already.
    pub(crate) fn accept(&mut self, number: u64, buffer: &mut PacketBuffer) {
        for _ in 0..ACCEPTS {
            let Some(offer) = self.offers.get_mut(&number) else { return };
            let Ok(listener) = offer.listener.check() else {
                tracing::error!(
                    "the socket of an offer was closed or replaced in this process; it is withdrawn"
                );
                let service = self.withdraw(number);
                self.disposer.dispose(service);
                return;
            };
            let welcomed = match socket::accept(listener) {
                Ok(None) => return,
                Ok(Some(comer)) => self.welcome(number, Channel::new(comer, End::Owner)),
                Err(error) => Err(error),
            };
            match welcomed {
                Ok(None) => {}
                Ok(Some(link)) => {
                    self.deaths(buffer);
                    // Who has its answer may close, and connect anew: the next one comes after what has happened meanwhile.
                    if self.read_one(link, buffer) {
                        return;
                    }
                }
                Err(error) => {
                    let rest_ms = REST.as_millis();
                    tracing::warn!(%error, "cannot accept a connection; trying again in {rest_ms} ms");
                    self.rest(number);
                    return;
                }
            }
        }
    }

    /// Watches a new connection, and gives its number, unless it may not be here. Fails when this process lacks descriptors or memory.
    fn welcome(&mut self, number: u64, channel: Channel) -> Result<Option<u64>, Errno> {
        let Some(offer) = self.offers.get(&number) else { return Ok(None) };
        let evidence = match Evidence::of_peer(channel.fd().as_fd()) {
            Ok(evidence) => evidence,
            Err(EvidenceError::Gone { .. }) => {
                self.disposer.dispose(channel);
                return Ok(None);
            }
            Err(EvidenceError::Invisible) => {
                self.send_away(
                    channel,
                    "this kernel cannot watch a process of another pid namespace; Linux 6.5 can",
                );
                return Ok(None);
            }
            Err(EvidenceError::System(error)) => return Err(error),
        };
        let refused = admit(evidence.uid(), self.identity, &offer.options, uid::names_one_user).err();
        let must_prove = refused.is_some();
        let awaits = || offer.options.admissions.as_ref().is_some_and(|it| it.awaits(&evidence));
        if let Some(reason) = refused
            && !awaits()
        {
            self.send_away(channel, &reason);
            return Ok(None);
        }
        let deadline = Instant::now() + offer.options.hello_timeout;
        let comer = Process { pid: evidence.pid(), uid: evidence.uid() };
        if let Err(reason) = self.make_room(number, comer) {
            self.send_away(channel, &reason);
            return Ok(None);
        }
        let (channel, evidence) = (Arc::new(channel), Arc::new(evidence));
        let mut link = Link::new(channel, evidence, Role::Served(number));
        (link.must_prove, link.deadline) = (must_prove, Some(deadline));
        self.watch(link).map(Some)
    }

    /// Makes sure that there is room for one more connection of an offer, within the share of its process and its user; else
    /// why there is none.
    fn make_room(&mut self, number: u64, comer: Process) -> Result<(), String> {
        let Some(offer) = self.offers.get(&number) else { return Ok(()) };
        let limit = offer.options.max_connections;
        let shares = offer.options.shares.unwrap_or(Shares::of(limit));
        let present = self.links.of_offer(number);
        // Those that only wait to be told dead from closed hold no place, as long as they are not too many.
        let hung_up = present.iter().filter(|present| present.has_hung_up).count();
        // Those that went while their answer was worked on hold one: what is made for them is there until it is done.
        let leaving = self.leaving.values().filter(|leaving| leaving.offer == number);
        let leaving: Vec<Process> = leaving.map(|leaving| Process::of(&leaving.peer)).collect();
        let connected = present.iter().filter(|present| !present.has_hung_up).map(|present| present.process);
        let exceeded = shares.check(comer, connected.chain(leaving.iter().copied())).err();
        let taken = present.len() - hung_up + leaving.len();
        if taken < limit && hung_up < limit && exceeded.is_none() {
            return Ok(());
        }
        // Those that have not said anything make room, the oldest first; for a share, only those that are part of it.
        let is_part = |process: Process| match exceeded {
            None => true,
            Some(Exceeded::Process { .. }) => process == comer,
            Some(Exceeded::User { .. }) => process.uid == comer.uid,
        };
        match present.iter().find(|present| !present.has_spoken && is_part(present.process)) {
            Some(silent) => {
                self.end(silent.number, Departure::Closed);
                Ok(())
            }
            None => Err(match exceeded {
                Some(exceeded) if taken < limit => format!("of the offer's {limit} connections {exceeded}"),
                _ => format!("all of the offer's {limit} connections are in use"),
            }),
        }
    }

    /// Refuses a connection whose first packet was not read yet; that packet always has serial 1.
    fn send_away(&self, channel: Channel, reason: &str) {
        tracing::warn!(reason, "refused a connection");
        let refusal = Refusal::new(reason);
        let _ = channel.send(self.identity.header(Kind::Refusal, 1), refusal.to_wire(), &[]);
        socket::shut_down(channel.fd());
        // With what it has sent, which nobody has read.
        self.disposer.dispose(channel);
    }

    /// Stops to watch a listener for a while: it would be reported as ready all the time.
    fn rest(&mut self, number: u64) {
        if let Some(offer) = self.offers.get_mut(&number) {
            let _ = epoll::delete(self.links.epoll().hold(), offer.listener.hold());
            offer.rests_until = Some(Instant::now() + REST);
        }
    }

    /// Does what is due at `now`.
    pub(crate) fn expire(&mut self, now: Instant) {
        for link in self.links.expired(now) {
            self.end(link, Departure::Closed);
        }
        for (number, offer) in &mut self.offers {
            if offer.rests_until.is_some_and(|until| until <= now) {
                let token = Source::Listener(*number).token();
                let watched =
                    epoll::add(self.links.epoll().hold(), offer.listener.hold(), token, EventFlags::IN);
                offer.rests_until = watched.is_err().then(|| now + REST);
            }
        }
    }

    /// Ends a connection: tells whoever sleeps for the peer, whoever waits for its answer, and its service.
    pub(crate) fn end(&mut self, number: u64, how: Departure) {
        // Before it is removed, which closes it here.
        let was_closed_here = self.links.get_mut(number).is_some_and(|link| link.channel.is_closed_here());
        // First of all: somebody waits for it.
        if let Some(peer) = self.links.get_mut(number).and_then(|link| link.peer.as_ref()) {
            peer.depart(how);
            self.severed.extend(peer.sever());
        }
        let Some(mut link) = self.links.remove(number) else { return };
        match &link.role {
            Role::Client(mailbox) => {
                mailbox.close(Mail::Gone(how));
                mailbox.notices.end(match how {
                    Departure::Died => Going::Died,
                    Departure::Closed if was_closed_here => Going::ClosedHere,
                    Departure::Closed => Going::Closed,
                });
            }
            Role::Served(offer) => match link.peer.take() {
                Some(peer) if link.is_busy => {
                    self.leaving.insert(number, Leaving { offer: *offer, peer });
                }
                Some(peer) => self.departed(*offer, peer),
                None => {}
            },
        }
        // Who has accepted a client still has it, and closes it: nobody is woken for that.
        if let Some(last) = link.into_last() {
            self.disposer.dispose(last);
        }
    }

    /// Wakes whoever waits for some of the branches of connections that have ended; `false` when there are no more.
    pub(crate) fn rouse_severed(&mut self) -> bool {
        if let Some(severed) = self.severed.front_mut()
            && !severed.rouse_some(SEVERED)
        {
            self.severed.pop_front();
        }
        !self.severed.is_empty()
    }

    /// The work for an answer to a peer that has gone meanwhile is done; whether it was such a peer.
    pub(crate) fn worked_in_vain(&mut self, number: u64) -> bool {
        let Some(Leaving { offer, peer }) = self.leaving.remove(&number) else { return false };
        self.departed(offer, peer);
        true
    }

    fn departed(&mut self, offer: u64, peer: Peer) {
        if let Some(offered) = self.offers.get_mut(&offer) {
            // A panic is reported by `guarded`; there is nobody to refuse here.
            let _ = guarded(|| {
                offered.service.departed(&peer);
                Ok(())
            });
        }
        if let Some(last) = peer.into_last() {
            self.disposer.dispose(last);
        }
    }
}

/// Whether a process of the user `uid` may connect to an offer; else why it may not.
///
/// Where two users can have the same uid (`uid.rs`), the list admits neither. An offer without a list in a folder needs no
/// uid: its socket and folder are the owner's alone, and the kernel compared the users themselves when it let this one
/// connect. A name in a network namespace lets everybody connect.
fn admit(
    uid: u32,
    owner: Identity,
    options: &OfferOptions,
    names_one_user: impl Fn(u32) -> bool,
) -> Result<(), String> {
    let own_uid = owner.uid;
    if uid == own_uid && !options.is_for_others() && owner.has_permissions {
        return Ok(());
    }
    if !names_one_user(uid) {
        return Err(format!(
            "the user namespace of the offer's owner does not map your user (there uid {uid} stands for every such user, and \
             no list lets it in); give both containers the same user mapping"
        ));
    }
    let is_listed = uid == own_uid || options.allowed_uids.contains(&uid);
    if is_listed || options.admissions.as_ref().is_some_and(|admissions| admissions.has(uid)) {
        return Ok(());
    }
    Err(format!(
        "uid {uid} is not on the offer's list; its owner lets this user in by `--allow-uid {uid}` (`allowed_uids` in a program)"
    ))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::Reply;
    use crate::numbers::Purpose;
    use crate::service::Answer;
    use crate::wire::MAX_MESSAGE_BYTES;

    /// Tells the test how its peers go.
    struct Watching(Sender<Option<Departure>>);

    impl Service for Watching {
        fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Ok(Reply::default().into())
        }

        fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
            Ok(Reply::default().into())
        }

        fn departed(&mut self, peer: &Peer) {
            self.0.send(peer.departure()).unwrap();
        }
    }

    const IDENTITY: Identity = Identity { uid: 0, membarrier: true, started_ticks: 0, has_permissions: true };

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    fn listener() -> Descriptor {
        Descriptor::new(pair().0, Purpose::Offer)
    }

    fn empty() -> Table {
        let links = Links::new().unwrap();
        let inbox = Arc::new(Inbox::new(links.waits()));
        Table::new(links, IDENTITY, inbox, Workers::new(0), Disposer::default())
    }

    fn table() -> (Table, Receiver<Option<Departure>>) {
        let mut table = empty();
        let (departures, receiver) = channel();
        table.add_offer(1, listener(), Box::new(Watching(departures)), OfferOptions::default()).unwrap();
        (table, receiver)
    }

    /// A client that has said hello, and its end of the connection.
    fn client(table: &mut Table) -> (u64, OwnedFd) {
        let (socket, other) = pair();
        let evidence = Arc::new(Evidence::of_peer(socket.as_fd()).unwrap());
        let channel = Arc::new(Channel::new(socket, End::Owner));
        let link = Link::new(Arc::clone(&channel), Arc::clone(&evidence), Role::Served(1));
        let number = table.watch(link).unwrap();
        table.links.get_mut(number).unwrap().peer = Some(Peer::new(evidence, channel, true));
        (number, other)
    }

    #[test]
    fn a_process_that_ends_after_its_goodbye_has_closed() {
        let mut buffer: Box<PacketBuffer> = Box::new([0; MAX_MESSAGE_BYTES + 1]);
        for (last_words, departure) in [
            (&[Kind::Bye][..], Departure::Closed),
            (&[Kind::Call, Kind::Call, Kind::Bye], Departure::Closed),
            (&[Kind::Call], Departure::Died),
            (&[], Departure::Died),
        ] {
            let (mut table, departures) = table();
            let (number, other) = client(&mut table);
            for kind in last_words {
                socket::send(other.as_fd(), IDENTITY.header(*kind, 2), &[], &[]).unwrap();
            }
            table.process_ended(number, &mut buffer);
            assert_eq!(departures.try_recv(), Ok(Some(departure)), "{last_words:?}");
        }
    }

    #[test]
    fn end_of_a_client_that_somebody_has_accepted_wakes_nobody_to_drop_it() {
        let (mut table, departures) = table();
        let (number, _other) = client(&mut table);
        let accepted = table.links.get_mut(number).unwrap().peer.clone();
        table.end(number, Departure::Closed);
        assert_eq!(departures.try_recv(), Ok(Some(Departure::Closed)));
        assert!(!table.disposer.is_started());
        assert_eq!(accepted.unwrap().departure(), Some(Departure::Closed));
        let (number, _other) = client(&mut table);
        table.end(number, Departure::Closed);
        assert!(table.disposer.is_started(), "nobody else has it");
    }

    #[test]
    fn uid_that_stands_for_many_is_let_in_by_permissions_alone() {
        const MANY: u32 = 65_534;
        let in_folder = Identity { uid: MANY, ..IDENTITY };
        let in_namespace = Identity { has_permissions: false, ..in_folder };
        let own = OfferOptions::default();
        let listed = OfferOptions { allowed_uids: vec![MANY], ..OfferOptions::default() };
        let is_let_in = |owner, options, names_one| admit(MANY, owner, options, |_| names_one).is_ok();
        assert!(is_let_in(in_folder, &own, false));
        for (owner, options) in [(in_folder, &listed), (in_namespace, &own), (in_namespace, &listed)] {
            assert!(!is_let_in(owner, options, false));
            assert!(is_let_in(owner, options, true));
        }
    }

    /// What the table's epoll tells of now.
    fn told(table: &Table) -> Vec<Source> {
        let mut events = Vec::with_capacity(4);
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(table.epoll().hold(), rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap();
        events.iter().map(|event| Source::from_token(event.data)).collect()
    }

    #[test]
    fn listener_that_has_moved_is_not_told_of_after_its_offer_ended() {
        let (mut table, _departures) = table();
        // As a forked child has one: it keeps the socket open, and ready.
        let copy = rustix::io::dup(table.offers[&1].listener.hold()).unwrap();
        table.move_above(700).unwrap();
        assert_eq!(told(&table), [Source::Listener(1)]);
        table.withdraw(1);
        assert_eq!(told(&table), []);
        drop(copy);
    }

    #[test]
    fn an_idle_table_never_wakes_up() {
        let mut table = empty();
        assert_eq!(table.next_deadline(), None);
        let (service, _departures) = channel();
        table.add_offer(1, listener(), Box::new(Watching(service)), OfferOptions::default()).unwrap();
        assert_eq!(table.next_deadline(), None, "an offer");
        let (number, _other) = client(&mut table);
        assert_eq!(table.next_deadline(), None, "a client");
        let silent = Some(Instant::now());
        table.links.get_mut(number).unwrap().deadline = silent;
        assert_eq!(table.next_deadline(), silent, "a client that has said nothing yet");
        table.links.get_mut(number).unwrap().deadline = None;
        table.rest(1);
        assert!(table.next_deadline().is_some(), "a listener that rests");
        table.withdraw(1);
        assert_eq!(table.next_deadline(), None);
    }
}
