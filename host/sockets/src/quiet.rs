//! Whether nothing has come to a window since it was found empty, by one load.
//!
//! A sender counts what it has sent while a bell is to be rung. A window that was found empty at some count is empty as long as the count is
//! the same. That holds only of senders that surely count: those that began before they saw that a bell is to be rung may have sent
//! something uncounted, which a barrier on every core, and a look behind it, excludes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::Arrivals;

/// Barriers of this process that have begun, and the last of them of which it is known that it has ended.
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);
/// No bell is rung.
const NEVER: u64 = u64::MAX;

/// What is known of one window.
#[derive(Debug)]
pub struct Quiet {
    arrivals: Arrivals,
    /// One more than the count at which the window was empty; 0: not known.
    empty_at: AtomicU64,
    /// Barriers that had begun when the sender was told to count.
    told_at: AtomicU64,
}

/// Runs a barrier on every core, behind which windows are looked at.
pub(crate) fn counted<T>(barrier: impl FnOnce() -> T) -> T {
    let this = BEGUN.fetch_add(1, Ordering::SeqCst) + 1;
    let done = barrier();
    ENDED.fetch_max(this, Ordering::SeqCst);
    done
}

impl Quiet {
    pub(crate) fn new(arrivals: Arrivals) -> Self {
        Quiet { arrivals, empty_at: AtomicU64::new(0), told_at: AtomicU64::new(NEVER) }
    }

    /// The sender was told to ring somebody, and so to count.
    pub(crate) fn tell(&self) {
        self.told_at.store(BEGUN.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// The sender rings nobody any more.
    pub(crate) fn end(&self) {
        self.told_at.store(NEVER, Ordering::SeqCst);
        self.empty_at.store(0, Ordering::SeqCst);
    }

    /// Whether the window is as empty as it was.
    #[inline]
    pub(crate) fn is_so(&self) -> bool {
        self.empty_at.load(Ordering::Relaxed) == self.arrivals.count().wrapping_add(1)
    }

    /// Looks whether the window has something, by `look`, which says in the second place whether the receiver stands in the window: where bytes of the
    /// socket come first, those of the window are news when these are taken, and nothing is counted then.
    pub(crate) fn look(&self, look: impl FnOnce() -> (bool, bool)) -> bool {
        // All of it before the look.
        let (count, told_at) = (self.arrivals.count(), self.told_at.load(Ordering::SeqCst));
        let is_counted = ENDED.load(Ordering::SeqCst) > told_at;
        let (has_something, is_in_window) = look();
        let empty_at = if is_counted && is_in_window && !has_something { count.wrapping_add(1) } else { 0 };
        self.empty_at.store(empty_at, Ordering::SeqCst);
        // Whoever ends it meanwhile stores this first. A sender that is told again is told behind the barrier that was counted on here.
        if self.told_at.load(Ordering::SeqCst) != told_at {
            self.empty_at.store(0, Ordering::SeqCst);
        }
        has_something
    }
}

#[cfg(test)]
mod tests {
    use beeline_mmio::Region;

    use super::*;

    #[test]
    fn window_is_empty_by_its_count_only_behind_a_barrier_that_began_when_the_sender_knew() {
        let words = Region::private(64).words(0, 8);
        let quiet = Quiet::new(Arrivals::of(words.clone()));
        assert!(!quiet.look(|| (false, true)));
        assert!(!quiet.is_so(), "the sender does not count");
        counted(|| quiet.tell());
        assert!(!quiet.look(|| (false, true)));
        assert!(!quiet.is_so(), "the barrier had begun before");
        counted(|| {});
        assert!(quiet.look(|| (true, true)));
        assert!(!quiet.is_so());
        assert!(!quiet.look(|| (false, true)));
        assert!(quiet.is_so());
        Arrivals::of(words.clone()).add();
        assert!(!quiet.is_so());
        // What comes while the window is looked at.
        assert!(!quiet.look(|| {
            Arrivals::of(words).add();
            (false, true)
        }));
        assert!(!quiet.is_so());
        assert!(!quiet.look(|| (false, true)));
        assert!(quiet.is_so());
        assert!(!quiet.look(|| (false, false)));
        assert!(!quiet.is_so(), "bytes of the socket come first");
        assert!(!quiet.look(|| (false, true)));
        quiet.end();
        assert!(!quiet.is_so());
        // The sender stops to count while the window is looked at.
        quiet.tell();
        counted(|| {});
        assert!(!quiet.look(|| {
            quiet.end();
            (false, true)
        }));
        assert!(!quiet.is_so());
    }
}
