//! How long a receiver has not gone on, as its sender sees it.

use std::time::{Duration, Instant};

/// When to look again.
pub(crate) const LOOKED_AT_EVERY: Duration = Duration::from_millis(100);
/// A receiver that sleeps though there is something for it misses a message, because it was blanked.
const ASLEEP_FOR: Duration = LOOKED_AT_EVERY;
/// So does one that looks again and again; but most that take nothing have something else to do, and will not wait to hear it.
const AWAKE_FOR: Duration = Duration::from_secs(2);

/// Looks of which each finds everything taken and nothing sent, until there are no more. To begin anew costs a ring, and a connection that is busy has
/// taken everything at most moments.
const IDLE_LOOKS: u32 = 10;

/// What is known of a receiver that has not taken all bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    since: Instant,
    /// The first byte that was not taken.
    untaken_from: u64,
    /// Bytes that were sent at the last look that found all of them taken, and such looks since.
    sent: u64,
    idle_looks: u32,
}

impl Silence {
    /// Something was sent to a receiver of which nothing is known.
    pub(crate) fn begin() -> Self {
        Silence { since: Instant::now(), untaken_from: u64::MAX, sent: u64::MAX, idle_looks: 0 }
    }

    /// Whether nothing has been sent for long, at a look that found all of so many bytes taken.
    pub(crate) fn is_idle(&mut self, sent: u64) -> bool {
        self.idle_looks = if sent == self.sent { self.idle_looks + 1 } else { 0 };
        self.sent = sent;
        self.idle_looks >= IDLE_LOOKS
    }

    /// Whether this byte has been the first that was not taken for too long.
    pub(crate) fn lasts(&mut self, untaken_from: u64, is_asleep: bool, now: Instant) -> bool {
        if untaken_from != self.untaken_from {
            (self.since, self.untaken_from) = (now, untaken_from);
        }
        now - self.since >= if is_asleep { ASLEEP_FOR } else { AWAKE_FOR }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_is_idle_once_nothing_was_sent_for_many_looks() {
        let mut silence = Silence::begin();
        assert!((0..100).all(|sent| !silence.is_idle(sent)));
        let looks = (1..).find(|_| silence.is_idle(99)).unwrap();
        assert_eq!(looks, IDLE_LOOKS);
    }

    #[test]
    fn receiver_that_goes_on_is_not_silent_however_far_it_is_behind() {
        let mut silence = Silence::begin();
        let start = Instant::now();
        for turn in 0..10 {
            assert!(!silence.lasts(u64::from(turn), true, start + turn * ASLEEP_FOR));
        }
        assert!(!silence.lasts(9, true, start + 10 * ASLEEP_FOR - Duration::from_millis(1)));
        assert!(silence.lasts(9, true, start + 10 * ASLEEP_FOR));
        assert!(!silence.lasts(9, false, start + 10 * ASLEEP_FOR));
        assert!(silence.lasts(9, false, start + 9 * ASLEEP_FOR + AWAKE_FOR));
    }
}
