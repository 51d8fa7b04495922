//! Time in integer picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A time since the start of a run, or a span of time, in picoseconds. 2^64 of them are 213 days.
///
/// Arithmetic that leaves the range panics, also in release: a run that wraps around is wrong in silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Picoseconds(pub u64);

impl Picoseconds {
    /// The start of a run, and no time at all.
    pub const ZERO: Picoseconds = Picoseconds(0);
    /// Later than everything.
    pub const NEVER: Picoseconds = Picoseconds(u64::MAX);

    /// Converts nanoseconds.
    ///
    /// # Panics
    /// If that is more than 213 days.
    pub const fn from_ns(ns: u64) -> Self {
        match ns.checked_mul(1000) {
            Some(ps) => Picoseconds(ps),
            None => panic!("nanoseconds of a simulated time are less than 213 days"),
        }
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1000
    }

    /// From `earlier` to this; zero if `earlier` is later.
    pub const fn since(self, earlier: Picoseconds) -> Picoseconds {
        Picoseconds(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Picoseconds {
    type Output = Picoseconds;

    #[inline]
    fn add(self, span: Picoseconds) -> Picoseconds {
        Picoseconds(self.0.checked_add(span.0).expect("a simulated time is less than 213 days"))
    }
}

impl AddAssign for Picoseconds {
    #[inline]
    fn add_assign(&mut self, span: Picoseconds) {
        *self = *self + span;
    }
}

impl Sub for Picoseconds {
    type Output = Picoseconds;

    #[inline]
    fn sub(self, earlier: Picoseconds) -> Picoseconds {
        Picoseconds(self.0.checked_sub(earlier.0).expect("a span of time is not negative"))
    }
}

impl Mul<u64> for Picoseconds {
    type Output = Picoseconds;

    #[inline]
    fn mul(self, times: u64) -> Picoseconds {
        Picoseconds(self.0.checked_mul(times).expect("a simulated time is less than 213 days"))
    }
}

impl fmt::Display for Picoseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03} ns", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_picoseconds() {
        assert_eq!(Picoseconds::from_ns(3) + Picoseconds(1), Picoseconds(3001));
        assert_eq!(Picoseconds(2999).as_ns(), 2);
        assert_eq!(Picoseconds(1_234_567).to_string(), "1234.567 ns");
        assert_eq!(Picoseconds(7).since(Picoseconds(9)), Picoseconds::ZERO);
        assert_eq!(Picoseconds(7) * 3, Picoseconds(21));
    }

    #[test]
    #[should_panic(expected = "less than 213 days")]
    fn a_time_does_not_wrap() {
        let _ = Picoseconds::NEVER + Picoseconds(1);
    }
}
