//! A cheap clock: ticks of the core's counter, and what they are in nanoseconds.
//!
//! For figures and time limits on paths where a system clock would cost more than what it times. It gives durations
//! only, on one machine; the time of day is not its business.

use std::time::{Duration, Instant};

use crate::arch;

/// Ticks now, read after every earlier instruction has finished and before any later one starts. About 15 ns.
#[inline(always)]
pub fn now_ticks() -> u64 {
    arch::ticks()
}

/// Ticks at about this time: the CPU may read them some instructions early or late. About 8 ns.
#[inline(always)]
pub fn coarse_ticks() -> u64 {
    arch::unordered_ticks()
}

/// Whether ticks have one length on every core and in every power state; when not, use the system clock.
pub fn is_steady() -> bool {
    arch::ticks_are_steady()
}

/// The length of a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    ns_per_tick: f64,
}

impl Calibration {
    /// Takes the counter's frequency from the CPU where it tells it, otherwise measures it against the system's
    /// monotonic clock, which takes about 2 ms.
    pub fn measure() -> Self {
        if let Some(frequency) = arch::ticks_per_second() {
            return Calibration { ns_per_tick: 1e9 / frequency as f64 };
        }
        let (ticks, instant) = both_clocks();
        let mut now = both_clocks();
        while now.1 - instant < Duration::from_millis(2) {
            std::hint::spin_loop();
            now = both_clocks();
        }
        Calibration { ns_per_tick: (now.1 - instant).as_nanos() as f64 / (now.0 - ticks) as f64 }
    }

    /// Nanoseconds of one tick.
    pub fn ns_per_tick(&self) -> f64 {
        self.ns_per_tick
    }

    /// Ticks in nanoseconds.
    #[inline]
    pub fn to_ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Ticks in a duration, rounded up; saturates.
    #[inline]
    pub fn ticks_in(&self, duration: Duration) -> u64 {
        (duration.as_nanos() as f64 / self.ns_per_tick).ceil() as u64
    }
}

/// Both clocks at the same time: of several tries the one that was interrupted least.
fn both_clocks() -> (u64, Instant) {
    let mut best = (u64::MAX, 0, Instant::now());
    for _ in 0..8 {
        let before = now_ticks();
        let instant = Instant::now();
        let after = now_ticks();
        if after - before < best.0 {
            best = (after - before, before + (after - before) / 2, instant);
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_run_forward() {
        let mut last = now_ticks();
        for _ in 0..1000 {
            let now = now_ticks();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        assert!(coarse_ticks() > 0);
    }

    /// The calibrated clock agrees with the system clock over a stretch, interruptions between the reads excepted.
    #[test]
    fn a_calibrated_stretch_is_as_long_as_the_system_says() {
        let calibration = Calibration::measure();
        let (ticks, instant) = both_clocks();
        let mut now = both_clocks();
        while now.1 - instant < Duration::from_millis(if cfg!(miri) { 1 } else { 20 }) {
            now = both_clocks();
        }
        let ratio = calibration.to_ns(now.0 - ticks) / (now.1 - instant).as_nanos() as f64;
        assert!((0.8..1.2).contains(&ratio), "{ratio}, {calibration:?}");
        let second = calibration.ticks_in(Duration::from_secs(1));
        assert!((calibration.to_ns(second) - 1e9).abs() < 1e3 + calibration.ns_per_tick());
    }
}
