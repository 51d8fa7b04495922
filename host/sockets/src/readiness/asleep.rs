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
}

impl Asleep {
    pub(crate) fn new() -> Self {
        Asleep { all: AtomicU32::new(0), silent: AtomicU32::new(0) }
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

    /// Whether some of them are silent. Of a set whose first window has come each of them has to wake, and to announce itself: until then nobody makes the bell
    /// unreadable by which the kernel wakes one behind the other. One that is missed looks for the window behind the set's lock.
    pub(crate) fn has_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed) > 0
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
