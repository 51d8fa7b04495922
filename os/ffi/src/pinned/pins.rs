//! The pins of all threads: words that a thread stores handles into, for removers to find.
//!
//! Loom runs this very file (`tests/loom_pinned.rs`), so it knows `crate::sync`, the barrier beside it, and nothing else of this crate.

use core::ptr;
use core::sync::atomic::compiler_fence;

use super::barrier;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence, spin_loop};

/// Handles that a thread can have pinned at once in one record. Functions pin one or two; a signal handler's are on top.
const CELLS: usize = if cfg!(loom) { 2 } else { 7 };

/// How often a remover looks before it sleeps.
const LOOKS: u32 = if cfg!(any(loom, miri)) { 1 } else { 1000 };

/// The owner of a record that belongs to no thread.
const NOBODY: usize = 0;

/// The records of all threads.
pub(super) struct Pins {
    first: AtomicPtr<Record>,
    /// Removers that sleep, or are about to.
    sleepers: AtomicU32,
    /// Raised for each pin that ends while there are sleepers; what they sleep on.
    ends: AtomicU32,
}

/// Pins of one thread. Two cache lines that are fetched together, because threads store here all the time.
#[repr(align(128))]
pub(super) struct Record {
    /// Handles; zero where none is pinned.
    cells: [AtomicU64; CELLS],
    /// Whether this thread fences, because removers can do no barrier for it.
    is_fenced: bool,
    owner: AtomicUsize,
    next: AtomicPtr<Record>,
}

/// A handle that is pinned, until this is dropped.
pub(super) struct Pin<'a> {
    pins: &'a Pins,
    cell: &'a AtomicU64,
    bits: u64,
    is_fenced: bool,
}

impl Drop for Pin<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: what was done with the object comes before; pairs with the load in `Pins::are_on`.
        self.cell.store(0, Ordering::Release);
        self.pins.tell_sleepers(self.is_fenced);
    }
}

/// A handle that is pinned for some nanoseconds. Whoever waits for its end looks now and then: nobody is woken.
pub(super) struct ShortPin<'a> {
    cell: &'a AtomicU64,
    bits: u64,
}

impl Drop for ShortPin<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: as when a `Pin` is dropped.
        self.cell.store(0, Ordering::Release);
    }
}

/// What a slot shows its object to.
pub(super) trait Pinning {
    fn bits(&self) -> u64;
}

impl Pinning for Pin<'_> {
    #[inline(always)]
    fn bits(&self) -> u64 {
        self.bits
    }
}

impl Pinning for ShortPin<'_> {
    #[inline(always)]
    fn bits(&self) -> u64 {
        self.bits
    }
}

/// Keeps the store of a pin before the load that follows, as removers see it: theirs is the barrier, or the fence, of `on_all_cores`.
#[inline(always)]
fn light_barrier(is_fenced: bool) {
    if is_fenced {
        // Pairs with the fence in `Pins::barrier`.
        fence(Ordering::SeqCst);
    } else {
        // Pairs with `barrier::on_all_cores`, which makes the core do what this only asks of the compiler.
        compiler_fence(Ordering::SeqCst);
    }
}

impl Record {
    /// Whether a word of this record is not in use.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.free_cell().is_some()
    }

    /// A word that is not in use: the first one, but where a function with a handle calls another one with a handle.
    #[inline(always)]
    fn free_cell(&self) -> Option<&AtomicU64> {
        // Relaxed, here and below: only this thread stores here, and a signal handler on it leaves each word as it found it.
        let first = &self.cells[0];
        if first.load(Ordering::Relaxed) == 0 { Some(first) } else { self.free_cell_behind() }
    }

    #[inline(never)]
    fn free_cell_behind(&self) -> Option<&AtomicU64> {
        self.cells[1..].iter().find(|cell| cell.load(Ordering::Relaxed) == 0)
    }

    /// Pins a handle; `None` if every word of this record is in use. The calling thread owns the record.
    #[inline(always)]
    pub(super) fn pin<'a>(&'a self, pins: &'a Pins, bits: u64) -> Option<Pin<'a>> {
        let cell = self.free_cell()?;
        // Relaxed: the barrier below keeps it before what follows.
        cell.store(bits, Ordering::Relaxed);
        light_barrier(self.is_fenced);
        Some(Pin { pins, cell, bits, is_fenced: self.is_fenced })
    }

    /// As [`Record::pin`], for some nanoseconds, for a record whose thread does not fence, and only if nothing is pinned in it.
    #[inline(always)]
    pub(super) fn pin_shortly(&self, bits: u64) -> Option<ShortPin<'_>> {
        let cell = &self.cells[0];
        if cell.load(Ordering::Relaxed) != 0 {
            return None;
        }
        // Relaxed, twice: as in `free_cell` and `pin`.
        cell.store(bits, Ordering::Relaxed);
        // In loom's models users fence.
        light_barrier(cfg!(loom));
        Some(ShortPin { cell, bits })
    }

    /// Whether its thread fences.
    pub(super) fn is_fenced(&self) -> bool {
        self.is_fenced
    }

    /// Gives the record up. What is pinned in it is so no more: its thread has ended, in whatever function.
    pub(super) fn give_up(&self, pins: &Pins) {
        for cell in &self.cells {
            // Release: as when a pin is dropped.
            cell.store(0, Ordering::Release);
        }
        // Release: pairs with the exchange in `Pins::record_of`, so that the next owner's pins come after these words.
        self.owner.store(NOBODY, Ordering::Release);
        pins.tell_sleepers(self.is_fenced);
    }

    fn has(&self, is_pinned: impl Fn(u64) -> bool) -> bool {
        // Acquire: pairs with the drop of a pin.
        self.cells.iter().any(|cell| is_pinned(cell.load(Ordering::Acquire)))
    }
}

impl Pins {
    /// The list that begins at `first`, which is null, with `sleepers` and `ends` zero.
    pub(super) const fn of(first: AtomicPtr<Record>, sleepers: AtomicU32, ends: AtomicU32) -> Self {
        Pins { first, sleepers, ends }
    }

    /// A record for the thread `owner`, which is one that no thread has, or a new one. Records are never freed.
    pub(super) fn record_of(&self, owner: usize, is_fenced: bool) -> &'static Record {
        for record in self.records() {
            // Acquire: pairs with `give_up`.
            if record.owner.compare_exchange(NOBODY, owner, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return record;
            }
        }
        let record: &'static Record = Box::leak(Box::new(Record {
            cells: core::array::from_fn(|_| AtomicU64::new(0)),
            is_fenced,
            owner: AtomicUsize::new(owner),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        // Relaxed: read again by the exchange.
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            record.next.store(first, Ordering::Relaxed);
            let new = ptr::from_ref(record).cast_mut();
            // Release: pairs with the loads in `records`. A remover that does not find this record has done its barrier before the
            // first pin in it, whose thread then finds the slot changed.
            match self.first.compare_exchange(first, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return record,
                Err(now) => first = now,
            }
        }
    }

    /// Whether a thread has pins.
    pub(super) fn has_pins(&self, owner: usize) -> bool {
        // Relaxed: only the owner itself asks.
        self.records()
            .any(|record| record.owner.load(Ordering::Relaxed) == owner && record.has(|bits| bits != 0))
    }

    /// Every thread's pins so far are seen by this one from here on, and every thread sees what this one has stored. `false` if the
    /// kernel refuses it.
    pub(super) fn barrier(&self, is_fenced: bool) -> bool {
        if is_fenced {
            // Pairs with the fence in `light_barrier`.
            fence(Ordering::SeqCst);
            return true;
        }
        barrier::on_all_cores()
    }

    /// Waits until no thread has pinned `bits`, which no thread can pin any more. After [`Pins::barrier`].
    pub(super) fn wait_for_ends(&self, bits: u64, is_fenced: bool) {
        // Most uses end while this looks.
        for _ in 0..LOOKS {
            if !self.are_on(bits) {
                return;
            }
            spin_loop();
        }
        // Relaxed, here and below: ordered by the barrier, and by nothing needed at the end.
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Where this is refused, the sleep is bounded.
        self.barrier(is_fenced);
        loop {
            // Acquire: pairs with the addition in `tell_sleepers`.
            let seen = self.ends.load(Ordering::Acquire);
            if !self.are_on(bits) {
                break;
            }
            barrier::sleep(&self.ends, seen);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Forgets the pins of all threads but `survivor`: a fork has made this process of that thread alone.
    pub(super) fn forget_others(&self, survivor: usize) {
        for record in self.records() {
            // Relaxed: this process has one thread.
            if record.owner.load(Ordering::Relaxed) != survivor {
                record.cells.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
                record.owner.store(NOBODY, Ordering::Relaxed);
            }
        }
        self.sleepers.store(0, Ordering::Relaxed);
    }

    fn are_on(&self, bits: u64) -> bool {
        self.records().any(|record| record.has(|pinned| pinned == bits))
    }

    #[inline(always)]
    fn tell_sleepers(&self, is_fenced: bool) {
        light_barrier(is_fenced);
        // Relaxed: ordered by the two barriers: a remover that this does not see finds the pin gone.
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake_sleepers();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_sleepers(&self) {
        // Release: pairs with the load in `wait_for_ends`, so that who sees the new count sees the pin gone.
        self.ends.fetch_add(1, Ordering::Release);
        barrier::wake(&self.ends);
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &'static Record> {
        // Acquire, twice: pairs with the exchange in `record_of`.
        // SAFETY: null, or a record that `record_of` has leaked.
        let mut next = unsafe { self.first.load(Ordering::Acquire).as_ref::<'static>() };
        core::iter::from_fn(move || {
            let record = next?;
            // SAFETY: as above.
            next = unsafe { record.next.load(Ordering::Acquire).as_ref::<'static>() };
            Some(record)
        })
    }
}
