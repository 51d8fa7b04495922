//! Interrupts that come to a core at random: timers, other devices, other cores.
//!
//! What one does: the core stands still for the handler, and what its write-combining buffers hold leaves, so that a line
//! which was being filled goes in pieces. When one comes is known ahead, as everything is that a core does: no event is
//! needed while nothing is in the buffers, and a machine comes to rest although interrupts never end.

use rand::RngExt;

use crate::des::{Picoseconds, Stream};

/// The interrupts of one core.
#[derive(Debug)]
pub(super) struct Interrupts {
    /// From one to the next in the mean; they are independent of each other. Zero: none comes.
    mean: Picoseconds,
    next: Picoseconds,
    random: Stream,
    served: u64,
}

impl Interrupts {
    /// Starts the sequence of interrupts at time zero.
    pub(super) fn new(mean: Picoseconds, random: Stream) -> Self {
        let mut interrupts = Interrupts { mean, next: Picoseconds::NEVER, random, served: 0 };
        if mean > Picoseconds::ZERO {
            interrupts.next = interrupts.after(Picoseconds::ZERO);
        }
        interrupts
    }

    /// Returns when the next interrupt comes.
    #[inline]
    pub(super) fn next(&self) -> Picoseconds {
        self.next
    }

    /// The next one has come.
    pub(super) fn take(&mut self) {
        self.next = self.after(self.next);
        self.served += 1;
    }

    /// Nobody is interested in those before `from`: they are not told one by one. Interrupts have no memory, so that the next
    /// one may as well be drawn from there.
    pub(super) fn forget_until(&mut self, from: Picoseconds) {
        if self.next < from {
            self.next = self.after(from);
        }
    }

    /// How many interrupts a core has had.
    pub(super) fn served(&self) -> u64 {
        self.served
    }

    /// The one after `at`: gaps without memory are exponential.
    fn after(&mut self, at: Picoseconds) -> Picoseconds {
        let uniform: f64 = self.random.random();
        // Never 0, and at most 53 bits: the gap is at least a picosecond and less than 37 times the mean.
        let gap = -(1.0 - uniform).ln() * self.mean.0 as f64;
        at + Picoseconds((gap.round() as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::des::stream;

    #[test]
    fn gaps_are_exponential_and_of_the_seed() {
        let gaps = |seed| -> Vec<u64> {
            let mut interrupts = Interrupts::new(Picoseconds(1_000_000), stream(seed, "interrupts"));
            let mut last = 0;
            let gap = |_| {
                let at = interrupts.next().0;
                interrupts.take();
                at - std::mem::replace(&mut last, at)
            };
            (0..10_000).map(gap).collect()
        };
        let found = gaps(1);
        let mean = found.iter().sum::<u64>() as f64 / 1e10;
        let longer = found.iter().filter(|gap| **gap > 1_000_000).count() as f64 / 1e4;
        assert!((mean - 1.0).abs() < 0.04, "{mean} of the mean");
        assert!((longer - (-1.0f64).exp()).abs() < 0.02, "{longer} are longer than the mean");
        assert_eq!(found, gaps(1));
        assert_ne!(found, gaps(2));
    }

    #[test]
    fn none_comes_where_none_is_wanted() {
        let interrupts = Interrupts::new(Picoseconds::ZERO, stream(1, "interrupts"));
        assert_eq!((interrupts.next(), interrupts.served()), (Picoseconds::NEVER, 0));
    }
}
