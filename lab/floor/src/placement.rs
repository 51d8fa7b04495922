//! Where two cores lie to each other, as the time of one line between them shows it.
//!
//! A hypervisor moves virtual CPUs unasked, within minutes: two of them share a cache, then lie in different ones, then share
//! one core. Every figure between two cores changes with that by a factor, so it is taken with the round trip of a bare line
//! before and after it, and figures of different placements are never put together.

use std::fmt;

use beeline_tuning::{same_placement, takes_turns};

use crate::{Cores, FloorError, bare_trip_p50_ns};

/// Round trips of one look: some hundred microseconds where cores are near.
const TRIPS: u64 = 1_000;
/// The line of [`bare_trip_p50_ns`] is one and the same, so a small ring is enough.
const RING_LINES: u32 = 16;
/// Cores that share a cache take 100 to 250 ns for a line there and back; those that do not, 350 to 900 (two guests of Zen 4
/// and Zen 5, and the published figures of both makers' servers).
const NEAR_BELOW_NS: f64 = 300.0;

/// Where two cores lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// They share a cache.
    Near,
    /// A line between them crosses the chip, or a socket.
    Far,
    /// They are one core, given to two virtual CPUs in turns: nothing between them can be measured.
    Shared,
}

impl Placement {
    /// Returns the name that tables and files use.
    pub const fn name(self) -> &'static str {
        match self {
            Placement::Near => "near",
            Placement::Far => "far",
            Placement::Shared => "shared",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// One look at the placement of two cores.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct LineTrip {
    /// Round trip of a bare line, p50 in ns.
    pub p50_ns: f64,
}

impl LineTrip {
    /// Looks: the bare line between two cores that do nothing else, a millisecond at most where each is a core of its own.
    ///
    /// # Errors
    /// As [`bare_trip_p50_ns`].
    pub fn measure(cores: Cores) -> Result<Self, FloorError> {
        Ok(LineTrip { p50_ns: bare_trip_p50_ns(cores, RING_LINES, TRIPS, 0)? })
    }

    /// Returns what the time says about the cores.
    pub fn placement(self) -> Placement {
        match self.p50_ns {
            ns if ns < NEAR_BELOW_NS => Placement::Near,
            ns if takes_turns(ns) => Placement::Shared,
            _ => Placement::Far,
        }
    }

    /// Whether both looks found the same placement: by its name, and neither took half as long again as the other.
    pub fn agrees_with(self, other: Self) -> bool {
        self.placement() == other.placement() && same_placement(self.p50_ns, other.p50_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trip(p50_ns: f64) -> LineTrip {
        LineTrip { p50_ns }
    }

    #[test]
    fn placement_follows_from_the_time_of_a_line() {
        let placements =
            [90.0, 150.0, 299.0, 301.0, 575.0, 1499.0, 1500.0, 1e7].map(|ns| trip(ns).placement());
        let (near, far, shared) = (Placement::Near, Placement::Far, Placement::Shared);
        assert_eq!(placements, [near, near, near, far, far, far, shared, shared]);
    }

    #[test]
    fn looks_agree_within_half_and_within_one_placement() {
        assert!(trip(100.0).agrees_with(trip(149.0)) && trip(149.0).agrees_with(trip(100.0)));
        assert!(!trip(100.0).agrees_with(trip(151.0)) && !trip(151.0).agrees_with(trip(100.0)));
        assert!(!trip(280.0).agrees_with(trip(320.0)), "near and far are never put together");
    }

    #[test]
    fn look_between_two_cores_takes_a_time() -> Result<(), FloorError> {
        let Ok(cores) = Cores::pair() else { return Ok(()) };
        assert!(LineTrip::measure(cores)?.p50_ns > 0.0);
        Ok(())
    }
}
