//! How close together frames leave: at once while nothing is lost, spaced when the network shows that it is full.
//!
//! A window of frames that leaves in one burst overflows the queue of a switch that a spaced one would not. So a loss
//! spaces the frames by a share of the round trip, a time-out by half of it, and each window that arrives whole halves
//! the spacing until there is none. A question that waits for its answer is never held up: its predecessor left more
//! than a spacing ago.

use crate::Pacing;
use crate::time::Nanos;

/// After the first loss a round trip carries this many frames, and not fewer than [`LEAST_FRAMES`] after more.
const FRAMES_AFTER_LOSS: u64 = 32;
/// However many losses: only time-outs space frames further, to two a round trip.
const LEAST_FRAMES: u64 = 8;
const FRAMES_AFTER_TIMEOUT: u64 = 2;

/// The earliest time at which the next frame may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    mode: Pacing,
    /// Nanoseconds between two frames; 0: none.
    spacing_ns: u64,
    next: Nanos,
    /// Frames acknowledged since the last loss.
    clean: u32,
}

impl Pacer {
    pub(crate) fn new(mode: Pacing) -> Self {
        let spacing_ns = match mode {
            Pacing::Off | Pacing::AfterLoss => 0,
            Pacing::FramesPerSecond(rate) => 1_000_000_000 / u64::from(rate.get()),
        };
        Pacer { mode, spacing_ns, next: Nanos(0), clean: 0 }
    }

    /// When a frame may leave: at once if not later than now.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        if self.spacing_ns == 0 { Nanos(0) } else { self.next }
    }

    /// Records that a frame left.
    #[inline]
    pub(crate) fn sent(&mut self, now: Nanos) {
        if self.spacing_ns != 0 {
            // Time that went by unused is not saved up, or it would come as a burst.
            self.next = now.max(self.next).after(self.spacing_ns);
        }
    }

    /// Frames are missing in front of others that arrived.
    pub(crate) fn lost(&mut self, round_trip_ns: u64) {
        if self.mode == Pacing::AfterLoss {
            let most = round_trip_ns / LEAST_FRAMES;
            let wanted = (self.spacing_ns * 2).max(round_trip_ns / FRAMES_AFTER_LOSS);
            // A time-out's wider spacing is not narrowed by a further loss.
            self.spacing_ns = wanted.min(most).max(self.spacing_ns);
            self.clean = 0;
        }
    }

    /// Slows down after a retransmission timeout.
    pub(crate) fn timed_out(&mut self, round_trip_ns: u64) {
        if self.mode == Pacing::AfterLoss {
            self.spacing_ns = round_trip_ns / FRAMES_AFTER_TIMEOUT;
            self.clean = 0;
        }
    }

    /// Frames were acknowledged; after a whole window of them the spacing halves, and at last there is none.
    #[inline]
    pub(crate) fn arrived(&mut self, frames: u32, window: u32, round_trip_ns: u64) {
        if self.spacing_ns != 0 && self.mode == Pacing::AfterLoss {
            self.clean += frames;
            if self.clean >= window {
                self.clean = 0;
                self.spacing_ns /= 2;
                if self.spacing_ns < round_trip_ns / u64::from(window.max(1)) {
                    self.spacing_ns = 0;
                }
            }
        }
    }

    /// Nanoseconds between two frames now; 0: they leave at once.
    pub(crate) fn spacing_ns(&self) -> u64 {
        self.spacing_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn nothing_is_spaced_until_something_is_lost() {
        let mut pacer = Pacer::new(Pacing::AfterLoss);
        pacer.sent(Nanos(1000));
        assert_eq!(pacer.next(), Nanos(0));
        pacer.lost(64_000);
        assert_eq!(pacer.spacing_ns(), 2000);
        pacer.sent(Nanos(5000));
        pacer.sent(Nanos(5000));
        assert_eq!(pacer.next(), Nanos(9000), "two frames, two spacings");
        pacer.sent(Nanos(1_000_000));
        assert_eq!(pacer.next(), Nanos(1_002_000), "unused time is not saved up");
        for _ in 0..10 {
            pacer.lost(64_000);
        }
        assert_eq!(pacer.spacing_ns(), 8000);
        pacer.timed_out(64_000);
        pacer.lost(64_000);
        assert_eq!(pacer.spacing_ns(), 32_000);
        let mut windows = 0;
        while pacer.spacing_ns() != 0 {
            pacer.arrived(64, 64, 64_000);
            windows += 1;
        }
        assert_eq!(windows, 6, "32, 16, 8, 4, 2, 1 microseconds");
    }

    #[test]
    fn a_rate_stays_what_it_is() {
        let mut pacer = Pacer::new(Pacing::FramesPerSecond(NonZeroU32::new(1_000_000).unwrap()));
        assert_eq!(pacer.spacing_ns(), 1000);
        pacer.lost(64_000);
        pacer.timed_out(64_000);
        pacer.arrived(1000, 64, 64_000);
        assert_eq!(pacer.spacing_ns(), 1000);
        let mut off = Pacer::new(Pacing::Off);
        off.lost(64_000);
        off.timed_out(64_000);
        assert_eq!(off.spacing_ns(), 0);
    }
}
