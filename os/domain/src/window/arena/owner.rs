//! The owner's side of one arena: its memory, the windows in it, and what is said to its client.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use beeline_mmio::{Arena, MemoryOptions, Pace, Part, Region, SharedMemory, StoreKernel, Unpaced};
use beeline_spec::LINE_BYTES;
use beeline_spec::escape::blank_from_random;
use beeline_spec::formats::{credit_page, window_control};

use super::messages::{Lease, Note, Tell, Terms};
use super::options::{
    ArenaOptions, BATCH, CONTROL_BYTES, CREDIT_BYTES, KEPT_BYTES, SMALL_BYTES, STOCK, control_offset,
    credit_offset, part_bytes,
};
use super::queue::Queue;
use super::slots::{OutOfPlace, Slots};
use crate::credits::receiver_sleeper;
use crate::peer::EndsBranches;
use crate::protocol::Departure;
use crate::window::ReceiverParts;
use crate::window::options::{WindowError, line_bytes};
use crate::{Disposer, MemoryCreditSink, Notified, Offer, Peer, Refusal, Reply};

/// One client's arena, as its owner has it.
#[derive(Debug)]
pub(super) struct OwnedArena {
    /// The client.
    peer: Peer,
    /// The lines of the windows, behind the control lines.
    region: Region,
    /// The credits of the windows, in the client's memory.
    credits: Region,
    arena: Arena,
    /// Lines of the windows that the client has in stock; 0 if it has none, since they are large.
    stock_lines: u32,
    most_lines: u32,
    queue: Arc<Queue<Opened>>,
    disposer: Disposer,
    /// Whether the disposer is about to give pages back.
    is_reclaiming: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    slots: Slots<Lent>,
    epoch: u8,
    /// Notifications for which the client has to take others first, the oldest first. No more than a few for each window.
    untold: Vec<Note>,
}

/// What a window that is lent has.
#[derive(Debug)]
struct Lent {
    lease: Lease,
    /// Free again when it is dropped.
    _part: Part,
}

/// A window that the client has opened, until the program accepts it.
#[derive(Debug)]
pub(super) struct Opened {
    lease: Lease,
    kernel: Option<StoreKernel>,
    peer: Peer,
    half: Arc<ReceiverHalf>,
}

/// Kept by every handle that a receiver has of a window.
#[derive(Debug)]
struct ReceiverHalf {
    arena: Arc<OwnedArena>,
    name: u32,
}

impl OwnedArena {
    /// Makes the memory of an arena and lends its first windows; `credits` is the client's memory, which is not trusted.
    pub(super) fn make(
        peer: &Peer,
        name: &str,
        options: &ArenaOptions,
        lines: u32,
        credits: OwnedFd,
        queue: &Arc<Queue<Opened>>,
        disposer: &Disposer,
    ) -> Result<(Arc<Self>, Reply), WindowError> {
        let credits = SharedMemory::from_fd(credits, CREDIT_BYTES)?.map_sparse()?;
        let bytes = CONTROL_BYTES + options.bytes;
        let memory = SharedMemory::create(&format!("beeline-arena-{name}"), bytes, MemoryOptions::default())?;
        let region = memory.map_sparse()?;
        let is_small = part_bytes(lines) <= SMALL_BYTES;
        let slots = Slots::new(options.windows);
        let arena = Arc::new(OwnedArena {
            peer: peer.clone(),
            arena: Arena::new(region.clone(), CONTROL_BYTES, KEPT_BYTES),
            region,
            credits,
            stock_lines: if is_small { lines } else { 0 },
            most_lines: options.lines,
            queue: Arc::clone(queue),
            disposer: disposer.clone(),
            is_reclaiming: AtomicBool::new(false),
            state: Mutex::new(State { slots, epoch: 0, untold: Vec::new() }),
        });
        let fd = memory.fd().as_fd().try_clone_to_owned().map_err(|error| WindowError::Malformed {
            what: format!("cannot duplicate the arena's descriptor: {error}"),
        })?;
        let terms = Terms { bytes: options.bytes, lines: options.lines };
        Ok((arena, Reply { payload: terms.encode(), fds: vec![fd] }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is finished before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether windows of so many lines are lent at once, and not by a worker.
    pub(super) fn is_small(lines: u32) -> bool {
        part_bytes(lines) <= SMALL_BYTES
    }

    /// The windows that the client asked for.
    pub(super) fn asked(&self, lines: u32, pace: &dyn Pace) -> Result<Reply, Refusal> {
        if lines > self.most_lines {
            return Err(Refusal::new(format!(
                "a window of {lines} lines, the largest of this arena has {}",
                self.most_lines
            )));
        }
        let most = if lines == self.stock_lines { BATCH } else { 1 };
        let leases = self.lend(lines, most, pace).map_err(Refusal::new)?;
        Ok(Reply::new(Note::Lent(leases).encode()))
    }

    /// Lends up to `most` windows, at least one.
    fn lend(&self, lines: u32, most: u32, pace: &dyn Pace) -> Result<Vec<Lease>, String> {
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
    fn lend_one(&self, lines: u32, pace: &dyn Pace) -> Result<Lease, String> {
        let part = self.arena.lend(line_bytes(lines), pace).map_err(|error| error.to_string())?;
        let random = getrandom::u64().map_err(|error| format!("no random blank: {error}"))?;
        let (blank, offset) = (blank_from_random(random), part.offset_bytes());
        self.region.fill_paced(offset, lines as usize * LINE_BYTES, blank, pace);
        let mut state = self.lock();
        let epoch = state.epoch.wrapping_add(1);
        let lent = state.slots.lend(|name| {
            self.region.fill(control_offset(name), window_control::BYTES, 0);
            let lease = Lease { name, lines, offset_bytes: offset as u64, blank, epoch };
            Lent { lease, _part: part }
        });
        let lease = lent.map(|lent| lent.lease);
        let lease = lease.ok_or_else(|| "this client has as many windows as it may have".to_owned())?;
        state.epoch = epoch;
        Ok(lease)
    }

    /// Lends windows before they are wanted, when few are in stock.
    fn refill(&self) {
        if self.stock_lines == 0 || self.lock().slots.in_stock() > STOCK - BATCH {
            return;
        }
        if let Ok(leases) = self.lend(self.stock_lines, BATCH, &Unpaced) {
            self.note(Note::Lent(leases));
        }
    }

    /// Hears what the client tells.
    ///
    /// # Errors
    /// It is not in order: the client is to be disconnected.
    pub(super) fn told(self: &Arc<Self>, tell: Tell) -> Result<(), OutOfPlace> {
        match tell {
            Tell::Open { name, kernel } => self.opened(name, kernel)?,
            Tell::End { name } => {
                self.lock().slots.sender_ended(name)?;
                self.depart(name);
            }
            Tell::Return { name } => {
                let part = self.lock().slots.returned(name)?;
                self.depart(name);
                self.peer.forget_branch(name);
                self.freed(part);
            }
        }
        self.refill();
        Ok(())
    }

    fn opened(self: &Arc<Self>, name: u32, kernel: Option<StoreKernel>) -> Result<(), OutOfPlace> {
        let lease = self.lock().slots.open(name)?.lease;
        let half = Arc::new(ReceiverHalf { arena: Arc::clone(self), name });
        let weak: Weak<Self> = Arc::downgrade(self);
        let peer = self.peer.branch(name, weak);
        // One that nobody will accept is dropped, which tells its sender.
        drop(self.queue.push(Opened { lease, kernel, peer, half }));
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
        if self.arena.has_surplus() && !self.is_reclaiming.swap(true, Ordering::Relaxed) {
            self.disposer.dispose(Reclaiming(Arc::clone(self)));
        }
    }

    /// Tells the client, after what waits to be told.
    fn note(&self, note: Note) {
        let mut state = self.lock();
        state.untold.push(note);
        self.tell(&mut state);
    }

    /// Passes on what waits, when the client has taken notifications.
    pub(super) fn tell_more(&self) {
        self.tell(&mut self.lock());
    }

    fn tell(&self, state: &mut State) {
        let told = state.untold.iter().take_while(|note| match self.peer.notify(&note.encode(), &[]) {
            Ok(Notified::Accepted) => true,
            Ok(Notified::WouldBlock) => false,
            // Nobody waits for it: the end of the connection says more.
            Err(_) => true,
        });
        let told = told.count();
        state.untold.drain(..told);
    }

    /// The client has gone.
    pub(super) fn end(&self) {
        self.lock().slots.end();
    }
}

impl EndsBranches for OwnedArena {
    fn end_branch(&self, name: u32) {
        if self.lock().slots.receiver_ended(name) {
            self.note(Note::Ended { name });
        }
    }
}

impl Opened {
    /// The receiver's half, which keeps the offer.
    pub(super) fn accept(self, offer: &Arc<Offer>) -> ReceiverParts {
        let Opened { lease, kernel, peer, half } = self;
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
        let left = self.arena.lock().slots.receiver_gone(self.name);
        if left.tells_sender {
            self.arena.note(Note::Ended { name: self.name });
        }
        self.arena.freed(left.part);
    }
}

/// Gives pages back when it is dropped, which the disposer does.
struct Reclaiming(Arc<OwnedArena>);

impl Drop for Reclaiming {
    fn drop(&mut self) {
        // Before it looks: what is freed from here on is told again.
        self.0.is_reclaiming.store(false, Ordering::Relaxed);
        self.0.arena.reclaim(&Unpaced);
    }
}
