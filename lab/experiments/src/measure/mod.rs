//! Quantities of a machine, each by a run in virtual time.
//!
//! "One" is measured on an idle machine, rates over a run long enough that its start does not show. Times are in
//! nanoseconds. From: `beeline figures` and its like. Not here: what was published.

mod dma;
mod frames;
mod loop_back;
mod stores;

use beeline_link_sim::machine::Aperture;
use beeline_platforms::Platform;

pub use dma::{Direction, DmaEngine};
pub use frames::{FrameHalf, Stamp};
pub use stores::Fences;

use crate::Data;

/// A bench: a platform, and where the data of its device lie.
#[derive(Clone, Debug)]
pub struct Bench<'a> {
    pub platform: &'a Platform,
    /// Seed of everything random.
    pub seed: u64,
    /// Where the data lie that the device reads.
    pub data: Data,
}

impl<'a> Bench<'a> {
    /// A bench whose data lie in the last-level cache of the socket of the device.
    pub fn new(platform: &'a Platform, seed: u64) -> Bench<'a> {
        Bench { platform, seed, data: Data::default() }
    }
}

/// A window of 256 KiB for each core, as HotOS'25 has it (section 2.1).
const WINDOW_LINES: u32 = 4096;

fn aperture(queues: u16) -> Aperture {
    let stride_bytes = u64::from(WINDOW_LINES) * 64;
    Aperture { offset_bytes: stride_bytes, stride_bytes, window_lines: WINDOW_LINES, queues: queues.into() }
}
