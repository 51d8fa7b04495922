//! What a run of `compare` measures, and how often.

use beeline_floor::Cores;

use super::args::{CompareArgs, Part};
use super::rounds::Keep;
use super::stores::Stores;

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

    /// How many measurements there are, if no round is dropped.
    pub fn steps(&self, stores: &Stores<'_>) -> u64 {
        let through_nic = (self.args.interface.len() * self.sizes.len()) as u64;
        let counted = |part, steps| if self.wants(part) { steps } else { 0 };
        let round = counted(Part::Stores, stores.steps())
            + counted(Part::Latency, 2 * through_nic)
            + counted(Part::Rate, through_nic)
            + counted(Part::Transmit, through_nic);
        round * u64::from(self.rounds) + self.checks()
    }
}
