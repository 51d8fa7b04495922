//! A receiver that has many bytes of its socket before it: its sender lets it catch up, so that the stream goes on in the window.
//!
//! A sender that is faster than its receiver, as one whose writes cost less than the other's reads, fills the socket to the brim: megabytes, behind which
//! a window would be full long before anybody reads it. Such a stream would stay on the socket for ever, or nearly. So a sender that would
//! like to go up gives the socket less than its receiver takes meanwhile, until little is left there.

use std::time::{Duration, Instant};

/// A receiver that is behind by so many bytes is near: it reads the window before its sender takes that for full.
const NEAR_BYTES: u64 = 4 << 10;
/// How many bytes a receiver is to take for each that the socket is given meanwhile.
const TAKES_PER_BYTE: u64 = 4;
/// A receiver that takes nothing for so long does something else. It is longer than to take as much as a socket gives at once.
const STANDS_FOR: Duration = Duration::from_micros(100);
/// How long one call waits at most for a receiver that goes on.
const WAITS_FOR: Duration = Duration::from_micros(500);
/// As long as it takes the receiver to come back from a call, others that may run on this core are not asked for.
const SPINS_FOR: Duration = Duration::from_micros(10);
/// Looks between two looks at the clock.
const LOOKS_PER_TIME: u32 = 32;
/// Looks that do not wait, behind a wait in vain: twice as many behind each.
const LEAST_REST: u32 = 4;
const MOST_REST: u32 = 1 << 10;

/// What is known of one receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CatchUp {
    /// Looks that are not to wait, behind the last wait in vain, and those of them that are left.
    rest: u32,
    left: u32,
}

impl CatchUp {
    /// Whether the receiver catches up, and the `next` bytes are to go by the socket still: it has just taken several times as many. Else the sender may go
    /// up: little is left in the socket, or the receiver takes nothing and may come to the window before anything else is sent. `behind` says how many bytes
    /// it has not taken. The wait is short, since a caller that must not wait is kept here too.
    pub(crate) fn waits(&mut self, next: usize, behind: impl Fn() -> u64) -> bool {
        let mut last = behind();
        if last <= NEAR_BYTES {
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        let enough = last.saturating_sub(TAKES_PER_BYTE * next as u64).max(NEAR_BYTES);
        let started = Instant::now();
        let mut moved = started;
        loop {
            for _ in 0..LOOKS_PER_TIME {
                let now = behind();
                if now <= enough {
                    self.rest = 0;
                    return now > NEAR_BYTES;
                }
                std::hint::spin_loop();
            }
            let (left, now) = (behind(), Instant::now());
            if left < last {
                (last, moved) = (left, now);
            }
            let stands = now - moved;
            if stands >= STANDS_FOR || now - started >= WAITS_FOR {
                self.rest = (2 * self.rest).clamp(LEAST_REST, MOST_REST);
                self.left = self.rest;
                return false;
            }
            if stands >= SPINS_FOR {
                std::thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn near_receiver_is_not_waited_for() {
        let looks = Cell::new(0);
        let near = || {
            looks.set(looks.get() + 1);
            NEAR_BYTES
        };
        assert!(!CatchUp::default().waits(1 << 20, near));
        assert_eq!(looks.get(), 1);
    }

    #[test]
    fn receiver_that_goes_on_takes_more_than_it_is_given_until_it_is_near() {
        let (mut catch_up, left, given) = (CatchUp::default(), Cell::new(1_000_000), 4096);
        let takes_a_little = || {
            left.set(left.get() - 64);
            left.get()
        };
        let mut waits = 1;
        // A wait in vain is one for which this thread had no core.
        while left.get() > NEAR_BYTES {
            if catch_up.waits(given, takes_a_little) {
                left.set(left.get() + given as u64);
                waits += 1;
            }
        }
        assert!(waits <= 1_000_000 / (3 * given) + 1, "{waits} waits");
    }

    #[test]
    fn receiver_that_stands_is_waited_for_ever_more_seldom() {
        let mut catch_up = CatchUp::default();
        for expected in [4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            let looks = Cell::new(0);
            let stands = || {
                looks.set(looks.get() + 1);
                1 << 20
            };
            assert!(!catch_up.waits(64, stands));
            assert!(looks.get() > 1, "it is waited for");
            assert_eq!(catch_up.left, expected);
            for _ in 0..expected {
                looks.set(0);
                assert!(!catch_up.waits(64, stands));
                assert_eq!(looks.get(), 1);
            }
        }
        let left = Cell::new(1 << 20);
        let goes_on = || left.replace(left.get() - 64);
        // Until this thread has a core for as long as it takes.
        while !catch_up.waits(64, goes_on) {}
        assert_eq!((catch_up.rest, catch_up.left), (0, 0));
    }
}
