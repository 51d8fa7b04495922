//! The bandwidth of memory, which every device and every core takes from.

use crate::des::Picoseconds;
use crate::device::Rate;

/// Bytes of a line, the least that memory moves.
const LINE_BYTES: u64 = 64;

/// One server of lines, first come first served.
///
/// Whoever wants lines takes them at the time it is, never for later: the server is busy as long as anybody wants something,
/// so that what all get together is its rate. How long an access takes that waits for nobody is said elsewhere
/// ([`RootSettings`](super::RootSettings)); here is only the waiting.
#[derive(Debug, Default)]
pub struct Bandwidth {
    free: Picoseconds,
}

impl Bandwidth {
    /// Takes so many lines at `now`; returns when their turn comes, which is `now` if nobody is in front or there is no
    /// limit. Times of calls do not run backwards.
    #[inline]
    pub fn take(&mut self, now: Picoseconds, lines: u64, rate: Rate) -> Picoseconds {
        if rate.is_unlimited() {
            return now;
        }
        let begins = now.max(self.free);
        self.free = begins + rate.time(lines * LINE_BYTES);
        begins
    }

    /// When all that was taken has been moved; the past if that has happened.
    #[inline]
    pub fn moved_at(&self) -> Picoseconds {
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_one_after_the_other_and_an_idle_time_is_lost() {
        // A line in 4 ns.
        let (rate, ns) = (Rate::from_gbps(128.0), Picoseconds::from_ns);
        let mut memory = Bandwidth::default();
        assert_eq!(memory.take(ns(10), 2, rate), ns(10));
        assert_eq!(memory.take(ns(11), 1, rate), ns(18));
        assert_eq!(memory.moved_at(), ns(22));
        assert_eq!(memory.take(ns(50), 1, rate), ns(50));
        assert_eq!(memory.take(ns(50), 9, Rate::UNLIMITED), ns(50));
    }
}
