//! When a call must be over: a point in time that travels with it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A point on `CLOCK_MONOTONIC` in nanoseconds. Every process of a host reads the same clock, unless it was put into a
/// time namespace of its own; between hosts only what is left travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// The time that is past soon enough for nobody to wait for it.
    pub(crate) const NEVER: u64 = u64::MAX;

    /// Now and a duration. Reads the clock, some 25 ns.
    pub fn after(duration: Duration) -> Self {
        Deadline::of_ns(now_ns().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// A point on the clock.
    pub(crate) fn of_ns(ns: u64) -> Self {
        Deadline(ns.min(Self::NEVER - 1))
    }

    /// The point on the clock.
    pub fn as_ns(self) -> u64 {
        self.0
    }

    /// What is left of it; zero when it is past. Reads the clock.
    pub fn remaining(self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(now_ns()))
    }

    /// Whether it is past. Reads the clock.
    pub fn has_passed(self) -> bool {
        now_ns() >= self.0
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock starts near zero at boot: neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_pass() {
        assert!(Deadline::after(Duration::ZERO).has_passed());
        let later = Deadline::after(Duration::from_secs(1000));
        assert!(!later.has_passed() && later.remaining() > Duration::from_secs(900));
        assert!(!Deadline::after(Duration::MAX).has_passed());
        assert_ne!(Deadline::after(Duration::MAX).as_ns(), Deadline::NEVER);
    }
}
