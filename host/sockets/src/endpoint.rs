//! One end of a connection that was worth it: what its reader and its writer know, and how far the two processes are.
//!
//! An endpoint is never freed, and used again for another connection. So a call that comes in at the wrong moment locks something that is
//! there, finds that its number is another thing now, and begins again. Nobody sleeps with a lock.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwapOption;
use beeline_ledger::Path;
use beeline_socket_rules::{Carrier, Row, Why};
use beeline_stream::{Incoming, Outgoing, StreamId, Tcp, TcpError};
use beeline_tcp::Side;
use rustix::io::Errno;

use crate::catch_up::CatchUp;
use crate::counts::{Count, Counts, Traffic};
use crate::debts::Debt;
use crate::forks;
use crate::held;
use crate::lock::{Held, is_held_here, locked, locked_by_turns, try_locked};
use crate::memory::{OtherSleeper, Slot, first_claim};
use crate::quiet::Quiet;
use crate::silence::Silence;
use crate::sleepers::OwnBell;
use crate::waiters::{Kept, Waiters};
use crate::windows::{WindowReader, WindowWriter};
use crate::words::Shared;

pub(crate) type In = Incoming<Shared, Shared, WindowReader, TcpError>;
pub(crate) type Out = Outgoing<Shared, Shared, WindowWriter>;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// No connection has it.
    Free,
    /// Its other end is looked for.
    Meeting,
    /// Both processes know it.
    Agreed,
    /// The kernel's for ever, as soon as what is in its windows is received.
    Forbidden,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) index: u32,
    stage: AtomicU8,
    why: AtomicU8,
    pub(crate) number: AtomicI32,
    /// Other numbers of this process with the same socket.
    pub(crate) copies: AtomicU32,
    pub(crate) cookie: AtomicU64,
    /// The count of forks at which it was made: a child's is larger.
    pub(crate) made_in: AtomicU32,
    /// Children of this process that cannot be the ones that use it: they were made before its last use here, or before it.
    pub(crate) settled_children: AtomicU32,
    /// What this process, or the one that it was forked from, has last claimed its words with.
    claimed: AtomicU64,
    pub(crate) is_nonblocking: AtomicBool,
    /// Whether its senders ring nobody: the words of bells are of the process that it was forked from.
    has_no_bells: AtomicBool,
    /// Whether a reset was told that the kernel knows nothing of: once.
    pub(crate) end_was_told: AtomicBool,
    /// Whether its bytes go by the window, so that there is room for some, in the window or in the socket.
    pub(crate) sends_by_window: AtomicBool,
    /// Bytes came by the socket, and nothing was sent since by which the kernel would acknowledge them.
    pub(crate) owes_acknowledgement: AtomicBool,
    /// Whether the thread in the background looks if its bytes are taken.
    pub(crate) is_watched: AtomicBool,
    /// Whether bytes may come by the window.
    pub(crate) may_have_news: AtomicBool,
    /// The cookie of the connection that the program's set has room for, so that its window may begin.
    pub(crate) admitted: AtomicU64,
    pub(crate) counts: Counts,
    /// The socket under a number of the library's, once the program has closed its own while calls waited at it.
    pub(crate) kept: Mutex<Option<Kept>>,
    pub(crate) is_kept: AtomicBool,
    /// Threads that want a lock that somebody has who spins.
    pub(crate) wanted: AtomicU32,
    has_connected: AtomicBool,
    is_unix: AtomicBool,
    pub(crate) meeting: Mutex<Option<Meeting>>,
    /// What is known of its window without a lock.
    pub(crate) quiet: ArcSwapOption<Quiet>,
    /// Where its process lists it, for who has no other lock.
    row: Mutex<Option<Arc<Row>>>,
    /// Taken before the writer's where both are.
    reader: Mutex<Reader>,
    writer: Mutex<Writer>,
    /// Held while the list of bells is changed.
    bells: Mutex<[Option<Arc<OwnBell>>; 4]>,
}

/// What both processes have to know of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub side: Side,
    pub is_unix: bool,
    pub agreed: Option<AgreedSlot>,
    /// Whether both ends have said if they want copies: it is asked once, so that no word that changes later makes them differ.
    pub is_decided: bool,
}

/// Where its words are, and whose socket is at the other end.
#[derive(Clone, Debug)]
pub(crate) struct AgreedSlot {
    pub slot: Slot,
    pub other_cookie: u64,
    /// The process at the other end; none where it is this one.
    pub peer: Option<beeline_domain::Peer>,
    /// Whether windows have checked messages, and their senders keep copies: the rules at either end want it.
    pub is_kept: bool,
}

impl AgreedSlot {
    /// What its windows are checked by, of the direction from the one socket to the other one, where they are.
    pub(crate) fn checked(&self, sender: u64, receiver: u64) -> Option<StreamId> {
        self.is_kept.then(|| StreamId::new(sender, receiver))
    }

    /// Whether the process at the other end has ended.
    pub(crate) fn has_gone(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.departure().is_some())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub stream: Option<In>,
    pub slot: Option<AgreedSlot>,
    pub is_stopping: bool,
    /// Calls that wait for bytes.
    pub inside: Waiters,
    /// What the socket failed with behind bytes that were given: the kernel tells it once.
    pub failed: Option<Errno>,
    /// Looks that the spinning before a sleep has now, as a share of what is set: 1 is all.
    pub spin_shift: u8,
    pub window_bytes: usize,
    /// Where its process lists it.
    pub row: Option<Arc<Row>>,
}

#[derive(Debug, Default)]
pub(crate) struct Writer {
    pub stream: Option<Out>,
    pub slot: Option<AgreedSlot>,
    pub is_down_for_ever: bool,
    /// Calls that wait for room.
    pub inside: Waiters,
    /// Whether it has had a window; no other one is offered.
    pub had_window: bool,
    /// What is known of a receiver whose bytes are kept, and may be lost without its seeing it.
    pub silence: Option<Silence>,
    /// Calls until going up is tried again.
    pub rest: u32,
    /// How its receiver catches up while it is on the socket.
    pub catch_up: CatchUp,
    pub failed: Option<Errno>,
    /// Whom the other side wants to be rung, as it was found last.
    pub sleepers: [Option<(u16, OtherSleeper)>; 4],
    pub needs_fence: bool,
    /// Bytes that come back, behind which its program sends.
    pub debt: Option<Arc<Mutex<Debt>>>,
    /// The question for bytes that it has answered last.
    pub answered: u64,
    /// Where its process lists it.
    pub row: Option<Arc<Row>>,
}

impl Writer {
    /// [`Writer::rest`] of one that does not go up again.
    pub(crate) const NEVER: u32 = u32::MAX;

    /// The next call tries to go up, if any does.
    pub(crate) fn try_up_soon(&mut self) {
        if self.rest != Self::NEVER {
            self.rest = 0;
        }
    }
}

impl Endpoint {
    pub(crate) fn new(index: u32) -> Self {
        Endpoint {
            index,
            stage: AtomicU8::new(Stage::Free as u8),
            why: AtomicU8::new(0),
            number: AtomicI32::new(-1),
            copies: AtomicU32::new(0),
            cookie: AtomicU64::new(0),
            made_in: AtomicU32::new(0),
            settled_children: AtomicU32::new(0),
            claimed: AtomicU64::new(0),
            is_nonblocking: AtomicBool::new(false),
            has_no_bells: AtomicBool::new(false),
            end_was_told: AtomicBool::new(false),
            sends_by_window: AtomicBool::new(false),
            owes_acknowledgement: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            may_have_news: AtomicBool::new(false),
            admitted: AtomicU64::new(0),
            counts: Counts::default(),
            kept: Mutex::new(None),
            is_kept: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            has_connected: AtomicBool::new(false),
            is_unix: AtomicBool::new(false),
            meeting: Mutex::new(None),
            quiet: ArcSwapOption::empty(),
            row: Mutex::new(None),
            reader: Mutex::default(),
            writer: Mutex::default(),
            bells: Mutex::default(),
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Stage::Free as u8 => Stage::Free,
            stage if stage == Stage::Meeting as u8 => Stage::Meeting,
            stage if stage == Stage::Agreed as u8 => Stage::Agreed,
            _ => Stage::Forbidden,
        }
    }

    /// Moves on, unless it is the kernel's for ever.
    pub(crate) fn come_to(&self, from: Stage, to: Stage) -> bool {
        self.stage.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Why it is the kernel's, if it is.
    pub fn why(&self) -> Option<Why> {
        Why::of_code(u64::from(self.why.load(Ordering::Relaxed)))
    }

    pub(crate) fn lock_reader(&self) -> Held<'_, Reader> {
        locked_by_turns(&self.reader, &self.wanted)
    }

    pub(crate) fn lock_writer(&self) -> Held<'_, Writer> {
        locked(&self.writer)
    }

    pub(crate) fn try_lock_reader(&self) -> Option<Held<'_, Reader>> {
        try_locked(&self.reader)
    }

    pub(crate) fn try_lock_writer(&self) -> Option<Held<'_, Writer>> {
        try_locked(&self.writer)
    }

    /// Whether no other process of the family can have used it since this one did: two loads.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.made_in.load(Ordering::Relaxed) == forks::forks()
            && self.settled_children.load(Ordering::Relaxed) == forks::children()
    }

    /// Takes it for a connection.
    pub(crate) fn begin(&self, number: RawFd, cookie: u64, meeting: Meeting, is_nonblocking: bool) {
        *self.lock_reader() = Reader::default();
        *self.lock_writer() = Writer::default();
        *locked(&self.bells) = [const { None }; 4];
        self.has_connected.store(meeting.side == Side::Connected, Ordering::Relaxed);
        self.is_unix.store(meeting.is_unix, Ordering::Relaxed);
        *locked(&self.meeting) = Some(meeting);
        *locked(&self.row) = None;
        self.forget_quiet();
        self.number.store(number, Ordering::Relaxed);
        self.copies.store(0, Ordering::Relaxed);
        self.cookie.store(cookie, Ordering::Relaxed);
        self.made_in.store(forks::forks(), Ordering::Relaxed);
        self.settled_children.store(forks::children(), Ordering::Relaxed);
        self.claimed.store(first_claim(cookie), Ordering::Relaxed);
        self.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
        self.has_no_bells.store(false, Ordering::Relaxed);
        self.end_was_told.store(false, Ordering::Relaxed);
        self.sends_by_window.store(false, Ordering::Relaxed);
        self.owes_acknowledgement.store(false, Ordering::Relaxed);
        self.is_watched.store(false, Ordering::Relaxed);
        self.may_have_news.store(false, Ordering::Relaxed);
        self.counts.clear();
        self.why.store(0, Ordering::Relaxed);
        self.stage.store(Stage::Meeting as u8, Ordering::Release);
    }

    /// Sets have it: what they know of the window is known no more.
    fn forget_quiet(&self) {
        self.quiet.swap(None).iter().for_each(|quiet| quiet.end());
    }

    /// Lists it on the board of its process.
    pub(crate) fn list(&self, row: Row) {
        let row = Arc::new(row);
        row.set_why(self.why().or(Some(Why::PeerUnknown)));
        self.lock_reader().row = Some(Arc::clone(&row));
        self.lock_writer().row = Some(Arc::clone(&row));
        *locked(&self.row) = Some(row);
    }

    /// Of a connection that has ended: it may have been listed behind that.
    pub(crate) fn unlist(&self) {
        self.lock_reader().row = None;
        self.lock_writer().row = None;
        *locked(&self.row) = None;
    }

    pub(crate) fn count_sleep(&self) {
        let reader = self.lock_reader();
        self.counts.add(Count::Sleeps, 1);
        reader.row.iter().for_each(|row| row.slept());
    }

    /// Lists the process at the other end.
    pub(crate) fn set_peer_pid(&self, pid: u32) {
        locked(&self.row).iter().for_each(|row| row.set_peer_pid(pid));
    }

    /// The two processes have agreed.
    pub(crate) fn agree(&self, agreed: AgreedSlot) -> bool {
        self.quiet.store(Some(Arc::new(Quiet::new(agreed.slot.arrivals()))));
        if let Some(meeting) = locked(&self.meeting).as_mut() {
            meeting.agreed = Some(agreed);
        }
        let has_come = self.come_to(Stage::Meeting, Stage::Agreed);
        self.tell_why(held::are_down());
        has_come
    }

    /// What was agreed on, once the other side's words are in order.
    pub(crate) fn agreed(&self) -> Option<(Side, AgreedSlot)> {
        if self.stage() != Stage::Agreed || is_held_here(&self.meeting) {
            return None;
        }
        {
            let mut meeting = locked(&self.meeting);
            let Meeting { side, agreed, is_decided, .. } = meeting.as_mut()?;
            let agreed = agreed.as_mut().filter(|agreed| agreed.slot.is_open(agreed.other_cookie))?;
            if !*is_decided && let Some(other_wants_copies) = agreed.slot.other_wants_copies() {
                // It has to be the same at both ends.
                agreed.is_kept |= other_wants_copies;
                *is_decided = true;
            }
            if *is_decided {
                return Some((*side, agreed.clone()));
            }
        }
        self.forbid(Why::PeerVersion);
        None
    }

    pub(crate) fn side(&self) -> Side {
        if self.has_connected.load(Ordering::Relaxed) { Side::Connected } else { Side::Accepted }
    }

    /// Whether it is a stream of `AF_UNIX`.
    #[inline]
    pub(crate) fn is_unix(&self) -> bool {
        self.is_unix.load(Ordering::Relaxed)
    }

    /// Its socket, as the paths use it that ask for no count.
    #[inline]
    pub(crate) fn socket<'a>(&self, socket: BorrowedFd<'a>) -> Tcp<BorrowedFd<'a>> {
        if self.is_unix() { Tcp::of_unix(socket, 0) } else { Tcp::new(socket, self.side()) }
    }

    /// Whether the calling handler has interrupted its own thread while that received, and holds what it needs for that.
    #[inline]
    pub(crate) fn is_read_here(&self) -> bool {
        is_held_here(&self.reader)
    }

    /// As [`Self::is_read_here`], of sending.
    #[inline]
    pub(crate) fn is_written_here(&self) -> bool {
        is_held_here(&self.writer)
    }

    /// Says that it is the kernel's from now on.
    pub(crate) fn forbid(&self, why: Why) {
        let told = self.why.compare_exchange(0, why.code(), Ordering::Relaxed, Ordering::Relaxed);
        if told.is_ok() {
            tracing::debug!(number = self.number.load(Ordering::Relaxed), ?why, "back to the kernel");
        }
        if self.stage() != Stage::Free {
            self.stage.store(Stage::Forbidden as u8, Ordering::Release);
        }
        if !is_held_here(&self.row) {
            locked(&self.row).iter().for_each(|row| row.set_why(Some(why)));
        }
    }

    /// Sends by the kernel from now on, for ever: what is in the window is received first, or sent anew where copies are kept. Where that cannot be done
    /// now, the stream is as it was, and the next call does it.
    pub(crate) fn send_no_more(&self, writer: &mut Writer, socket: Option<BorrowedFd<'_>>) {
        self.sends_by_window.store(false, Ordering::Relaxed);
        match &writer.slot {
            Some(agreed) if agreed.is_kept => {
                if !self.leave(writer, socket) {
                    return;
                }
            }
            _ => self.go_down(writer),
        }
        writer.stream = None;
        writer.is_down_for_ever = true;
    }

    /// Sends by the socket from now on, until it is tried again.
    pub(crate) fn go_down(&self, writer: &mut Writer) {
        self.sends_by_window.store(false, Ordering::Relaxed);
        let Some(stream) = &mut writer.stream else { return };
        if stream.path() == Path::Window {
            stream.go_down();
            self.count_down(writer);
        }
    }

    pub(crate) fn count_down(&self, writer: &Writer) {
        self.counts.add(Count::Downs, 1);
        writer.row.iter().for_each(|row| row.sends_by(Carrier::Socket));
    }

    /// Says why it is the kernel's, for ever or for now, to whoever looks.
    pub(crate) fn tell_why(&self, is_held: bool) {
        if let (Stage::Agreed | Stage::Forbidden, Some(row)) = (self.stage(), &*locked(&self.row)) {
            row.set_why(self.why().or(is_held.then_some(Why::Down)));
        }
    }

    /// What went over it since it was worth it.
    pub fn traffic(&self) -> Traffic {
        self.counts.traffic()
    }

    /// Makes it this process's, if it was forked after the last use, or has children that have a copy: of a family, whoever uses it first has it,
    /// because what others know of it is of before. One of which nothing was carried yet is the kernel's.
    #[cold]
    pub(crate) fn claim(&self) -> bool {
        let slot = self.lock_reader().slot.clone().or_else(|| self.lock_writer().slot.clone());
        // Of threads that come at once the first claims it for all.
        let alone = locked(&self.meeting);
        let children = forks::children();
        if self.is_settled() {
            return true;
        }
        if let Some(agreed) = slot {
            let Some(claimed) = agreed.slot.claim(self.claimed.load(Ordering::Relaxed)) else { return false };
            self.claimed.store(claimed, Ordering::Relaxed);
        } else {
            // Nothing says who of the family uses it.
            self.forbid(Why::Forked);
        }
        self.settled_children.store(children, Ordering::Relaxed);
        // Before the writer's lock, which is taken before this one elsewhere.
        drop(alone);
        // What was ordered while nobody knew whose it is.
        if held::are_down() {
            self.go_down(&mut self.lock_writer());
        }
        true
    }

    /// Makes an end that this process was forked with its own, and has it go back to the kernel: its words say where it is, its bells are its
    /// parent's.
    #[cold]
    pub(crate) fn adopt(&self) -> bool {
        // A thread of the parent's that was inside has left it half done.
        let (Ok(reader), Ok(mut writer), Ok(mut bells), Ok(_meeting)) =
            (self.reader.try_lock(), self.writer.try_lock(), self.bells.try_lock(), self.meeting.try_lock())
        else {
            return false;
        };
        let slot = reader.slot.clone().or_else(|| writer.slot.clone());
        // Its parent pays what was owed at the fork, and this one would send before that.
        if writer.debt.take().is_some_and(|debt| debt.try_lock().map_or(true, |debt| !debt.is_paid())) {
            return false;
        }
        if let Some(agreed) = &slot {
            if agreed.slot.claim(self.claimed.load(Ordering::Relaxed)).is_none() {
                return false;
            }
            agreed.slot.set_own_rung(0);
            self.forget_quiet();
        }
        bells.iter_mut().for_each(|bell| std::mem::forget(bell.take()));
        writer.needs_fence = true;
        self.made_in.store(forks::forks(), Ordering::Relaxed);
        self.settled_children.store(0, Ordering::Relaxed);
        self.has_no_bells.store(true, Ordering::Relaxed);
        true
    }

    /// Lets it go when its connection has ended: nothing of it is used from here on. Returns the cookie of its socket.
    pub(crate) fn end(&self, socket: Option<BorrowedFd<'_>>) -> u64 {
        let mut reader = self.lock_reader();
        let mut writer = self.lock_writer();
        if let Some(stream) = &mut reader.stream {
            stream.end();
        }
        self.send_no_more(&mut writer, socket);
        // Of one that cannot be left now: nobody knows it from here on.
        self.go_down(&mut writer);
        let slot = reader.slot.take().or_else(|| writer.slot.take());
        (*reader, *writer) = (Reader::default(), Writer::default());
        if let Some(agreed) = slot {
            let mut bells = locked(&self.bells);
            for bell in bells.iter_mut().filter_map(Option::take) {
                bell.leave(agreed.slot.memory());
            }
            agreed.slot.set_own_rung(0);
            agreed.slot.sent_returns().refuse_all();
        }
        self.may_have_news.store(false, Ordering::Relaxed);
        self.forget_quiet();
        (*locked(&self.meeting), *locked(&self.row)) = (None, None);
        self.stage.store(Stage::Free as u8, Ordering::Release);
        self.cookie.load(Ordering::Relaxed)
    }

    /// Has the sender ring this bell when it has stored something; false where four others are rung already.
    pub fn add_bell(&self, bell: &Arc<OwnBell>) -> bool {
        if self.has_no_bells.load(Ordering::Relaxed) {
            return false;
        }
        // Held until it is written, or the connection could end meanwhile and another one be in its place.
        let reader = self.lock_reader();
        let Some(agreed) = &reader.slot else { return false };
        let mut bells = locked(&self.bells);
        if bells.iter().flatten().any(|own| own.id() == bell.id()) {
            // Of a call that its thread has left by a jump.
            return true;
        }
        let Some(free) = bells.iter().position(Option::is_none) else { return false };
        bell.join(agreed.slot.memory());
        bells[free] = Some(Arc::clone(bell));
        let before = agreed.slot.own_rung();
        agreed.slot.set_own_rung(with_place(before, free, bell.id().0));
        if before == 0 {
            self.quiet.load().iter().for_each(|quiet| quiet.tell());
        }
        true
    }

    /// The sender need not ring it any more.
    pub fn remove_bell(&self, bell: &OwnBell) {
        let reader = self.lock_reader();
        let Some(agreed) = &reader.slot else { return };
        let mut bells = locked(&self.bells);
        let is_it = |own: &Option<Arc<OwnBell>>| own.as_ref().is_some_and(|own| own.id() == bell.id());
        if let Some(at) = bells.iter().position(is_it) {
            bells[at] = None;
            if !bell.is_of_this_process() {
                return;
            }
            let rest = with_place(agreed.slot.own_rung(), at, 0);
            if rest == 0 {
                // Before the sender counts no more.
                self.quiet.load().iter().for_each(|quiet| quiet.end());
            }
            agreed.slot.set_own_rung(rest);
            bell.leave(agreed.slot.memory());
        }
    }

    /// Wakes whoever of this process sleeps by it.
    pub(crate) fn ring_bells(&self) {
        locked(&self.bells).iter().flatten().for_each(|bell| bell.ring());
    }

    /// Has the other process look what is asked of it, also if its program sends nothing.
    pub(crate) fn ring_other_thread(agreed: &AgreedSlot) {
        let memory = agreed.slot.memory();
        crate::sleepers::ring_other(memory, &memory.other_sleeper(0));
    }

    /// Resets a connection of which the next byte is not known, at both ends.
    pub(crate) fn reset(&self, socket: BorrowedFd<'_>, why: &dyn std::fmt::Display) -> Errno {
        tracing::warn!(number = self.number.load(Ordering::Relaxed), %why, "a connection is reset");
        self.forbid(Why::Broken);
        if let Err(error) = beeline_tcp::reset(socket) {
            tracing::debug!(%error, "the kernel did not reset it");
        }
        Errno::CONNRESET
    }
}

fn with_place(bells: u64, place: usize, id: u16) -> u64 {
    bells & !(0xffff << (16 * place)) | u64::from(id) << (16 * place)
}
