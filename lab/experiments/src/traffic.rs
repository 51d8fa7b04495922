//! Which frames are sent, and when.

use std::sync::Arc;

use beeline_link_sim::des::{Picoseconds, Stream, stream};
use rand::RngExt;

/// When frames come to a sender.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// The next frame when the one before has left by the wire: its latency alone.
    OneByOne,
    /// Always: the sender is never without a frame. So many are handed over at a time.
    Always {
        /// Frames a burst.
        burst: usize,
    },
    /// At random, so many a second on average for each core (a Poisson process).
    Poisson {
        /// Frames a second.
        per_second: f64,
    },
    /// In bursts that come at random, so many frames a second on average for each core.
    Bursts {
        /// Frames a second.
        per_second: f64,
        /// Frames a burst.
        burst: u32,
    },
    /// After these gaps, taken in turn, on each core: as something recorded came.
    Recorded {
        /// From each frame to the next, the first from the start.
        gaps: Arc<[Picoseconds]>,
    },
}

/// Frames to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Sizes of frames in bytes, FCS excluded, taken in turn.
    pub sizes: Vec<usize>,
    /// Frames that each core sends.
    pub frames: u64,
    pub arrivals: Arrivals,
}

/// When the next frame comes.
#[derive(Debug)]
pub(crate) struct Clock {
    arrivals: Arrivals,
    random: Stream,
    next: Picoseconds,
    /// Frames of a burst that are still to come.
    left: u32,
    /// Frames that came after recorded gaps.
    came: usize,
}

impl Clock {
    pub(crate) fn new(arrivals: Arrivals, seed: u64, core: u16) -> Clock {
        let random = stream(seed, &format!("arrivals {core}"));
        Clock { arrivals, random, next: Picoseconds::ZERO, left: 0, came: 0 }
    }

    /// Starts the clock: no frame comes before `start`.
    pub(crate) fn start(&mut self, start: Picoseconds) {
        self.next = start;
    }

    /// When the next frame comes, the one before having come at the time that was said last. Only of an open loop.
    pub(crate) fn next(&mut self) -> Picoseconds {
        let (per_second, burst) = match &self.arrivals {
            Arrivals::Poisson { per_second } => (*per_second, 1),
            Arrivals::Bursts { per_second, burst } => {
                (per_second / f64::from(*burst.max(&1)), *burst.max(&1))
            }
            Arrivals::Recorded { gaps } => {
                self.next += gaps.get(self.came % gaps.len().max(1)).copied().unwrap_or_default();
                self.came += 1;
                return self.next;
            }
            Arrivals::OneByOne | Arrivals::Always { .. } => return self.next,
        };
        if self.left > 0 {
            self.left -= 1;
            return self.next;
        }
        self.left = burst - 1;
        let uniform: f64 = self.random.random();
        let gap_ps = -(1.0 - uniform).ln() / per_second * 1e12;
        self.next += Picoseconds(gap_ps as u64);
        self.next
    }
}
