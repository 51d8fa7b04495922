//! How long an answer takes, and how long to wait for it: RFC 6298 in whole nanoseconds.

use crate::config::Config;
use crate::time::ns;

/// Smoothed round-trip time, its variation, and the time-out that follows from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    /// 0: nothing measured yet.
    smoothed_ns: u64,
    variation_ns: u64,
    least_seen_ns: u64,
    timeout_ns: u64,
    /// Time-outs in a row without a measurement; each doubles the wait.
    backoff: u32,
    least_ns: u64,
    most_ns: u64,
}

impl RoundTrip {
    pub(crate) fn new(config: &Config) -> Self {
        RoundTrip {
            smoothed_ns: 0,
            variation_ns: 0,
            least_seen_ns: 0,
            timeout_ns: ns(config.first_timeout),
            backoff: 0,
            least_ns: ns(config.least_timeout),
            most_ns: ns(config.most_timeout),
        }
    }

    /// Takes a measurement of a frame that was sent once only (Karn). Ends the doubling of the wait.
    #[inline]
    pub(crate) fn measured(&mut self, sample_ns: u64) {
        // A sample of 0 is a clock that is too coarse, and 0 means that nothing was measured.
        let sample = sample_ns.max(1);
        if self.smoothed_ns == 0 {
            (self.smoothed_ns, self.variation_ns, self.least_seen_ns) = (sample, sample / 2, sample);
        } else {
            self.variation_ns =
                self.variation_ns - self.variation_ns / 4 + self.smoothed_ns.abs_diff(sample) / 4;
            self.smoothed_ns = (self.smoothed_ns - self.smoothed_ns / 8 + sample / 8).max(1);
            self.least_seen_ns = self.least_seen_ns.min(sample);
        }
        self.backoff = 0;
        let timeout = self.smoothed_ns.saturating_add(self.variation_ns.saturating_mul(4));
        self.timeout_ns = timeout.clamp(self.least_ns, self.most_ns);
    }

    /// Nothing came in time: the next wait is twice as long.
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// Nanoseconds to wait for an answer.
    #[inline]
    pub(crate) fn timeout_ns(&self) -> u64 {
        if self.backoff == 0 { self.timeout_ns } else { self.backed_off_ns() }
    }

    fn backed_off_ns(&self) -> u64 {
        (self.timeout_ns.saturating_mul(1 << self.backoff)).min(self.most_ns.max(self.timeout_ns))
    }

    /// Nanoseconds of the time-out before any doubling.
    pub(crate) fn plain_timeout_ns(&self) -> u64 {
        self.timeout_ns
    }

    /// Nanoseconds of the longest wait.
    pub(crate) fn most_ns(&self) -> u64 {
        self.most_ns
    }

    /// Nanoseconds of a round trip, smoothed; the first time-out until one was measured.
    pub(crate) fn smoothed_ns(&self) -> u64 {
        if self.smoothed_ns == 0 { self.timeout_ns } else { self.smoothed_ns }
    }

    /// Nanoseconds of the shortest round trip seen; 0 before the first.
    pub(crate) fn least_seen_ns(&self) -> u64 {
        self.least_seen_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddress;
    use std::time::Duration;

    fn fresh() -> RoundTrip {
        let config = Config {
            first_timeout: Duration::from_millis(5),
            least_timeout: Duration::from_micros(500),
            most_timeout: Duration::from_millis(100),
            ..Config::client(MacAddress([2, 0, 0, 0, 0, 1]))
        };
        RoundTrip::new(&config)
    }

    #[test]
    fn the_arithmetic_is_rfc_6298() {
        let mut trip = fresh();
        assert_eq!(trip.timeout_ns(), 5_000_000);
        trip.measured(1_000_000);
        assert_eq!((trip.smoothed_ns, trip.variation_ns, trip.timeout_ns()), (1_000_000, 500_000, 3_000_000));
        trip.measured(2_000_000);
        // RTTVAR = 3/4 * 500 us + 1/4 * 1000 us; SRTT = 7/8 * 1000 us + 1/8 * 2000 us.
        assert_eq!((trip.smoothed_ns, trip.variation_ns), (1_125_000, 625_000));
        assert_eq!(trip.timeout_ns(), 1_125_000 + 4 * 625_000);
        assert_eq!(trip.least_seen_ns(), 1_000_000);
    }

    #[test]
    fn retransmission_timeout_doubles_up_to_a_bound_until_a_sample_is_taken() {
        let mut trip = fresh();
        trip.measured(400_000);
        let plain = trip.timeout_ns();
        assert_eq!(plain, 1_200_000);
        trip.back_off();
        assert_eq!(trip.timeout_ns(), 2 * plain);
        for _ in 0..100 {
            trip.back_off();
        }
        assert_eq!(trip.timeout_ns(), 100_000_000);
        trip.measured(400_000);
        assert!(trip.timeout_ns() <= plain);
    }

    #[test]
    fn the_wait_keeps_its_bounds_whatever_is_measured() {
        let mut trip = fresh();
        for sample in [0, 1, u64::MAX, 0, u64::MAX, 7] {
            trip.measured(sample);
            assert!((500_000..=100_000_000).contains(&trip.timeout_ns()), "{trip:?}");
        }
    }
}
