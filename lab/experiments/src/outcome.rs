//! What came of a run: frames, times, cost.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::CoreId;

use crate::{Cost, LatencyHistogram};

/// Result of one sender's run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// From the call that sends a frame (of an open loop: from its arrival) to its first bit on the wire.
    pub to_wire: LatencyHistogram,
    /// Frames that were counted.
    pub frames: u64,
    pub bytes: u64,
    /// From the first counted frame on the wire to the last.
    pub elapsed: Picoseconds,
    /// Of the counted frames, what left by the wire of each device.
    pub of_devices: Vec<Share>,
    /// Frames that left from the first call on, those of the warm-up included: what `cost` is the cost of.
    pub all_frames: u64,
    pub all_bytes: u64,
    /// What was spent from the first call until the last frame had left.
    pub cost: Cost,
    /// Frames that were not what was sent; only looked for in a machine that keeps frames.
    pub changed_frames: u64,
    /// When each of the first counted frames was where.
    pub times: Vec<FrameTimes>,
}

/// What left by the wire of one of several devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub frames: u64,
    pub bytes: u64,
    /// From the first of them on the wire to the last: a device whose cores are done before others has less.
    pub elapsed: Picoseconds,
}

/// Moments in the life of one frame, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTimes {
    /// The core that sent it.
    pub core: CoreId,
    pub bytes: u32,
    /// When it was there to be sent.
    pub begun_at: Picoseconds,
    /// When the call that sent it had returned.
    pub returned_at: Picoseconds,
    /// When the logic of the device let it go.
    pub decided_at: Picoseconds,
    pub starts_at: Picoseconds,
    pub ends_at: Picoseconds,
}

impl Outcome {
    /// Gbit/s of frames, of all devices together.
    pub fn goodput_gbps(&self) -> f64 {
        gbps(self.bytes, self.elapsed)
    }

    /// Returns frames divided by the elapsed time, or 0 when no time passed.
    pub fn frames_per_second(&self) -> f64 {
        if self.elapsed == Picoseconds::ZERO {
            return 0.0;
        }
        self.frames as f64 * 1e12 / self.elapsed.0 as f64
    }
}

impl Share {
    /// Gbit/s of frames.
    pub fn goodput_gbps(&self) -> f64 {
        gbps(self.bytes, self.elapsed)
    }
}

fn gbps(bytes: u64, elapsed: Picoseconds) -> f64 {
    if elapsed == Picoseconds::ZERO { 0.0 } else { bytes as f64 * 8000.0 / elapsed.0 as f64 }
}
