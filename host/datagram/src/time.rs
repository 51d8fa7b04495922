//! Time as the protocol sees it: nanoseconds on some clock that only goes forward.

use std::time::{Duration, Instant};

use beeline_mmio::clock::{Calibration, coarse_ticks, is_steady};

/// A moment, in nanoseconds since the clock's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Later than every moment.
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// This moment and so many nanoseconds; at most [`Nanos::NEVER`].
    #[must_use]
    pub const fn after(self, ns: u64) -> Nanos {
        Nanos(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to this moment; 0 when it is not earlier.
    pub const fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A duration in whole nanoseconds; the longest are cut to 584 years.
pub(crate) fn ns(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Where an endpoint takes its time from; a test's clock stands still until it is moved.
pub trait Clock {
    /// The time now; never earlier than before. Called about once for each message and now and then in between.
    fn now(&mut self) -> Nanos;
}

/// The core's own counter (about 10 ns a look), or the system's clock where that counter is not steady.
#[derive(Debug)]
pub struct TickClock(Source);

#[derive(Debug)]
enum Source {
    Ticks { start: u64, calibration: Calibration },
    System { start: Instant },
}

impl TickClock {
    /// A clock that begins now. Takes some milliseconds where the counter's frequency has to be measured.
    pub fn new() -> Self {
        TickClock(match is_steady() {
            true => Source::Ticks { calibration: Calibration::measure(), start: coarse_ticks() },
            false => Source::System { start: Instant::now() },
        })
    }
}

impl Default for TickClock {
    fn default() -> Self {
        TickClock::new()
    }
}

impl Clock for TickClock {
    #[inline]
    fn now(&mut self) -> Nanos {
        match &self.0 {
            // The counters of two cores may differ by a little, so a thread that moves could see time go back.
            Source::Ticks { start, calibration } => {
                Nanos(calibration.to_ns(coarse_ticks().saturating_sub(*start)) as u64)
            }
            Source::System { start } => Nanos(ns(start.elapsed())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_forward_and_saturates() {
        let mut clock = TickClock::new();
        let (first, second) = (clock.now(), clock.now());
        assert!(first <= second);
        assert_eq!(first.since(second.after(1)), 0);
        assert_eq!(Nanos(7).after(3).since(Nanos(4)), 6);
        assert_eq!(Nanos(7).after(u64::MAX), Nanos::NEVER);
        assert_eq!(ns(Duration::MAX), u64::MAX);
    }
}
