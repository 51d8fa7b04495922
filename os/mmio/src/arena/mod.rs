//! Memory that is mapped once and lent in parts: thousands of windows and small segments cost one mapping and no descriptor
//! each.
//!
//! The memory is as large as all of its parts may ever be together, and has no pages at first. A part gets its pages when it is
//! lent, in pieces ([`Pace`]); when the last handle of it is gone it is free again. Of the free parts some keep their pages, so
//! that lending one anew costs no page; the pages of the others go back to the system when [`Arena::reclaim`] is called,
//! which whoever made the arena does on a thread that may take the time.
//!
//! What a part holds when it is lent is what somebody left in it: who lends it fills it. Whoever maps the memory can read and
//! write *all* of it, so an arena is no boundary between those who have one, and one process that does not trust another
//! shares an arena with it alone.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::buddy::{Buddy, order_for, pages_of};
use crate::process::ThisProcess;
use crate::{MapError, Pace, Region, Unpaced};

mod buddy;
#[cfg(test)]
mod tests;

/// Parts begin and end at multiples of it.
pub const ARENA_PAGE_BYTES: usize = 4096;

/// Why nothing is lent.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// No block of this size is free.
    #[error(
        "the arena has no {bytes} bytes together: {free_bytes} bytes are free, at most {largest_bytes} together"
    )]
    Full {
        /// Bytes asked for.
        bytes: usize,
        free_bytes: usize,
        largest_bytes: usize,
    },
    /// The system has no pages left.
    #[error(transparent)]
    Memory(#[from] MapError),
}

/// Memory that is lent in parts. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Arena(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    region: Region,
    /// Where the first page lies that is lent.
    start_bytes: usize,
    /// Pages that free parts may keep.
    kept_pages: u32,
    made_by: ThisProcess,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Blocks without pages.
    cold: Buddy,
    /// For each order, the first pages of blocks that were given back and still have their pages, the oldest first.
    warm: Vec<VecDeque<u32>>,
    warm_pages: u32,
}

impl Arena {
    /// Lends from `region`, all bytes from `start_bytes` on, which nobody else uses. Free parts keep pages of `kept_bytes` at
    /// most.
    ///
    /// # Panics
    /// If `start_bytes` is no multiple of [`ARENA_PAGE_BYTES`] or outside the region.
    #[track_caller]
    pub fn new(region: Region, start_bytes: usize, kept_bytes: usize) -> Self {
        assert!(
            start_bytes.is_multiple_of(ARENA_PAGE_BYTES) && start_bytes <= region.bytes(),
            "an arena from byte {start_bytes} of {} on",
            region.bytes()
        );
        let pages = (region.bytes() - start_bytes) / ARENA_PAGE_BYTES;
        let cold = Buddy::new(u32::try_from(pages).unwrap_or(u32::MAX));
        let state = State { cold, warm: vec![VecDeque::new(); 32], warm_pages: 0 };
        let kept_pages = u32::try_from(kept_bytes / ARENA_PAGE_BYTES).unwrap_or(u32::MAX);
        let made_by = ThisProcess::get();
        Arena(Arc::new(Shared { region, start_bytes, kept_pages, made_by, state: Mutex::new(state) }))
    }

    /// Lends at least `bytes` bytes, aligned to their number rounded up to a power of two of pages, every page present. What is
    /// in them is not defined.
    ///
    /// # Errors
    /// [`ArenaError::Full`], and [`ArenaError::Memory`] if the system has no pages.
    pub fn lend(&self, bytes: usize, pace: &dyn Pace) -> Result<Part, ArenaError> {
        if let Some(part) = self.lend_free(bytes, pace)? {
            return Ok(part);
        }
        // Blocks that keep their pages may be all that is missing.
        self.reclaim_to(0, pace);
        self.lend_free(bytes, pace)?.ok_or_else(|| self.full(bytes))
    }

    /// As [`Arena::lend`], but gives no pages of free parts back to make room, which takes as long as there are many: `None` where
    /// there may be room only after that.
    ///
    /// # Errors
    /// As [`Arena::lend`].
    pub fn lend_at_once(&self, bytes: usize) -> Result<Option<Part>, ArenaError> {
        self.lend_free(bytes, &Unpaced)
    }

    fn lend_free(&self, bytes: usize, pace: &dyn Pace) -> Result<Option<Part>, ArenaError> {
        let order = order_for(bytes.div_ceil(ARENA_PAGE_BYTES).max(1)).ok_or_else(|| self.full(bytes))?;
        let mut state = self.0.lock();
        if let Some(first) = state.take_warm(order) {
            return Ok(Some(self.part(first, order)));
        }
        let cold = state.cold.take(order);
        drop(state);
        let Some(first) = cold else { return Ok(None) };
        // Made first: if there are no pages, its drop gives the block back.
        let part = self.part(first, order);
        self.0.region.populate(part.offset_bytes(), part.bytes(), pace)?;
        Ok(Some(part))
    }

    fn part(&self, first: u32, order: u32) -> Part {
        Part { arena: Arc::clone(&self.0), first, order }
    }

    fn full(&self, bytes: usize) -> ArenaError {
        let state = self.0.lock();
        let in_bytes = |pages: u32| pages as usize * ARENA_PAGE_BYTES;
        let free_bytes = in_bytes(state.cold.free_pages() + state.warm_pages);
        ArenaError::Full { bytes, free_bytes, largest_bytes: in_bytes(state.cold.largest()) }
    }

    /// Bytes that are not lent.
    pub fn free_bytes(&self) -> usize {
        let state = self.0.lock();
        (state.cold.free_pages() + state.warm_pages) as usize * ARENA_PAGE_BYTES
    }

    /// Whether free parts have more pages than they are to keep.
    pub fn has_surplus(&self) -> bool {
        self.0.lock().warm_pages > self.0.kept_pages
    }

    /// Gives the pages back that free parts have beyond what they are to keep; `pace` decides when each piece goes. In a
    /// process that was forked from the one that made the arena it does nothing: the pages are the parent's too.
    pub fn reclaim(&self, pace: &dyn Pace) {
        if self.0.made_by.is_this() {
            self.reclaim_to(self.0.kept_pages, pace);
        }
    }

    fn reclaim_to(&self, kept_pages: u32, pace: &dyn Pace) {
        loop {
            let Some((first, order)) = self.0.lock().take_surplus(kept_pages) else { return };
            let bytes = pages_of(order) as usize * ARENA_PAGE_BYTES;
            if let Err(errno) = self.0.region.remove_pages(self.0.offset_bytes(first), bytes, pace) {
                // They are lent again all the same, and then cost no new ones.
                tracing::warn!(bytes, %errno, "pages of an arena cannot be given back");
            }
            self.0.lock().cold.give_back(first, order);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is finished before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offset_bytes(&self, first: u32) -> usize {
        self.start_bytes + first as usize * ARENA_PAGE_BYTES
    }
}

impl State {
    /// The block of this order that was given back last: it may still be in a cache.
    fn take_warm(&mut self, order: u32) -> Option<u32> {
        let first = self.warm[order as usize].pop_back()?;
        self.warm_pages -= pages_of(order);
        Some(first)
    }

    /// A block whose pages are more than `kept_pages`: of the largest, the one that was given back first.
    fn take_surplus(&mut self, kept_pages: u32) -> Option<(u32, u32)> {
        if self.warm_pages <= kept_pages {
            return None;
        }
        let order = self.warm.iter().rposition(|blocks| !blocks.is_empty())? as u32;
        let first = self.warm[order as usize].pop_front()?;
        self.warm_pages -= pages_of(order);
        Some((first, order))
    }
}

/// A part that is lent. It is free again when it and every handle of [`Part::region`] are gone.
///
/// In a process that was forked from the one that made the arena its drop does nothing.
#[derive(Debug)]
pub struct Part {
    arena: Arc<Shared>,
    first: u32,
    order: u32,
}

impl Part {
    /// Where it begins in the memory.
    pub fn offset_bytes(&self) -> usize {
        self.arena.offset_bytes(self.first)
    }

    /// Bytes of it: what was asked for, rounded up to a power of two of pages.
    pub fn bytes(&self) -> usize {
        pages_of(self.order) as usize * ARENA_PAGE_BYTES
    }

    /// The part as a region of its own, which is lent as long as the region or a handle of it is there.
    pub fn region(self) -> Region {
        let region = self.arena.region.clone();
        region.part(self.offset_bytes(), self.bytes(), self)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // In a child of fork the lock may be held by a thread that is not there, and the parent's part is not the child's to
        // give back.
        if !self.arena.made_by.is_this() {
            return;
        }
        let mut state = self.arena.lock();
        state.warm[self.order as usize].push_back(self.first);
        state.warm_pages += pages_of(self.order);
    }
}
