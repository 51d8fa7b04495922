//! When each fault begins and ends, on every path alike, and which gaps of a receiver are whose.

use std::time::Duration;

/// Connections of a round, one after the other: a window that was written over does not come back.
pub(super) const CONNECTIONS: usize = 4;
/// Behind the beginning of a connection: when its path goes down and comes back, and how long it is.
pub(super) const DOWN_AT: Duration = Duration::from_secs(1);
pub(super) const UP_AT: Duration = Duration::from_secs(3);
pub(super) const LASTS: Duration = Duration::from_secs(5);

/// Gaps that are said: all that are longer than a message that is late.
pub(super) const LEAST_GAP_NS: u64 = 250_000;
/// How the lines of a receiver begin: when a connection was accepted; when a gap ended, and its length; all that came.
pub(super) const BEGUN: &str = "begun ";
pub(super) const GAP: &str = "gap ";
pub(super) const ALL: &str = "all ";

/// A gap that begins later is not of the change: the machine itself has one of some milliseconds now and then.
const BEGINS_WITHIN: Duration = Duration::from_millis(100);

/// When a path of a connection was changed, by the clock of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub down_ns: u64,
    pub up_ns: u64,
}

/// What the receiver of a round said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub begun_ns: Vec<u64>,
    /// When each long gap ended, and its length.
    gaps: Vec<(u64, u64)>,
    /// Bytes of all connections that have ended.
    pub total: u64,
}

/// The longest gaps of a round, in nanoseconds, one of each change.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Stalls {
    pub down: Vec<f64>,
    pub up: Vec<f64>,
}

impl Said {
    pub(super) fn read(out: &str) -> Self {
        let number = |text: &str| text.parse::<u64>().ok();
        let begun_ns = out.lines().filter_map(|line| number(line.strip_prefix(BEGUN)?)).collect();
        let gaps = out.lines().filter_map(|line| {
            let (at, gap) = line.strip_prefix(GAP)?.split_once(' ')?;
            Some((number(at)?, number(gap)?))
        });
        let total = out.lines().filter_map(|line| number(line.strip_prefix(ALL)?)).sum();
        Said { begun_ns, gaps: gaps.collect(), total }
    }

    /// The longest gap that began before a change or soon behind it, and ended behind it, before the next one; the least that is said where none did.
    fn longest(&self, from: u64, to: u64) -> f64 {
        let begins_by = from + BEGINS_WITHIN.as_nanos() as u64;
        let of_it = |&&(at, gap): &&(u64, u64)| (from..to).contains(&at) && at - gap < begins_by;
        self.gaps.iter().filter(of_it).map(|(_, gap)| *gap).max().unwrap_or(LEAST_GAP_NS) as f64
    }

    pub(super) fn stalls(&self, changes: &[Changes]) -> Stalls {
        let mut stalls = Stalls::default();
        for change in changes {
            stalls.down.push(self.longest(change.down_ns, change.up_ns));
            stalls.up.push(self.longest(change.up_ns, change.up_ns + (LASTS - UP_AT).as_nanos() as u64));
        }
        stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_of_the_change_that_it_began_at_and_ended_behind() {
        let ms = 1_000_000;
        let out = format!(
            "begun 5\ngap {} {}\ngap {} {}\ngap {} {}\nall 7\nbegun 900\ngap {} {}\nall 4\n",
            99 * ms,
            50 * ms,
            150 * ms,
            51 * ms,
            900 * ms,
            600 * ms,
            2001 * ms,
            3 * ms,
        );
        let said = Said::read(&out);
        assert_eq!((&*said.begun_ns, said.total), (&[5, 900][..], 11));
        let changes = [
            // What ended before is no gap of it, nor is what began half a second later.
            Changes { down_ns: 100 * ms, up_ns: 1000 * ms },
            Changes { down_ns: 1500 * ms, up_ns: 2000 * ms },
        ];
        let (least, ms) = (LEAST_GAP_NS as f64, ms as f64);
        assert_eq!(said.stalls(&changes), Stalls { down: vec![51.0 * ms, least], up: vec![least, 3.0 * ms] });
    }
}
