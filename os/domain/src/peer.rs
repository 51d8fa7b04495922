//! A peer: the process at the other end of one connection.

use std::collections::{HashMap, hash_map};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{fmt, mem};

use beeline_mmio::{Flag, Word};
use rustix::io::Errno;

use crate::channel::{Channel, End};
use crate::error::MisuseError;
use crate::event::Event;
use crate::evidence::Evidence;
use crate::notify::{self, Notified, NotifyError};
use crate::protocol::{self, Departure, Presence};
use crate::sync::AtomicBool;
use crate::watchers::Watchers;
use crate::wire::{Header, Kind, WAKE_ALL, WAKE_TAKEN};

/// Names a peer within this process; no two peers ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(u64);

impl PeerId {
    /// A number that stands for it where a number is asked for; no two peers ever have the same.
    pub fn number(self) -> u64 {
        self.0
    }

    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters.
        PeerId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "peer {}", self.0)
    }
}

/// The process at the other end of a connection, as the kernel knows it. Clones are the same peer.
///
/// It keeps two descriptors open until the last clone is dropped. A forked child must not rely on its copies: nobody
/// updates them there.
#[derive(Clone)]
pub struct Peer(Arc<State>);

struct State {
    id: PeerId,
    presence: Presence,
    has_membarrier: bool,
    needs_full_fence: bool,
    evidence: Arc<Evidence>,
    channel: Arc<Channel>,
    watchers: Mutex<Watchers>,
    /// Only of one that is not a connection's own.
    branch: Option<Branch>,
    /// Its own branches by name; those that nobody has any more may still be here.
    branches: Mutex<HashMap<u32, Weak<State>>>,
}

/// One of several things that end each by itself on one connection: a window in an arena.
struct Branch {
    trunk: Peer,
    /// Not 0.
    name: u32,
    ends: Weak<dyn EndsBranches>,
    /// Not 0 once the other side has ended it, before this one hears of that. It is not trusted: what was seen is kept.
    ended: Option<Word>,
}

impl Branch {
    #[inline(always)]
    fn is_ended(&self) -> bool {
        // Relaxed: who goes on passes the acquire of `departure`.
        self.ended.as_ref().is_some_and(|ended| ended.load() != 0)
    }
}

/// Who tells the other side that this one has given a branch up.
pub(crate) trait EndsBranches: Send + Sync {
    /// Called once, on the thread that gives it up.
    fn end_branch(self: Arc<Self>, name: u32);
}

/// The branches of a connection that has ended, whose sleepers and listeners are still to be woken.
pub(crate) struct Severed(hash_map::IntoIter<u32, Weak<State>>);

impl Severed {
    /// Wakes whoever waits for at most `most` branches; `false` when all are done.
    pub(crate) fn rouse_some(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some((_, branch)) = self.0.next() else { return false };
            if let Some(branch) = branch.upgrade() {
                branch.rouse();
            }
        }
        true
    }
}

/// Which listeners are signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signalled {
    /// Those whose flags the peer has taken.
    Taken,
    All,
}

/// What a forked child gets to watch for its parent's peer: no thread tells it, and the lock may be held for ever.
const NOT_WATCHED: u64 = u64::MAX;

impl Peer {
    pub(crate) fn new(evidence: Arc<Evidence>, channel: Arc<Channel>, has_membarrier: bool) -> Self {
        Peer(Arc::new(State {
            id: PeerId::next(),
            presence: Presence::new(),
            has_membarrier,
            needs_full_fence: !(has_membarrier && beeline_mmio::membarrier::is_registered()),
            evidence,
            channel,
            watchers: Mutex::default(),
            branch: None,
            branches: Mutex::default(),
        }))
    }

    /// A peer for one of several things on this connection, by a name that is not 0 and that no other has now. It is gone when
    /// either side gives it up, or the connection ends. Only this process's threads may use it. Once `ended` is not 0, the other side has
    /// given it up.
    pub(crate) fn branch(&self, name: u32, ends: Weak<dyn EndsBranches>, ended: Option<Word>) -> Peer {
        let state = &*self.0;
        let branch = Peer(Arc::new(State {
            id: PeerId::next(),
            presence: Presence::new(),
            has_membarrier: state.has_membarrier,
            needs_full_fence: state.needs_full_fence,
            evidence: Arc::clone(&state.evidence),
            channel: Arc::clone(&state.channel),
            watchers: Mutex::default(),
            branch: Some(Branch { trunk: self.clone(), name, ends, ended }),
            branches: Mutex::default(),
        }));
        self.branches().insert(name, Arc::downgrade(&branch.0));
        branch
    }

    /// The branch of this name, if somebody has it.
    pub(crate) fn find_branch(&self, name: u32) -> Option<Peer> {
        self.branches().get(&name).and_then(Weak::upgrade).map(Peer)
    }

    /// The branch of this name is nobody's any more.
    pub(crate) fn forget_branch(&self, name: u32) {
        self.branches().remove(&name);
    }

    /// What is left to do for the branches of a peer that has departed, if it has any.
    pub(crate) fn sever(&self) -> Option<Severed> {
        let branches = mem::take(&mut *self.branches());
        (!branches.is_empty()).then(|| Severed(branches.into_iter()))
    }

    fn branches(&self) -> MutexGuard<'_, HashMap<u32, Weak<State>>> {
        self.0.branches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was made by this process; a forked child only has a copy.
    pub(crate) fn is_own(&self) -> bool {
        self.0.channel.is_own()
    }

    /// Returns the number by which this domain knows the peer.
    pub fn id(&self) -> PeerId {
        self.0.id
    }

    /// Its process id; 0 for a process outside this pid namespace.
    pub fn pid(&self) -> u32 {
        self.0.evidence.pid()
    }

    /// Its effective user id when it connected or listened.
    pub fn uid(&self) -> u32 {
        self.0.evidence.uid()
    }

    /// Whether it is still there: `false` once its process died or it closed its end. One relaxed load, of a window in an arena three.
    ///
    /// A stopped process is there. After `false`, call [`Peer::departure`] before you read its last stores.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.0.presence.is_present()
            && self.0.branch.as_ref().is_none_or(|branch| branch.trunk.is_alive() && !self.has_ended(branch))
    }

    /// As [`Peer::is_alive`] without a call; it may also be alive where this is `false`.
    #[inline(always)]
    pub fn is_surely_alive(&self) -> bool {
        let is_trunk_there = |trunk: &Peer| trunk.0.presence.is_present() && trunk.0.branch.is_none();
        let branch = self.0.branch.as_ref();
        self.0.presence.is_present()
            && branch.is_none_or(|branch| is_trunk_there(&branch.trunk) && !branch.is_ended())
    }

    /// Whether the other side has ended this branch, which is then kept: it may store anything there afterwards.
    #[inline]
    fn has_ended(&self, branch: &Branch) -> bool {
        branch.is_ended() && self.keep_end()
    }

    #[cold]
    fn keep_end(&self) -> bool {
        // Pairs with the release of whoever ended it, before the caller reads what that side stored before.
        fence(Ordering::Acquire);
        if self.is_own() {
            self.depart(Departure::Closed);
        } else {
            // Not those who wait, whose lock a thread may hold that a forked child does not have.
            self.0.presence.depart(Departure::Closed);
        }
        true
    }

    /// Returns how the peer went, once it has. After `Some`, every store that the peer made before it went is visible
    /// here.
    pub fn departure(&self) -> Option<Departure> {
        let own = || self.0.presence.departure();
        own().or_else(|| {
            let branch = self.0.branch.as_ref()?;
            if self.has_ended(branch) { own() } else { branch.trunk.departure() }
        })
    }

    /// Whether its process takes part in expedited membarriers.
    pub fn has_membarrier(&self) -> bool {
        self.0.has_membarrier
    }

    /// Whether a side that stores must pass a full fence before it looks whether the other sleeps: one of the two
    /// processes lacks membarrier.
    pub fn needs_full_fence(&self) -> bool {
        self.0.needs_full_fence
    }

    /// Asks the kernel, now, whether the peer can still be there. The domain's thread may not have been told yet.
    pub(crate) fn is_connected_now(&self) -> bool {
        self.is_alive() && !self.0.evidence.has_died() && !self.0.channel.is_hung_up()
    }

    /// Closes the connection in order; the peer's process learns that this one lives on. The peer of a window in an arena loses
    /// that window only.
    pub fn disconnect(&self) {
        let Some(branch) = &self.0.branch else {
            self.0.channel.close();
            return;
        };
        // In a forked child the window is the parent's.
        if self.is_own()
            && self.depart(Departure::Closed)
            && let Some(ends) = branch.ends.upgrade()
        {
            ends.end_branch(branch.name);
        }
    }

    /// Tells a client something unasked, at any time and from any thread, in order with the answers to its calls: what was
    /// accepted before an answer was given is there when the client's call returns. Never waits for the client.
    ///
    /// An accepted notification is lost only with the connection: [`crate::NotificationsEnded`] says when that may be.
    ///
    /// # Errors
    /// The client has gone, or is the owner and not a client; the notification is too large; the kernel refused something;
    /// this process was forked from the one that offers.
    pub fn notify(&self, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Result<Notified, NotifyError> {
        if self.0.channel.end() != End::Owner || self.0.branch.is_some() {
            return Err(MisuseError::NotClient.into());
        }
        notify::notify(&self.0.channel, payload, fds)
    }

    /// Has the domain's thread wake the sleepers of `flag` when the peer goes; the number removes it again.
    pub(crate) fn watch(&self, flag: &Flag) -> u64 {
        self.watch_flag(flag, Watchers::add_flag)
    }

    /// As [`Peer::watch`]; also when the peer rings.
    pub(crate) fn watch_rung(&self, flag: &Flag) -> u64 {
        self.watch_flag(flag, Watchers::add_rung)
    }

    fn watch_flag(&self, flag: &Flag, add: fn(&mut Watchers, &Flag) -> u64) -> u64 {
        if !self.0.channel.is_own() {
            return NOT_WATCHED;
        }
        let number = add(&mut self.watchers(), flag);
        // After it is in: whoever departs meanwhile finds it there, or is found here.
        if !self.is_alive() {
            protocol::rouse(flag);
        }
        number
    }

    /// Has the domain's thread signal `event` when the peer has taken `flag`, when it rings and when it goes; the number removes
    /// it again. Each announcement with the flag sets `is_armed` ([`protocol::announce`]).
    pub(crate) fn watch_event(&self, event: &Event, flag: &Flag, is_armed: &Arc<AtomicBool>) -> u64 {
        if !self.0.channel.is_own() {
            return NOT_WATCHED;
        }
        let number = self.watchers().add_event(event, flag, is_armed);
        // As for a flag.
        if !self.is_alive() {
            event.signal();
        }
        number
    }

    /// Signals those who listen. The domain's thread does it for each packet, after it has read it: a waker whose packet
    /// found no room knows that one is unread, and that its reading is followed by a look at its flag.
    pub(crate) fn signal_listeners(&self, whom: Signalled) {
        let watchers = self.watchers();
        match whom {
            Signalled::All => {
                watchers.events().for_each(Event::signal);
                watchers.rung().for_each(protocol::rouse);
            }
            Signalled::Taken => {
                // Pairs with the barrier of `protocol::wake`.
                fence(Ordering::SeqCst);
                watchers.taken().for_each(Event::signal);
            }
        }
    }

    /// Has every listener of the peer signalled, and who sleeps until it is rung for ([`Peer::watch_rings`]): one packet, which never waits for room. It costs some microseconds; for
    /// changes that the peer cannot see by a flag.
    #[cold]
    pub fn ring(&self) {
        self.send_wake(self.0.branch.as_ref().map_or(WAKE_ALL, |branch| branch.name));
    }

    /// Has the listeners of the peer signalled whose flags were taken, as [`Peer::ring`] does.
    #[cold]
    pub(crate) fn ring_taken(&self) {
        self.send_wake(self.0.branch.as_ref().map_or(WAKE_TAKEN, |branch| branch.name));
    }

    /// Has the listeners of a branch of the peer signalled.
    #[cold]
    pub(crate) fn ring_branch(&self, name: u32) {
        self.send_wake(name);
    }

    fn send_wake(&self, serial: u32) {
        let wake = Header { kind: Kind::Wake, membarrier: false, serial, started_ticks: 0 };
        match self.0.channel.send(wake, &[], &[]) {
            // Packets that are read are followed by a look at the flags of the connection only.
            Err(Errno::AGAIN) if serial != WAKE_TAKEN && self.is_own() => self.0.channel.owe_wake(serial),

            // No room: packets of ours are unread, and the peer's thread looks at the flags after each that it reads.
            // A broken pipe is followed by a hang-up, which tells how the peer went.
            Ok(()) | Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET) => {}
            Err(error) => {
                tracing::warn!(%error, pid = self.pid(), "a peer cannot be woken; it is disconnected");
                self.disconnect();
            }
        }
    }

    /// Undoes [`Peer::watch`], [`Peer::watch_rung`] and [`Peer::watch_event`]. In a forked child it does nothing: nobody is woken there, and the
    /// lock may have been held by a thread that the child does not have.
    pub(crate) fn unwatch(&self, number: u64) {
        if !self.0.channel.is_own() {
            return;
        }
        self.watchers().remove(number);
    }

    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.0.watchers()
    }

    /// What it holds, if nobody else has it.
    pub(crate) fn into_last(self) -> Option<impl Send + use<>> {
        Arc::into_inner(self.0)
    }

    /// Marks the peer as gone and wakes whoever sleeps for it; `false` if it was gone before. Only the domain's thread calls it,
    /// and for a branch whoever gives it up. Those of its branches are woken by [`Peer::sever`].
    pub(crate) fn depart(&self, how: Departure) -> bool {
        let is_first = self.0.presence.depart(how);
        if is_first {
            self.0.rouse();
        }
        is_first
    }
}

impl State {
    /// Not in a forked child: a thread that it does not have may hold the lock.
    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever sleeps or listens.
    fn rouse(&self) {
        let watchers = self.watchers();
        watchers.flags().for_each(protocol::rouse);
        watchers.events().for_each(Event::signal);
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Peer")
            .field("id", &self.0.id.0)
            .field("pid", &self.pid())
            .field("uid", &self.uid())
            .field("departure", &self.departure())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
pub(crate) mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::time::Duration;

    use beeline_mmio::{MemoryOptions, SharedMemory};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::sleeper::MemorySleeper;

    /// More than any test takes; a sleep that is not woken fails by it.
    const LONG: Duration = Duration::from_secs(100);

    /// A peer, and the other end of its connection: this process too.
    pub(crate) fn peer_with_socket() -> (Peer, OwnedFd) {
        let (socket, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let evidence = Evidence::of_peer(other.as_fd()).unwrap();
        (Peer::new(Arc::new(evidence), Arc::new(Channel::new(socket, End::Owner)), true), other)
    }

    /// Has whoever notifies this peer wait until this is dropped.
    pub(crate) fn hold_notifications(peer: &Peer) -> impl Sized + use<'_> {
        crate::outbox::tests::hold(peer.0.channel.outbox())
    }

    fn peer() -> Peer {
        peer_with_socket().0
    }

    fn flag() -> Flag {
        SharedMemory::create("flag", 4096, MemoryOptions::default()).unwrap().map().unwrap().flag(0)
    }

    #[test]
    fn a_departure_wakes_every_sleeper_of_the_peer() {
        let (peer, flags) = (peer(), [flag(), flag()]);
        let _sleepers = flags.clone().map(|flag| MemorySleeper::new(flag, &peer));
        std::thread::scope(|scope| {
            let asleep: Vec<_> = flags
                .iter()
                .map(|flag| {
                    flag.set(protocol::ASLEEP);
                    scope.spawn(|| protocol::park(flag, LONG))
                })
                .collect();
            peer.depart(Departure::Died);
            assert!(asleep.into_iter().all(|thread| thread.join().unwrap()));
        });
        assert_eq!((peer.is_alive(), peer.departure()), (false, Some(Departure::Died)));
    }

    #[test]
    fn sleeper_made_after_a_departure_is_woken() {
        let (peer, flag) = (peer(), flag());
        peer.depart(Departure::Closed);
        flag.set(protocol::ASLEEP);
        let _sleeper = MemorySleeper::new(flag.clone(), &peer);
        assert!(protocol::park(&flag, LONG), "the flag was cleared");
    }

    #[test]
    fn a_dropped_sleeper_is_forgotten() {
        let (peer, flag) = (peer(), flag());
        for _ in 0..10 {
            drop(MemorySleeper::new(flag.clone(), &peer));
        }
        assert_eq!(peer.watchers().flags().count(), 0);
        flag.set(protocol::ASLEEP);
        peer.depart(Departure::Died);
        assert_eq!(flag.load(), protocol::ASLEEP);
    }

    #[test]
    fn severing_wakes_the_sleepers_of_so_many_branches_at_a_time() {
        struct Untold;
        impl EndsBranches for Untold {
            fn end_branch(self: Arc<Self>, _: u32) {}
        }

        let (peer, flags) = (peer(), [flag(), flag(), flag()]);
        let ends: Weak<Untold> = Weak::new();
        let branches = [1, 2, 3].map(|name| peer.branch(name, ends.clone(), None));
        let _sleepers = [0, 1, 2].map(|at| MemorySleeper::new(flags[at].clone(), &branches[at]));
        flags.iter().for_each(|flag| flag.set(protocol::ASLEEP));
        peer.depart(Departure::Died);
        let asleep = || flags.iter().filter(|flag| flag.load() == protocol::ASLEEP).count();
        assert_eq!(asleep(), 3, "a departure wakes none of them, however many there are");
        let mut severed = peer.sever().unwrap();
        assert!(severed.rouse_some(2));
        assert_eq!(asleep(), 1);
        assert!(!severed.rouse_some(2));
        assert_eq!(asleep(), 0);
        assert!(peer.sever().is_none());
        assert_eq!(branches[0].departure(), Some(Departure::Died));
    }

    #[test]
    fn packet_signals_those_whose_flags_were_taken_and_a_ring_signals_all() {
        use crate::event::tests::is_readable;

        let (peer, flags) = (peer(), [flag(), flag()]);
        let events = [(); 2].map(|()| Event::new().unwrap());
        let mut sleepers = [0, 1].map(|at| MemorySleeper::new(flags[at].clone(), &peer));
        let mut announce = || {
            for (sleeper, event) in sleepers.iter_mut().zip(&events) {
                event.clear();
                sleeper.announce(event);
            }
        };
        let readable = || [is_readable(&events[0]), is_readable(&events[1])];
        announce();
        peer.signal_listeners(Signalled::Taken);
        assert_eq!(readable(), [false, false]);
        flags[1].swap(protocol::AWAKE);
        peer.signal_listeners(Signalled::Taken);
        assert_eq!(readable(), [false, true]);
        announce();
        peer.signal_listeners(Signalled::All);
        assert_eq!(readable(), [true, true]);
        announce();
        sleepers[0].unlisten();
        peer.signal_listeners(Signalled::Taken);
        assert_eq!(readable(), [false, false], "it has taken its announcement back");
        peer.depart(Departure::Closed);
        assert_eq!(readable(), [true, true]);
    }

    #[test]
    fn peers_are_told_apart() {
        let ((a, _a_end), (b, b_end)) = (peer_with_socket(), peer_with_socket());
        assert_ne!(a.id(), b.id());
        assert_eq!(a.clone().id(), a.id());
        assert!(a.is_connected_now(), "this process lives");
        a.disconnect();
        assert!(!a.is_connected_now() && b.is_connected_now());
        drop(b_end);
        assert!(!b.is_connected_now() && b.is_alive(), "nobody has told the peer's owners yet");
    }
}
