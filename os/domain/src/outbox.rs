//! What a connection has to say and its socket has no room for yet: answers and notifications, in the order in which they
//! were accepted, and how many notifications the client has not taken.
//!
//! A packet goes to the socket at once if nothing waits before it. Otherwise it waits here, and the domain's thread passes
//! it on when the socket has room. Nobody waits for a client that does not read: its owner is told that there is no room.
//! What waits is bounded: notifications by what the client may leave untaken, answers by [`MAX_WAITING_ANSWERS`].

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::descriptor::{Descriptor, Held};
use crate::socket;
use crate::wire::{
    Header, Kind, MAX_NOTIFICATION_FDS, MAX_UNTAKEN_FDS, MAX_UNTAKEN_NOTIFICATIONS, WireError,
};

/// Answers that wait for room in the socket. A client has one call in progress, so only one that asks on without reading
/// its answers makes more wait; it is disconnected.
const MAX_WAITING_ANSWERS: usize = 4;

/// The packets of one connection that wait for room, and the count of its notifications.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Packet>,
    waiting_notifications: usize,
    /// Descriptors of each notification that the client has not taken, the oldest first.
    untaken: VecDeque<u8>,
    /// Notifications accepted in all.
    accepted: u32,
    /// Notifications that the client has taken in all.
    taken: u32,
    /// Whether a notification was turned away since the client last took some.
    was_full: bool,
    /// On the client's side: notifications that its program has taken in all.
    own_taken: u32,
    /// On the client's side: whether the owner still has to be told of `own_taken`.
    owes_taken: bool,
    /// Branches whose other side is to be woken.
    owed_wakes: BTreeSet<u32>,
    is_closed: bool,
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Packet {
    header: Header,
    payload: Vec<u8>,
    fds: Vec<OwnedFd>,
}

/// How the domain's thread is told that it is to pass packets on.
#[derive(Debug)]
struct Watch {
    epoll: Arc<Descriptor>,
    token: u64,
    /// The socket's number, once it has another than the one by which it came here.
    moved: Option<Held>,
    awaits_room: bool,
    awaits_packets: bool,
}

/// The events of a socket that its domain's thread waits for, but while an answer is being worked on.
pub(crate) const ALWAYS: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is finished before anything that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has an epoll watch the socket, with this token.
    pub(crate) fn watched_by(
        &self,
        epoll: &Arc<Descriptor>,
        socket: BorrowedFd<'_>,
        token: u64,
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        let watch = Watch {
            epoll: Arc::clone(epoll),
            token,
            moved: None,
            // What has been said before found no room and waits.
            awaits_room: !state.waiting.is_empty() || state.owes_taken || !state.owed_wakes.is_empty(),
            awaits_packets: true,
        };
        epoll::add(epoll.hold(), socket, EventData::new_u64(token), watch.flags())?;
        state.watch = Some(watch);
        Ok(())
    }

    /// Has `relocate` give the socket another number, while nobody changes what the epoll tells of it: it is given what the epoll knows
    /// the socket by, and returns the number.
    pub(crate) fn relocate(
        &self,
        relocate: impl FnOnce(EventData, EventFlags) -> Result<Held, Errno>,
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        let Some(watch) = &mut state.watch else { return Ok(()) };
        watch.moved = Some(relocate(EventData::new_u64(watch.token), watch.flags())?);
        Ok(())
    }

    /// Has the domain's thread told of what the peer sends, or not for now.
    pub(crate) fn await_packets(&self, socket: BorrowedFd<'_>, awaits: bool) {
        if let Some(watch) = &mut self.lock().watch {
            watch.awaits_packets = awaits;
            watch.apply(socket);
        }
    }

    /// Sends a notification after everything accepted before it; `false` when the client must take some first.
    pub(crate) fn notify(
        &self,
        socket: BorrowedFd<'_>,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<bool, Errno> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(Errno::PIPE);
        }
        if !state.has_room_for(fds.len()) {
            state.was_full = true;
            return Ok(false);
        }
        let serial = state.accepted.wrapping_add(1);
        let header = Header { kind: Kind::Notify, membarrier: false, serial, started_ticks: 0 };
        let waits = state.pass(socket, header, payload, fds)?;
        state.waiting_notifications += usize::from(waits);
        state.accepted = serial;
        state.untaken.push_back(fds.len() as u8);
        Ok(true)
    }

    /// Sends an answer after everything accepted before it; `AGAIN` for a client that does not read its answers.
    pub(crate) fn answer(
        &self,
        socket: BorrowedFd<'_>,
        header: Header,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.waiting.len() - state.waiting_notifications >= MAX_WAITING_ANSWERS {
            return Err(Errno::AGAIN);
        }
        state.pass(socket, header, payload, fds).map(drop)
    }

    /// The client says how many notifications its program has taken. `true` when one was turned away before and there is
    /// room for any now.
    pub(crate) fn client_took(&self, said: u32) -> Result<bool, WireError> {
        let mut state = self.lock();
        let newly = said.wrapping_sub(state.taken) as usize;
        // What waits here was not sent. A client that could take it in advance could make it grow without bound.
        let sent = state.untaken.len() - state.waiting_notifications;
        if newly == 0 || newly > sent {
            let sent = state.taken.wrapping_add(sent as u32);
            return Err(WireError::NotTaken { said, known: state.taken, sent });
        }
        state.untaken.drain(..newly);
        state.taken = said;
        let has_room = state.has_room_for(MAX_NOTIFICATION_FDS);
        Ok(has_room && std::mem::take(&mut state.was_full))
    }

    /// Tells the owner how many notifications this client's program has taken in all, as soon as there is room for it.
    pub(crate) fn tell_taken(&self, socket: BorrowedFd<'_>, taken: u32) {
        let mut state = self.lock();
        // Of two threads that took some, the one that took the later ones may come here first.
        if taken.wrapping_sub(state.own_taken).cast_signed() > 0 {
            state.own_taken = taken;
            state.owes_taken = true;
            // A broken connection is told by its hang-up.
            let _ = state.pass_on(socket);
        }
    }

    /// Has a branch's other side woken as soon as there is room for it.
    pub(crate) fn owe_wake(&self, socket: BorrowedFd<'_>, branch: u32) {
        let mut state = self.lock();
        state.owed_wakes.insert(branch);
        // A broken connection is told by its hang-up.
        let _ = state.pass_on(socket);
    }

    /// Passes on what waits, as far as there is room.
    pub(crate) fn pass_on(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        self.lock().pass_on(socket)
    }

    /// Says goodbye, with the number of notifications accepted in all, sent or not: who hears it knows whether it got them
    /// all. Nothing is accepted afterwards.
    pub(crate) fn say_goodbye(&self, socket: BorrowedFd<'_>) {
        let mut state = self.lock();
        state.is_closed = true;
        let bye = Header { kind: Kind::Bye, membarrier: false, serial: state.accepted, started_ticks: 0 };
        // Best effort: without it the other side finds out a little later that this process lives.
        let _ = socket::send(socket, bye, &[], &[]);
    }
}

impl State {
    fn has_room_for(&self, fds: usize) -> bool {
        let untaken_fds: usize = self.untaken.iter().map(|count| usize::from(*count)).sum();
        self.untaken.len() < MAX_UNTAKEN_NOTIFICATIONS && untaken_fds + fds <= MAX_UNTAKEN_FDS
    }

    /// Sends a packet, or has it wait; says whether it waits.
    fn pass(
        &mut self,
        socket: BorrowedFd<'_>,
        header: Header,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<bool, Errno> {
        if self.waiting.is_empty() {
            match socket::send(socket, header, payload, fds) {
                Ok(()) => return Ok(false),
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
        let copy = |fd: &BorrowedFd<'_>| fd.try_clone_to_owned();
        let fds = fds.iter().map(copy).collect::<Result<Vec<_>, _>>();
        let fds = fds.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
        self.waiting.push_back(Packet { header, payload: payload.to_vec(), fds });
        self.await_room(socket, true);
        Ok(true)
    }

    fn pass_on(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let passed = self.pass_on_all(socket);
        if passed == Err(Errno::AGAIN) {
            self.await_room(socket, true);
            return Ok(());
        }
        self.await_room(socket, false);
        passed
    }

    fn pass_on_all(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        while let Some(Packet { header, payload, fds }) = self.waiting.front() {
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            socket::send(socket, *header, payload, &fds)?;
            self.waiting_notifications -= usize::from(header.kind == Kind::Notify);
            self.waiting.pop_front();
        }
        if self.owes_taken {
            let header =
                Header { kind: Kind::Taken, membarrier: false, serial: self.own_taken, started_ticks: 0 };
            socket::send(socket, header, &[], &[])?;
            self.owes_taken = false;
        }
        while let Some(serial) = self.owed_wakes.first().copied() {
            let header = Header { kind: Kind::Wake, membarrier: false, serial, started_ticks: 0 };
            socket::send(socket, header, &[], &[])?;
            self.owed_wakes.pop_first();
        }
        Ok(())
    }

    /// Has the domain's thread told, or not, when the socket has room.
    fn await_room(&mut self, socket: BorrowedFd<'_>, awaits: bool) {
        let Some(watch) = &mut self.watch else { return };
        if watch.awaits_room != awaits {
            watch.awaits_room = awaits;
            watch.apply(socket);
        }
    }
}

impl Watch {
    fn flags(&self) -> EventFlags {
        let packets = if self.awaits_packets { ALWAYS } else { EventFlags::empty() };
        let room = if self.awaits_room { EventFlags::OUT } else { EventFlags::empty() };
        packets | room
    }

    fn apply(&self, socket: BorrowedFd<'_>) {
        // Whoever came with a number may have taken it before the socket moved.
        let socket = self.moved.as_ref().map_or(socket, Held::as_fd);
        // A socket that is not in the epoll belongs to a connection that ends, or waits for an answer after a hang-up.
        let _ = epoll::modify(self.epoll.hold(), socket, EventData::new_u64(self.token), self.flags());
    }
}

#[cfg(test)]
#[cfg(not(loom))]
pub(crate) mod tests {
    use std::os::fd::AsRawFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::descriptor::Watching;
    use crate::numbers::Purpose;
    use crate::socket::{PacketBuffer, Received};
    use crate::wire::{MAX_MESSAGE_BYTES, MAX_NOTIFICATION_BYTES};

    const REPLY: Header = Header { kind: Kind::Reply, membarrier: false, serial: 9, started_ticks: 0 };

    /// Has whoever says something wait until this is dropped.
    pub(crate) fn hold(outbox: &Outbox) -> impl Sized + use<'_> {
        outbox.lock()
    }

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    /// Kinds and serials of all that can be read now.
    fn read_all(socket: &OwnedFd) -> Vec<(Kind, u32)> {
        let mut buffer: Box<PacketBuffer> = Box::new([0; MAX_MESSAGE_BYTES + 1]);
        std::iter::from_fn(|| match socket::receive(socket.as_fd(), &mut buffer) {
            Received::Packet(header, ..) => Some((header.kind, header.serial)),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn packets_that_wait_keep_their_order_with_answers() {
        let ((ours, theirs), outbox) = (pair(), Outbox::default());
        let mut accepted = Vec::new();
        for serial in 1..=MAX_UNTAKEN_NOTIFICATIONS as u32 {
            assert_eq!(outbox.notify(ours.as_fd(), &[7; MAX_NOTIFICATION_BYTES], &[]), Ok(true));
            accepted.push((Kind::Notify, serial));
            if serial % 100 == 0 {
                outbox.answer(ours.as_fd(), REPLY, &[], &[]).unwrap();
                accepted.push((Kind::Reply, 9));
            }
        }
        assert!(outbox.lock().waiting_notifications > 0, "the socket has room for all: nothing is tested");
        assert_eq!(outbox.notify(ours.as_fd(), &[], &[]), Ok(false));
        let mut read = Vec::new();
        while read.len() < accepted.len() {
            read.extend(read_all(&theirs));
            outbox.pass_on(ours.as_fd()).unwrap();
        }
        assert_eq!(read, accepted);
        assert!(outbox.lock().waiting.is_empty());
        assert_eq!(outbox.client_took(1), Ok(true));
        assert_eq!(outbox.notify(ours.as_fd(), &[], &[]), Ok(true));
    }

    #[test]
    fn client_takes_no_more_than_it_was_sent() {
        let ((ours, _theirs), outbox) = (pair(), Outbox::default());
        for _ in 0..MAX_UNTAKEN_NOTIFICATIONS {
            assert_eq!(outbox.notify(ours.as_fd(), &[7; MAX_NOTIFICATION_BYTES], &[]), Ok(true));
        }
        let sent = (MAX_UNTAKEN_NOTIFICATIONS - outbox.lock().waiting_notifications) as u32;
        assert!(outbox.client_took(sent + 1).is_err(), "it waits here");
        assert_eq!(outbox.client_took(sent), Ok(false), "nobody was turned away");
        for said in [sent, sent - 1, 0, u32::MAX] {
            assert_eq!(
                outbox.client_took(said),
                Err(WireError::NotTaken { said, known: sent, sent }),
                "{said}"
            );
        }
    }

    #[test]
    fn descriptors_are_bounded_and_free_again_when_taken() {
        let ((ours, _theirs), outbox) = (pair(), Outbox::default());
        let fds = [ours.as_fd(); MAX_NOTIFICATION_FDS];
        for _ in 0..MAX_UNTAKEN_FDS / MAX_NOTIFICATION_FDS {
            assert_eq!(outbox.notify(ours.as_fd(), &[], &fds), Ok(true));
        }
        assert_eq!(outbox.notify(ours.as_fd(), &[], &fds[..1]), Ok(false));
        assert_eq!(outbox.notify(ours.as_fd(), &[], &[]), Ok(true), "without descriptors there is room");
        assert_eq!(outbox.client_took(1), Ok(true));
        assert_eq!(outbox.notify(ours.as_fd(), &[], &fds), Ok(true));
    }

    #[test]
    fn answers_of_a_client_that_reads_none_are_bounded() {
        let ((ours, _theirs), outbox) = (pair(), Outbox::default());
        let payload = [0; 60_000];
        let answers = (0..100).take_while(|_| outbox.answer(ours.as_fd(), REPLY, &payload, &[]).is_ok());
        assert!(answers.count() < 20);
        assert_eq!(outbox.lock().waiting.len(), MAX_WAITING_ANSWERS);
    }

    #[test]
    fn number_from_before_a_move_still_has_the_thread_told_of_room() {
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let event = Arc::new(Descriptor::new(event, Purpose::Event));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let epoll = Arc::new(Descriptor::epoll(epoll, &event, 1).unwrap());
        let ((ours, theirs), outbox) = (pair(), Outbox::default());
        let socket = Descriptor::new(ours, Purpose::Connection);
        outbox.watched_by(&epoll, socket.hold().as_fd(), 2).unwrap();
        let stale = socket.hold();
        let relocate = |token, flags| {
            socket.move_above(700, Some(&Watching { by: &epoll, token, flags }))?;
            Ok(socket.hold())
        };
        outbox.relocate(relocate).unwrap();
        assert_ne!(stale.as_fd().as_raw_fd(), socket.hold().as_fd().as_raw_fd());
        while outbox.lock().waiting.is_empty() {
            outbox.answer(stale.as_fd(), REPLY, &[0; 8192], &[]).unwrap();
        }
        read_all(&theirs);
        let mut events = Vec::with_capacity(4);
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(epoll.hold(), rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap();
        assert_eq!(events.iter().map(|event| event.data.u64()).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn client_tells_the_latest_count_once_there_is_room() {
        let ((ours, theirs), outbox) = (pair(), Outbox::default());
        let call = Header { kind: Kind::Call, ..REPLY };
        while socket::send(ours.as_fd(), call, &[0; 8192], &[]).is_ok() {}
        for taken in [1, 7, 5] {
            outbox.tell_taken(ours.as_fd(), taken);
        }
        assert!(!read_all(&theirs).contains(&(Kind::Taken, 7)));
        outbox.pass_on(ours.as_fd()).unwrap();
        outbox.pass_on(ours.as_fd()).unwrap();
        assert_eq!(read_all(&theirs), [(Kind::Taken, 7)]);
    }
}
