//! The owner's side of one arena: its memory, the windows in it, and what is said to its client.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use beeline_mmio::{
    Arena, ArenaError, MemoryOptions, Pace, Part, Region, SharedMemory, StoreKernel, Unpaced,
};
use beeline_spec::LINE_BYTES;
use beeline_spec::escape::blank_from_random;
use beeline_spec::formats::{ARENA_TELLS, arena_client_memory, credit_page, window_control};

use super::messages::{Lease, Note, Tell, Terms};
use super::options::{
    ArenaOptions, BATCH, CLIENT_BYTES, CONTROL_BYTES, CREDIT_BYTES, KEPT_BYTES, STOCK, control_offset,
    credit_offset, part_bytes,
};
use super::queue::{Client, Queue};
use super::slots::{OutOfPlace, Slots};
use super::tells::{Hearer, TellMemory, TellRing};
use super::untold::Untold;
use crate::credits::receiver_sleeper;
use crate::peer::EndsBranches;
use crate::protocol::Departure;
use crate::window::ReceiverParts;
use crate::window::options::{SMALL_BYTES, WindowError, line_bytes};
use crate::{Disposer, MemoryCreditSink, MemorySleeper, Notified, Offer, Peer, Refusal, Reply};

/// What clients have opened, until it is accepted.
pub(super) type Openings = Queue<Opened, OwnedArena>;

/// Entries of a client that are heard at a time: with the windows of as many nobody's death waits for long.
const PIECE: u64 = 64;

/// One client's arena, as its owner has it.
#[derive(Debug)]
pub(super) struct OwnedArena {
    /// The client.
    peer: Peer,
    /// The lines of the windows, behind the control lines.
    region: Region,
    /// The client's memory: the credits of the windows, and what it tells.
    credits: Region,
    told: TellRing,
    /// Sleeps until the client has told something.
    sleeper: MemorySleeper,
    /// Held while the client is heard, by one thread after the other.
    hearer: Mutex<Hearer>,
    /// What the hearer has heard, for a look without the lock.
    heard: AtomicU64,
    /// Whether nothing more is heard of the client: it has gone, or said what is not in order.
    is_deaf: AtomicBool,
    arena: Arena,
    /// Lines of the windows that the client has in stock; 0 if it has none, since they are large.
    stock_lines: u32,
    most_lines: u32,
    /// Gone with the listener and the offer; it has this in turn.
    queue: Weak<Openings>,
    disposer: Disposer,
    /// Whether the disposer is about to give pages back.
    is_reclaiming: AtomicBool,
    /// Whether the disposer is about to hear the client.
    is_to_be_heard: AtomicBool,
    /// Whether a thread lends windows that were not asked for.
    is_refilling: AtomicBool,
    /// As [`State::waits`], for a look without the lock.
    waits: Weak<()>,
    /// Held over no system call and no first touch of a page: the domain's thread takes it.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slots: Slots<Lent>,
    epoch: u8,
    untold: Untold,
    /// Each window that waits to be accepted has one, too. `None` once the client has gone and was heard for the last time.
    waits: Option<Arc<()>>,
}

/// What a window that is lent has.
#[derive(Debug)]
struct Lent {
    lease: Lease,
    /// Free again when it is dropped.
    _part: Part,
}

/// Why no window is lent.
#[derive(Debug, thiserror::Error)]
enum NotLent {
    #[error("a window of {lines} lines, the largest of this arena has {most}")]
    TooLarge { lines: u32, most: u32 },
    #[error("this client has as many windows as it may have")]
    All,
    #[error("no random blank: {0}")]
    NoRandom(getrandom::Error),
    #[error(transparent)]
    Arena(#[from] ArenaError),
    #[error("pages of free windows have to be given back first")]
    NeedsRoom,
}

/// A window that the client has opened, until the program accepts it.
#[derive(Debug)]
pub(super) struct Opened {
    lease: Lease,
    kernel: Option<StoreKernel>,
    peer: Peer,
    half: Arc<ReceiverHalf>,
    _waits: Arc<()>,
}

/// Kept by every handle that a receiver has of a window.
#[derive(Debug)]
struct ReceiverHalf {
    arena: Arc<OwnedArena>,
    name: u32,
}

impl OwnedArena {
    /// Makes the memory of an arena; `credits` is the client's memory, which is not trusted.
    pub(super) fn make(
        peer: &Peer,
        name: &str,
        options: &ArenaOptions,
        lines: u32,
        credits: OwnedFd,
        queue: &Arc<Openings>,
        disposer: &Disposer,
    ) -> Result<(Arc<Self>, Reply), WindowError> {
        let credits = SharedMemory::from_fd(credits, CLIENT_BYTES)?.map_sparse()?;
        let bytes = CONTROL_BYTES + options.bytes;
        let memory = SharedMemory::create(&format!("beeline-arena-{name}"), bytes, MemoryOptions::default())?;
        let region = memory.map_sparse()?;
        let is_small = part_bytes(lines) <= SMALL_BYTES;
        let waiting = credits.flag(CREDIT_BYTES + arena_client_memory::OWNER_WAITING_OFFSET);
        let (slots, waits) = (Slots::new(options.windows), Arc::new(()));
        let arena = Arc::new(OwnedArena {
            peer: peer.clone(),
            arena: Arena::new(region.clone(), CONTROL_BYTES, KEPT_BYTES),
            region,
            told: TellRing::of(&credits),
            sleeper: MemorySleeper::new(waiting, peer),
            hearer: Mutex::default(),
            heard: AtomicU64::new(0),
            is_deaf: AtomicBool::new(false),
            credits,
            stock_lines: if is_small { lines } else { 0 },
            most_lines: options.lines,
            queue: Arc::downgrade(queue),
            disposer: disposer.clone(),
            is_reclaiming: AtomicBool::new(false),
            is_to_be_heard: AtomicBool::new(false),
            is_refilling: AtomicBool::new(false),
            waits: Arc::downgrade(&waits),
            state: Mutex::new(State { slots, epoch: 0, untold: Untold::default(), waits: Some(waits) }),
        });
        let fd = memory.fd().as_fd().try_clone_to_owned().map_err(|error| WindowError::Malformed {
            what: format!("cannot duplicate the arena's descriptor: {error}"),
        })?;
        let terms = Terms { bytes: options.bytes, lines: options.lines };
        queue.join(&arena);
        Ok((arena, Reply { payload: terms.encode(), fds: vec![fd] }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is finished before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The windows that the client asked for.
    pub(super) fn asked(&self, lines: u32, pace: &dyn Pace) -> Result<Reply, Refusal> {
        self.answer(lines, Some(pace)).map_err(|not_lent| Refusal::new(not_lent.to_string()))
    }

    /// As [`OwnedArena::asked`], on the domain's thread; `None` where it takes longer than a constant bounds: for a large window, where
    /// the client has told much or another thread hears it, and where the pages of free windows have to be given back first.
    pub(super) fn asked_at_once(self: &Arc<Self>, lines: u32) -> Option<Result<Reply, Refusal>> {
        // What the client has returned before may be what it gets.
        if part_bytes(lines) > SMALL_BYTES || self.hear_at_once() {
            return None;
        }
        match self.answer(lines, None) {
            Err(NotLent::NeedsRoom) => None,
            answer => Some(answer.map_err(|not_lent| Refusal::new(not_lent.to_string()))),
        }
    }

    fn answer(&self, lines: u32, pace: Option<&dyn Pace>) -> Result<Reply, NotLent> {
        if lines > self.most_lines {
            return Err(NotLent::TooLarge { lines, most: self.most_lines });
        }
        let most = if lines == self.stock_lines { BATCH } else { 1 };
        Ok(Reply::new(Note::Lent(self.lend(lines, most, pace)?).encode()))
    }

    /// Lends up to `most` windows, at least one; without a pace, those for which no room has to be made.
    fn lend(&self, lines: u32, most: u32, pace: Option<&dyn Pace>) -> Result<Vec<Lease>, NotLent> {
        let mut leases = Vec::new();
        while (leases.len() as u32) < most {
            match self.lend_one(lines, pace) {
                Ok(lease) => leases.push(lease),
                Err(reason) if leases.is_empty() => return Err(reason),
                Err(_) => break,
            }
        }
        Ok(leases)
    }

    /// Lends a window: all blank, with a random blank of its own. The client hears of it later, so what it can reach is ready.
    fn lend_one(&self, lines: u32, pace: Option<&dyn Pace>) -> Result<Lease, NotLent> {
        let part = match pace {
            Some(pace) => self.arena.lend(line_bytes(lines), pace)?,
            None => self.arena.lend_at_once(line_bytes(lines))?.ok_or(NotLent::NeedsRoom)?,
        };
        let pace = pace.unwrap_or(&Unpaced);
        let random = getrandom::u64().map_err(NotLent::NoRandom)?;
        let (blank, offset) = (blank_from_random(random), part.offset_bytes());
        self.region.fill_paced(offset, lines as usize * LINE_BYTES, blank, pace);
        let name = self.lock().slots.reserve().ok_or(NotLent::All)?;
        self.region.fill(control_offset(name), window_control::BYTES, 0);
        let mut state = self.lock();
        state.epoch = state.epoch.wrapping_add(1);
        let lease = Lease { name, lines, offset_bytes: offset as u64, blank, epoch: state.epoch };
        state.slots.lend(name, Lent { lease, _part: part });
        Ok(lease)
    }

    /// Lends windows before they are wanted, when few are in stock and the client knows of all of them. One thread at a time does.
    fn refill(self: &Arc<Self>) {
        let has_low_stock = || self.lock().has_low_stock();
        // Acquire and release: who comes next sees what was lent.
        if self.stock_lines == 0 || !has_low_stock() || self.is_refilling.swap(true, Ordering::Acquire) {
            return;
        }
        if has_low_stock()
            && let Ok(leases) = self.lend(self.stock_lines, BATCH, None)
        {
            let mut state = self.lock();
            state.untold.add_leases(leases);
            self.tell(state);
        }
        self.is_refilling.store(false, Ordering::Release);
    }

    /// Entries that were not heard, as the client says.
    fn untaken(&self) -> u64 {
        // Relaxed: who hears has a lock.
        if self.is_deaf.load(Ordering::Relaxed) {
            return 0;
        }
        self.told.told().wrapping_sub(self.heard.load(Ordering::Relaxed))
    }

    /// Hears at most so many entries; whether there may be more.
    fn hear(self: &Arc<Self>, hearer: &mut Hearer, most: u64) -> bool {
        let (before, mut result) = (hearer.heard(), Ok(true));
        for _ in 0..most {
            if self.is_deaf.load(Ordering::Relaxed) {
                return false;
            }
            let heard = hearer.next(&self.told);
            let tell = match heard {
                Ok(Some(entry)) => Tell::decode(entry).ok_or(OutOfPlace),
                Ok(None) => {
                    result = Ok(false);
                    break;
                }
                Err(out_of_place) => Err(out_of_place),
            };
            result = tell.and_then(|tell| self.told(tell)).map(|()| true);
            if result.is_err() {
                break;
            }
        }
        if hearer.heard() != before {
            self.heard.store(hearer.heard(), Ordering::Relaxed);
            self.refill();
        }
        result.unwrap_or_else(|OutOfPlace| {
            self.is_deaf.store(true, Ordering::Relaxed);
            let pid = self.peer.pid();
            tracing::warn!(pid, "a client broke the protocol of its windows; it is disconnected");
            self.peer.disconnect();
            false
        })
    }

    /// What the domain's thread does after each packet of the client: one may have come because something was told, and another one of
    /// those that found no room.
    pub(super) fn packet_came(self: &Arc<Self>) {
        if let Some(queue) = self.queue.upgrade() {
            queue.listen_again(self);
        }
        // Acquire and release, here and in `Hearing`: one that was about to hear sees what was told before this.
        if self.has_told() && self.hear_at_once() && !self.is_to_be_heard.swap(true, Ordering::AcqRel) {
            // The rest takes as long as it is much, and who hears now may have looked for the last time.
            self.disposer.dispose(Hearing(Arc::clone(self)));
        }
    }

    /// Hears a piece on the domain's thread, which waits for no other thread, and does not ask the client how much there is; whether
    /// there may be more.
    fn hear_at_once(self: &Arc<Self>) -> bool {
        match self.hearer.try_lock() {
            Ok(mut hearer) => self.hear(&mut hearer, PIECE),
            Err(TryLockError::Poisoned(hearer)) => self.hear(&mut hearer.into_inner(), PIECE),
            Err(TryLockError::WouldBlock) => true,
        }
    }

    /// Hears one entry.
    ///
    /// # Errors
    /// It is not in order: the client is to be disconnected.
    fn told(self: &Arc<Self>, tell: Tell) -> Result<(), OutOfPlace> {
        match tell {
            Tell::Open { name, kernel } => self.opened(name, kernel)?,
            Tell::End { name } => {
                self.lock().slots.sender_ended(name)?;
                self.depart(name);
            }
            Tell::Return { name } => {
                let part = self.lock().returned(name)?;
                self.depart(name);
                self.peer.forget_branch(name);
                self.freed(part);
            }
        }
        Ok(())
    }

    fn opened(self: &Arc<Self>, name: u32, kernel: Option<StoreKernel>) -> Result<(), OutOfPlace> {
        let (lease, waits) = self.lock().opened(name)?;
        let half = Arc::new(ReceiverHalf { arena: Arc::clone(self), name });
        let weak: Weak<Self> = Arc::downgrade(self);
        let ended = self.credits.word(credit_offset(name) + credit_page::SENDER_ENDED_OFFSET);
        let peer = self.peer.branch(name, weak, Some(ended));
        // One that nobody will accept is dropped, which tells its sender.
        let opened = Opened { lease, kernel, peer, half, _waits: waits };
        drop(match self.queue.upgrade() {
            Some(queue) => queue.push(opened),
            None => Err(opened),
        });
        Ok(())
    }

    /// The sender of a window has given it up.
    fn depart(&self, name: u32) {
        if let Some(peer) = self.peer.find_branch(name) {
            peer.depart(Departure::Closed);
        }
    }

    /// A window is nobody's any more.
    fn freed(self: &Arc<Self>, part: Option<Lent>) {
        drop(part);
        if self.arena.has_surplus() && !self.is_reclaiming.swap(true, Ordering::AcqRel) {
            self.disposer.dispose(Reclaiming(Arc::clone(self)));
        }
    }

    /// Passes on what waits, when the client has taken notifications.
    pub(super) fn tell_more(self: &Arc<Self>) {
        self.tell(self.lock());
        self.refill();
    }

    /// Tells the client what it is still to be told, unless another thread does, which then looks again. Not with the lock held: who
    /// tells may lose its core inside the system call.
    fn tell<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) {
        if !state.untold.begin() {
            return;
        }
        while let Some(note) = state.next_note() {
            drop(state);
            let is_told = self.is_told(&note);
            state = self.lock();
            let left = state.end_note(&note, is_told);
            if left.is_some() {
                drop(state);
                self.freed(left);
                state = self.lock();
            }
        }
    }

    fn is_told(&self, note: &Note) -> bool {
        // Where it fails nobody waits for it: the end of the connection says more.
        !matches!(self.peer.notify(&note.encode(), &[]), Ok(Notified::WouldBlock))
    }

    /// The client has gone: what it told before is heard, and it has nothing any more.
    pub(super) fn end(self: &Arc<Self>) {
        if self.hear_at_once() {
            self.disposer.dispose(Ending(Arc::clone(self)));
        } else {
            self.finish();
        }
    }

    /// The client has gone, and was heard for the last time.
    fn finish(self: &Arc<Self>) {
        self.is_deaf.store(true, Ordering::Relaxed);
        self.lock().end();
        if let Some(queue) = self.queue.upgrade() {
            queue.leave(self);
        }
    }

    /// Hears a client that has gone for the last time.
    pub(super) fn hear_out(arena: Arc<Self>) {
        drop(Ending(arena));
    }

    /// Lives as long as windows of the client wait to be accepted, or may come to.
    pub(super) fn waits(&self) -> Weak<()> {
        Weak::clone(&self.waits)
    }
}

impl Client for OwnedArena {
    #[inline]
    fn has_told(&self) -> bool {
        self.untaken() != 0
    }

    fn hear_some(this: &Arc<Self>) -> bool {
        // What is heard may have this thread drop a window, which tries the lock again and goes on without it.
        this.hear(&mut this.hearer.lock().unwrap_or_else(PoisonError::into_inner), PIECE)
    }

    fn hear_all(this: &Arc<Self>) {
        // A count that is more is no count.
        for _ in 0..=this.untaken().min(ARENA_TELLS as u64) / PIECE {
            if !Self::hear_some(this) {
                return;
            }
        }
    }

    fn sleeper(&self) -> &MemorySleeper {
        &self.sleeper
    }
}

impl State {
    fn has_low_stock(&self) -> bool {
        self.slots.in_stock() <= STOCK - BATCH && !self.untold.has_leases()
    }

    /// The client has opened a window, which is to wait.
    fn opened(&mut self, name: u32) -> Result<(Lease, Arc<()>), OutOfPlace> {
        // It has gone, and who goes on telling is another process, to which it has left its memory.
        let waits = self.waits.as_ref().ok_or(OutOfPlace)?;
        Ok((self.slots.open(name)?.lease, Arc::clone(waits)))
    }

    /// The client has gone: nothing it has told is left.
    fn end(&mut self) {
        self.slots.end();
        self.waits = None;
    }

    /// The client has no handle of a window any more, and need not be told of its end.
    fn returned(&mut self, name: u32) -> Result<Option<Lent>, OutOfPlace> {
        let part = self.slots.returned(name)?;
        self.untold.forget_end(name);
        Ok(part)
    }

    /// What the client is to be told next, if there is something and room for it; whoever told until now goes then.
    fn next_note(&mut self) -> Option<Note> {
        let note = self.untold.next();
        if let Some(Note::Ended { name }) = note {
            self.slots.begin_telling(name);
        }
        note
    }

    /// The client was told, or had no room; gives what a window has that has become nobody's meanwhile.
    fn end_note(&mut self, note: &Note, is_told: bool) -> Option<Lent> {
        self.untold.end(note, is_told);
        match note {
            Note::Ended { name } => self.slots.end_telling(*name),
            Note::Lent(_) => None,
        }
    }
}

impl EndsBranches for OwnedArena {
    fn end_branch(self: Arc<Self>, name: u32) {
        let mut state = self.lock();
        if state.slots.receiver_ended(name) {
            state.untold.add_end(name);
            self.tell(state);
        }
    }
}

impl Opened {
    /// The receiver's half, which keeps the offer.
    pub(super) fn accept(self, offer: &Arc<Offer>) -> ReceiverParts {
        let Opened { lease, kernel, peer, half, _waits } = self;
        let Lease { name, lines, blank, epoch, offset_bytes } = lease;
        let arena = Arc::clone(&half.arena);
        let control = arena.region.part(control_offset(name), window_control::BYTES, Arc::clone(&half));
        let credits = arena.credits.part(credit_offset(name), credit_page::BYTES, Arc::clone(&half));
        let window = arena.region.part(offset_bytes as usize, line_bytes(lines), half);
        let load = window.load_window(0, lines);
        let load = match kernel {
            Some(kernel) => load.for_sender(kernel),
            None => load,
        };
        let mut sink = MemoryCreditSink::new(&credits, &control, &peer).disconnecting();
        sink.keep(Arc::clone(offer));
        let sleeper = receiver_sleeper(&credits, &peer);
        ReceiverParts { load, kernel, sink, peer, blank, epoch, sleeper }
    }
}

impl Drop for ReceiverHalf {
    fn drop(&mut self) {
        // In a child of fork a lock may be held by a thread that is not there, and the window is the parent's.
        if !self.arena.peer.is_own() {
            return;
        }
        // If the client has returned it, nobody has to be told. Not for those that hear now, and perhaps drop this.
        if self.arena.has_told()
            && let Ok(mut hearer) = self.arena.hearer.try_lock()
        {
            self.arena.hear(&mut hearer, PIECE);
        }
        let mut state = self.arena.lock();
        let left = state.slots.receiver_gone(self.name);
        if left.tells_sender {
            state.untold.add_end(self.name);
            self.arena.tell(state);
        } else {
            drop(state);
        }
        self.arena.freed(left.part);
    }
}

/// Hears the client when it is dropped, which the disposer does.
struct Hearing(Arc<OwnedArena>);

impl Drop for Hearing {
    fn drop(&mut self) {
        // Before it hears: what is told from here on is heard again.
        self.0.is_to_be_heard.swap(false, Ordering::AcqRel);
        OwnedArena::hear_all(&self.0);
    }
}

/// Hears a client that has gone for the last time, when it is dropped.
struct Ending(Arc<OwnedArena>);

impl Drop for Ending {
    fn drop(&mut self) {
        OwnedArena::hear_all(&self.0);
        self.0.finish();
    }
}

/// Gives pages back when it is dropped, which the disposer does.
struct Reclaiming(Arc<OwnedArena>);

impl Drop for Reclaiming {
    fn drop(&mut self) {
        // Before it looks: what is freed from here on is told again.
        self.0.is_reclaiming.swap(false, Ordering::AcqRel);
        self.0.arena.reclaim(&Unpaced);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "owner_tests.rs"]
pub(super) mod tests;
