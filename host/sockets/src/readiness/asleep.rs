//! The threads of one set that sleep.
//!
//! A sender rings once for an announcement. Whichever thread wakes looks for all; before it leaves it announces again for those that
//! sleep on, and looks once more, so that a byte that came meanwhile wakes one of them.

use super::sync::{AtomicU32, Ordering};
use super::watched::Sleeper;

/// One of the threads; also one that is cancelled where it sleeps takes its announcement back.
#[must_use]
pub(crate) struct Announced<'a, S: Sleeper> {
    asleep: &'a Asleep,
    sleeper: &'a S,
}

impl<S: Sleeper> Drop for Announced<'_, S> {
    fn drop(&mut self) {
        self.sleeper.withdraw();
        self.asleep.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One of the threads, of which no sender knows.
#[must_use]
pub(crate) struct Silent<'a>(&'a Asleep);

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        self.0.silent.fetch_sub(1, Ordering::Relaxed);
        self.0.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many threads sleep, or are about to.
#[derive(Debug)]
pub(crate) struct Asleep {
    all: AtomicU32,
    /// Of them those of which no sender knows.
    silent: AtomicU32,
    /// How often the bell may still be left readable for those.
    patience: AtomicU32,
}

/// Wakes that leave the bell readable, at most, for a window that has begun. Each waits for a silent thread that the kernel has woken; one that has left its call by a jump
/// is counted for ever.
const PATIENCE: u32 = 10_000;

impl Asleep {
    pub(crate) fn new() -> Self {
        Asleep { all: AtomicU32::new(0), silent: AtomicU32::new(0), patience: AtomicU32::new(0) }
    }

    /// Announces one more. The caller looks once more behind it, sleeps, and drops what it gets.
    pub(crate) fn enter<'a, S: Sleeper>(&'a self, sleeper: &'a S) -> Announced<'a, S> {
        self.all.fetch_add(1, Ordering::Relaxed);
        sleeper.announce();
        Announced { asleep: self, sleeper }
    }

    /// One more, of a set of which no window is looked at: nobody rings it but the set, when that changes. The caller looks for that behind this.
    pub(crate) fn enter_silently(&self) -> Silent<'_> {
        self.all.fetch_add(1, Ordering::Relaxed);
        self.silent.fetch_add(1, Ordering::Relaxed);
        Silent(self)
    }

    /// A window has begun, and the set is about to be rung: each silent thread has to wake, and to announce itself.
    pub(crate) fn begin_to_wake(&self) {
        self.patience.store(PATIENCE, Ordering::Relaxed);
    }

    /// Whether the bell stays readable: the kernel wakes one thread behind the other as long as it is, and some are silent still. One that is missed looks for the
    /// window behind the set's lock.
    pub(crate) fn keeps_bell_readable(&self) -> bool {
        if self.silent.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let left = self.patience.load(Ordering::Relaxed);
        // Relaxed, and no single step: threads that come at once take one from it.
        self.patience.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    pub(crate) fn is_any(&self) -> bool {
        self.all.load(Ordering::Relaxed) > 0
    }

    /// For a thread that leaves the set, whatever it found: wakes another when `has_more` says that there is something to report.
    ///
    /// The number may be an old one. The thread that it misses has announced itself behind the caller's last look under the set's lock, and its own last
    /// look is to come.
    pub(crate) fn pass_on(&self, sleeper: &impl Sleeper, has_more: impl FnOnce() -> bool) {
        if !self.is_any() {
            return;
        }
        // The caller may have cleared what a sender rang for the announcement that there was.
        sleeper.announce();
        if has_more() {
            sleeper.ring();
        }
        sleeper.withdraw();
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn thread_that_has_left_its_call_by_a_jump_does_not_keep_the_bell_readable_for_ever() {
        let asleep = Asleep::new();
        std::mem::forget(asleep.enter_silently());
        for _ in 0..2 {
            asleep.begin_to_wake();
            let kept = (0..=PATIENCE).filter(|_| asleep.keeps_bell_readable()).count();
            assert_eq!(kept, PATIENCE as usize);
        }
    }
}
