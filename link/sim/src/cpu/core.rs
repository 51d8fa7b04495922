//! A core: what a program on it does, one operation after the other, each at its cost.
//!
//! Operations are carried out as far ahead as they can be known: until one has to wait for something that is not yet
//! decided (room in the outlet, an acknowledgement, an answer). What follows it is queued.

use std::collections::VecDeque;

use super::interrupts::Interrupts;
use super::write_combining::{Blocked, Kept, Outlet, Piece, WriteCombining};
use super::{CoreSettings, FenceAck};
use crate::des::{Picoseconds, Stream};

/// Interrupts of an idle core that are looked at, in the mean: handlers that follow each other without end are fewer.
const IDLE_INTERRUPTS: u64 = 64;

/// Something that a program does which takes time or leaves the core.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Stores words of a line to write-combining memory.
    Store(Piece),
    /// Stores at most 8 bytes to uncached memory; what write-combining buffers hold leaves first.
    StoreUncached(Piece),
    /// Loads from uncached memory; what write-combining buffers hold leaves first. The core stands still until the answer
    /// is there.
    Load(Load),
    /// Makes earlier stores visible before later ones.
    Fence,
    /// Does something else for so long.
    Work(Picoseconds),
}

/// An uncached load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Offset in the address space of the device.
    pub offset_bytes: u64,
    /// Bytes, at most those of the widest load.
    pub length_bytes: u32,
    /// Chosen by the caller; the answer carries it.
    pub number: u16,
}

/// Where the stores and loads of a core leave for the root complex.
pub trait CoreOutlet: Outlet {
    /// A load leaves at `at`. Only called with room.
    fn leave_load(&mut self, at: Picoseconds, load: Load);

    /// Nothing that leaves from now on overtakes what has left.
    fn fenced(&mut self);

    /// How many pieces will be acknowledged of those that left since it was last asked.
    fn take_left(&mut self) -> u32;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    Room,
    Acknowledgement,
    Answer,
}

/// A core and its write-combining buffers.
#[derive(Debug)]
pub struct Core {
    settings: CoreSettings,
    buffers: WriteCombining,
    operations: VecDeque<Operation>,
    waits: Waits,
    /// Until when everything is done that was asked for, as far as it is known.
    clock: Picoseconds,
    /// Pieces that left and are not acknowledged, where fences wait for that.
    unacknowledged: u32,
    last_acknowledged: Picoseconds,
    /// Time in which the core did something or stood still because of it; polls that found nothing and waiting for a turn
    /// are not in it.
    worked: Picoseconds,
    interrupts: Interrupts,
    /// Handlers of interrupts that came while it waited; they run before it goes on.
    owed: Picoseconds,
}

impl Core {
    /// A core that has nothing to do. What its buffers do at random comes from one stream, its interrupts from another.
    pub fn new(settings: CoreSettings, random: Stream, interrupts: Stream) -> Self {
        let interrupts = Interrupts::new(settings.interrupt_interval, interrupts);
        let buffers = WriteCombining::new(&settings, random);
        Core {
            settings,
            buffers,
            operations: VecDeque::new(),
            waits: Waits::Nothing,
            clock: Picoseconds::ZERO,
            unacknowledged: 0,
            last_acknowledged: Picoseconds::ZERO,
            worked: Picoseconds::ZERO,
            interrupts,
            owed: Picoseconds::ZERO,
        }
    }

    /// Returns the parameters the core was made with.
    pub fn settings(&self) -> &CoreSettings {
        &self.settings
    }

    /// Until when it is busy with what is known; [`Core::is_ready`] says whether that is all.
    #[inline]
    pub fn clock(&self) -> Picoseconds {
        self.clock
    }

    /// Whether everything that was asked for is done, or known to be done at [`Core::clock`].
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.waits == Waits::Nothing
    }

    /// Time in which it did something, standing still until that could be done included.
    pub fn worked(&self) -> Picoseconds {
        self.worked
    }

    /// It did nothing until then but handle interrupts, which may take it beyond.
    #[inline]
    pub fn pass_to(&mut self, to: Picoseconds, outlet: &mut impl CoreOutlet) {
        if self.interrupts.next() <= to {
            // Of those that came while it did nothing only the last can still be under way.
            if !self.buffers.is_filling() {
                self.interrupts.forget_until(to.since(self.settings.interrupt_interval * IDLE_INTERRUPTS));
            }
            self.interrupted_until(to, outlet);
        }
        self.clock = self.clock.max(to);
    }

    /// Interrupts at random that have come so far, as far as its clock goes.
    pub fn interrupts(&self) -> u64 {
        self.interrupts.served()
    }

    /// The program does something next.
    #[inline]
    pub fn execute(&mut self, mut operation: Operation, outlet: &mut impl CoreOutlet) {
        if self.waits != Waits::Nothing || !self.step(&mut operation, outlet) {
            self.operations.push_back(operation);
        }
    }

    /// As [`Core::execute`] of a store, with the words where they are: most of what a core does are whole lines that leave at
    /// once, and copying them from hand to hand is a good part of what they cost.
    #[inline]
    pub fn store(&mut self, piece: &Piece, outlet: &mut impl CoreOutlet) {
        if self.waits != Waits::Nothing || self.interrupts.next() < Picoseconds::NEVER {
            self.execute(Operation::Store(*piece), outlet);
            return;
        }
        let before = self.clock;
        let done = self.buffers.store(before, piece, &self.settings, outlet).map_err(|Blocked| Waits::Room);
        if !self.is_done(before, done, outlet) {
            self.operations.push_back(Operation::Store(*piece));
        }
    }

    /// As [`Core::execute`] of something that takes so long.
    #[inline]
    pub fn work(&mut self, span: Picoseconds, outlet: &mut impl CoreOutlet) {
        if self.waits != Waits::Nothing {
            self.operations.push_back(Operation::Work(span));
            return;
        }
        let before = self.clock;
        self.is_done(before, Ok(before + span), outlet);
    }

    /// Continues what waited, because the outlet has room at `now`.
    pub fn room_returned(&mut self, now: Picoseconds, outlet: &mut impl CoreOutlet) {
        self.buffers.port_taken_until(now);
        self.buffers.drain(now, &self.settings, outlet);
        self.unacknowledged += outlet.take_left();
        if self.waits == Waits::Room {
            self.resume(now, outlet);
        }
    }

    /// One of its pieces is acknowledged; word of it is there at `at`. Returns whether the core has waited for that.
    #[inline]
    pub fn acknowledged(&mut self, at: Picoseconds, outlet: &mut impl CoreOutlet) -> bool {
        self.unacknowledged -= 1;
        self.last_acknowledged = self.last_acknowledged.max(at);
        let resumes = self.waits == Waits::Acknowledgement && self.unacknowledged == 0;
        if resumes {
            self.resume(self.last_acknowledged, outlet);
        }
        resumes
    }

    /// The answer to its load is there at `now`.
    pub fn answered(&mut self, now: Picoseconds, outlet: &mut impl CoreOutlet) {
        debug_assert_eq!(self.waits, Waits::Answer, "an answer that nothing waits for");
        self.operations.pop_front();
        self.resume(now + self.settings.uncached_load, outlet);
    }

    /// Lines that wait may leave until `now`; lines that are not full leave if it is time. Returns when to look again.
    pub fn tend(&mut self, now: Picoseconds, outlet: &mut impl CoreOutlet) -> Option<Picoseconds> {
        self.buffers.drain(now, &self.settings, outlet);
        self.buffers.expire(now, &self.settings, outlet);
        if self.is_interrupted().is_some_and(|at| at <= now) {
            self.interrupted_until(now, outlet);
        }
        self.unacknowledged += outlet.take_left();
        self.tend_at(outlet)
    }

    /// When lines that wait, or are not full, want to be tended.
    #[inline]
    pub fn tend_at(&self, outlet: &impl CoreOutlet) -> Option<Picoseconds> {
        let expires = self.buffers.expires_at(&self.settings);
        self.looks_again(outlet).into_iter().chain(expires).chain(self.is_interrupted()).min()
    }

    /// An interrupt at `now`, which is not before the core's clock unless it waits: what the buffers hold leaves, and the
    /// handler runs, or will when what the core waits for has come.
    pub fn interrupt(&mut self, now: Picoseconds, outlet: &mut impl CoreOutlet) {
        self.buffers.flush(now, &self.settings, outlet);
        self.unacknowledged += outlet.take_left();
        let handler = self.settings.interrupt;
        if self.waits != Waits::Nothing {
            self.owed += handler;
        } else if handler > Picoseconds::ZERO {
            self.clock = self.clock.max(now) + handler;
        }
    }

    /// When an interrupt comes that a core with nothing to do must be told of: it holds a line that leaves then. One that
    /// waits handles interrupts when it goes on.
    #[inline]
    fn is_interrupted(&self) -> Option<Picoseconds> {
        (self.buffers.is_filling() && self.is_ready() && self.interrupts.next() < Picoseconds::NEVER)
            .then(|| self.interrupts.next())
    }

    /// The interrupts that came by `until`, of a core that waits for nothing.
    #[cold]
    fn interrupted_until(&mut self, until: Picoseconds, outlet: &mut impl CoreOutlet) {
        while self.interrupts.next() <= until {
            let at = self.interrupts.next().max(self.clock);
            self.interrupts.take();
            self.interrupt(at, outlet);
        }
    }

    /// The interrupts that came while the core did what it did last; more may come while it handles them.
    #[cold]
    fn interrupted(&mut self, outlet: &mut impl CoreOutlet) {
        while self.interrupts.next() <= self.clock {
            self.interrupted_until(self.clock, outlet);
        }
    }

    fn looks_again(&self, outlet: &impl CoreOutlet) -> Option<Picoseconds> {
        self.buffers.drains_at().filter(|_| outlet.has_room())
    }

    fn resume(&mut self, at: Picoseconds, outlet: &mut impl CoreOutlet) {
        let before = self.clock;
        self.clock = before.max(at) + std::mem::take(&mut self.owed);
        self.waits = Waits::Nothing;
        if self.interrupts.next() <= self.clock {
            self.interrupted(outlet);
        }
        self.worked += self.clock - before;
        while let Some(mut operation) = self.operations.front().copied() {
            if !self.step(&mut operation, outlet) {
                if let Some(front) = self.operations.front_mut() {
                    *front = operation;
                }
                return;
            }
            self.operations.pop_front();
        }
    }

    /// Does an operation; `false` if it has to wait, and `waits` says for what: `operation` is then what is left to do.
    #[inline]
    fn step(&mut self, operation: &mut Operation, outlet: &mut impl CoreOutlet) -> bool {
        let before = self.clock;
        let done = match operation {
            Operation::Store(piece) => self.store_words(piece, outlet),
            Operation::StoreUncached(piece) => self.store_uncached(piece, outlet),
            Operation::Load(load) => self.load(*load, outlet),
            Operation::Fence => self.fence(outlet),
            Operation::Work(span) => Ok(self.clock + *span),
        };
        self.is_done(before, done, outlet)
    }

    /// Whether what began at `before` is done, and what comes of that.
    #[inline]
    fn is_done(
        &mut self,
        before: Picoseconds,
        done: Result<Picoseconds, Waits>,
        outlet: &mut impl CoreOutlet,
    ) -> bool {
        self.unacknowledged += outlet.take_left();
        match done {
            Ok(done) => {
                self.clock = done;
                if self.interrupts.next() <= done {
                    self.interrupted(outlet);
                }
                self.worked += self.clock - before;
                true
            }
            Err(waits) => {
                self.worked += self.clock - before;
                self.waits = waits;
                false
            }
        }
    }

    #[inline]
    fn store_words(&mut self, piece: &mut Piece, outlet: &mut impl CoreOutlet) -> Result<Picoseconds, Waits> {
        if self.interrupts.next() < Picoseconds::NEVER {
            self.store_until_interrupt(piece, outlet)?;
        }
        match self.buffers.store(self.clock, piece, &self.settings, outlet) {
            Ok(done) => Ok(done),
            Err(Blocked) => Err(Waits::Room),
        }
    }

    /// Stores the words that come before interrupts which come before the last; the rest stays in `piece`.
    #[cold]
    fn store_until_interrupt(
        &mut self,
        piece: &mut Piece,
        outlet: &mut impl CoreOutlet,
    ) -> Result<(), Waits> {
        while self.interrupts.next() < self.clock + self.settings.store_time(piece.mask.count_ones() / 8) {
            let stores = self.interrupts.next().since(self.clock).0 / self.settings.store.0;
            let words = stores as usize * self.settings.store_bytes as usize / 8;
            let mut first = Piece { mask: 0, ..*piece };
            let stored = (0..8).map(|word| 0xff << (word * 8)).filter(|word| piece.mask & word != 0);
            stored.take(words).for_each(|word| first.mask |= word);
            if first.mask != 0 {
                self.clock = match self.buffers.store(self.clock, &first, &self.settings, outlet) {
                    Ok(done) => done,
                    Err(Blocked) => return Err(Waits::Room),
                };
                piece.mask &= !first.mask;
            }
            self.interrupted_until(self.interrupts.next(), outlet);
        }
        Ok(())
    }

    /// Empties the buffers; when the way out is free for something that must come behind.
    fn empty(&mut self, outlet: &mut impl CoreOutlet) -> Result<Picoseconds, Waits> {
        self.buffers.flush(self.clock, &self.settings, outlet);
        self.buffers.drain(Picoseconds::NEVER, &self.settings, outlet);
        if self.buffers.drains_at().is_some() {
            return Err(Waits::Room);
        }
        Ok(self.clock.max(self.buffers.port_free_at()))
    }

    fn store_uncached(&mut self, piece: &Piece, outlet: &mut impl CoreOutlet) -> Result<Picoseconds, Waits> {
        let at = self.empty(outlet)?;
        if !outlet.has_room() {
            return Err(Waits::Room);
        }
        outlet.leave(at, piece, Kept::InOrder);
        self.buffers.port_taken_until(at + self.settings.drain_interval);
        Ok(at + self.settings.uncached_store)
    }

    fn load(&mut self, load: Load, outlet: &mut impl CoreOutlet) -> Result<Picoseconds, Waits> {
        let at = self.empty(outlet)?;
        if !outlet.has_room() {
            return Err(Waits::Room);
        }
        outlet.leave_load(at, load);
        Err(Waits::Answer)
    }

    fn fence(&mut self, outlet: &mut impl CoreOutlet) -> Result<Picoseconds, Waits> {
        self.empty(outlet)?;
        let free = self.buffers.all_free_at().unwrap_or(self.clock);
        let done = match self.settings.fence_ack {
            FenceAck::None => self.clock.max(self.buffers.port_free_at()),
            FenceAck::Uncore => self.clock.max(free),
            FenceAck::RootComplex | FenceAck::Device => {
                self.unacknowledged += outlet.take_left();
                if self.unacknowledged > 0 {
                    return Err(Waits::Acknowledgement);
                }
                self.clock.max(free).max(self.last_acknowledged)
            }
        };
        outlet.fenced();
        Ok(done + self.settings.fence)
    }
}
