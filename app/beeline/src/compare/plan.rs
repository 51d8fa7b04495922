//! What a run of `compare` measures, and how often.

use beeline_floor::Cores;

use super::args::{CompareArgs, Part};
use beeline_floor::rounds::Keep;

/// The measurements of a run, defaults filled in.
pub struct Plan<'a> {
    pub args: &'a CompareArgs,
    pub sizes: Vec<u32>,
    pub samples: u64,
    pub rounds: u32,
    pub cores: Cores,
}

impl Plan<'_> {
    /// Whether this part is measured.
    pub fn wants(&self, part: Part) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&part)
    }

    /// Which rounds count.
    pub fn keep(&self) -> Keep {
        if self.args.any_placement { Keep::All } else { Keep::Steady }
    }

    /// How many interfaces are checked over three processes.
    pub fn checks(&self) -> u64 {
        if self.wants(Part::Check) { self.args.interface.len() as u64 } else { 0 }
    }

    /// Measurements of a round of frames that a NIC gives back.
    pub fn there_and_back_steps(&self) -> u64 {
        let counted = |part, kinds| if self.wants(part) { kinds * self.frame_kinds() } else { 0 };
        counted(Part::Latency, 2) + counted(Part::Rate, 1)
    }

    /// Measurements of a round of transmit rates.
    pub fn transmit_steps(&self) -> u64 {
        self.frame_kinds()
    }

    fn frame_kinds(&self) -> u64 {
        (self.args.interface.len() * self.sizes.len()) as u64
    }
}
