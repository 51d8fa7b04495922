//! Time for the devices: nanoseconds since the process started, cheap enough for every few rounds of the loop.

use std::time::{Duration, Instant};

use beeline_contract_device::SimTime;
use beeline_mmio::clock::{self, Calibration};

/// Converts between the core's counter and the devices' time.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// The counter at the start and the length of its ticks; `None` where ticks have no steady length.
    ticks: Option<(u64, Calibration)>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let ticks = clock::is_steady().then(|| (clock::coarse_ticks(), Calibration::measure()));
        Clock { start: Instant::now(), ticks }
    }

    /// Time since the start. About 10 ns with a steady counter.
    #[inline]
    pub(crate) fn now(&self) -> SimTime {
        match &self.ticks {
            // In picoseconds at once: whole nanoseconds would make a short interval one too short.
            Some((first, ticks)) => {
                SimTime((ticks.to_ns(clock::coarse_ticks().wrapping_sub(*first)) * 1000.0) as u64)
            }
            None => SimTime::from_ns(self.start.elapsed().as_nanos() as u64),
        }
    }

    /// How long to wait from `now` until `at`.
    pub(crate) fn until(now: SimTime, at: SimTime) -> Duration {
        Duration::from_nanos(at.0.saturating_sub(now.0).div_ceil(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_runs_forward_and_intervals_are_rounded_up() {
        let clock = Clock::start();
        let first = clock.now();
        let mut now = first;
        while now.as_ns() < first.as_ns() + 1000 {
            let next = clock.now();
            assert!(next >= now);
            now = next;
        }
        assert_eq!(Clock::until(SimTime(0), SimTime(1)), Duration::from_nanos(1));
        assert_eq!(Clock::until(SimTime(5), SimTime(1)), Duration::ZERO);
    }
}
