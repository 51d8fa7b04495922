//! Indices of a table that are free, taken and given back without a lock: a child of fork has no thread that would give one back.
//!
//! Loom runs this very file (`tests/loom_pinned.rs`).

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Bits of the head that are an index, plus one; those above count its changes.
const PLACE_BITS: u32 = 24;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

/// Indices below `COUNT` that are free.
pub(super) struct Free<const COUNT: usize> {
    /// The index that was returned last, plus one (zero: none), and above it how often this was changed: whoever was stopped between
    /// reading and changing finds a head that is another one, also when the index is the same. The count comes round after 2^40.
    head: AtomicU64,
    /// For each index that was returned, the one before it, plus one.
    before: [AtomicU32; COUNT],
    /// Those from here on were never used.
    unused: AtomicU32,
}

fn changed(head: u64, place: u32) -> u64 {
    (head & !PLACE_MASK).wrapping_add(1 << PLACE_BITS) | u64::from(place)
}

impl<const COUNT: usize> Free<COUNT> {
    /// All are free: of zeros.
    pub(super) const fn of(head: AtomicU64, before: [AtomicU32; COUNT], unused: AtomicU32) -> Self {
        const { assert!((COUNT as u64) < PLACE_MASK) };
        Free { head, before, unused }
    }

    /// An index for the caller alone; `None` if there is none.
    pub(super) fn take(&self) -> Option<u32> {
        // Acquire, here and when it has changed: pairs with `give_back`, of this index and of those that were returned before.
        let mut head = self.head.load(Ordering::Acquire);
        while let Some(index) = ((head & PLACE_MASK) as u32).checked_sub(1) {
            // Relaxed: written before the index was returned; where it has been taken since, the head has changed.
            let before = self.before[index as usize].load(Ordering::Relaxed);
            let next = changed(head, before);
            match self.head.compare_exchange(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
        // Relaxed: nobody has done anything with what was never used.
        let more = |unused| ((unused as usize) < COUNT).then_some(unused + 1);
        self.unused.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }

    /// Takes an index back, which the caller has had alone.
    pub(super) fn give_back(&self, index: u32) {
        // Relaxed: compared by the exchange.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.before[index as usize].store((head & PLACE_MASK) as u32, Ordering::Relaxed);
            // Release: pairs with the loads in `take`.
            let next = changed(head, index + 1);
            match self.head.compare_exchange(head, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}
