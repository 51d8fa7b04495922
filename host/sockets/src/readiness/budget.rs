//! How long a call spins before it sleeps: as long as it pays, by what the last waits were.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use beeline_socket_rules::Spin;

/// The budget of one set or thread. It is doubled when a wait ended within the most that is allowed, and halved when it did not,
/// as the kernel's halt polling does it.
#[derive(Debug)]
pub(crate) struct Budget {
    nanoseconds: AtomicU64,
}

impl Budget {
    /// Of the most that is allowed: less than this does not find what comes.
    const LEAST_PART: u64 = 16;

    pub(crate) const fn new() -> Self {
        Budget { nanoseconds: AtomicU64::new(u64::MAX) }
    }

    /// How long to spin now; `None` is for ever.
    pub(crate) fn now(&self, spin: Spin) -> Option<Duration> {
        let Spin::For(most) = spin else { return None };
        let most = most.as_nanos() as u64;
        Some(Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed).min(most)))
    }

    /// A wait that nothing was ready for at first has ended after `waited`.
    pub(crate) fn waited(&self, spin: Spin, waited: Duration) {
        let Spin::For(most) = spin else { return };
        let most_nanoseconds = most.as_nanos() as u64;
        let old = self.nanoseconds.load(Ordering::Relaxed).min(most_nanoseconds);
        let new = if waited <= most {
            old.saturating_mul(2).clamp(1, most_nanoseconds.max(1))
        } else {
            (old / 2).max(most_nanoseconds / Self::LEAST_PART)
        };
        // Relaxed: a lost update is a budget that is a step late.
        self.nanoseconds.store(new, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MOST: Spin = Spin::For(Duration::from_micros(64));

    #[test]
    fn long_waits_halve_the_budget_and_short_ones_double_it() {
        let budget = Budget::new();
        assert_eq!(budget.now(MOST), Some(Duration::from_micros(64)));
        for expected in [32, 16, 8, 4, 4] {
            budget.waited(MOST, Duration::from_millis(1));
            assert_eq!(budget.now(MOST), Some(Duration::from_micros(expected)));
        }
        for expected in [8, 16, 32, 64, 64] {
            budget.waited(MOST, Duration::from_micros(50));
            assert_eq!(budget.now(MOST), Some(Duration::from_micros(expected)));
        }
    }

    #[test]
    fn zero_stays_zero_and_forever_has_no_end() {
        let budget = Budget::new();
        let never = Spin::For(Duration::ZERO);
        budget.waited(never, Duration::ZERO);
        assert_eq!(budget.now(never), Some(Duration::ZERO));
        assert_eq!(budget.now(Spin::Forever), None);
    }
}
