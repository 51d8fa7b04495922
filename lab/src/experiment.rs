//! One point of a sweep: a platform, an interface and traffic, and what came of it.

use beeline_driver::Choice;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Sim;
use beeline_nic_model::Nic;
use beeline_platforms::Platform;
use beeline_spec::Interface;
use beeline_window::FencePolicy;

use crate::{
    Data, LabError, NicShape, Outcome, Run, Spans, Station, Traffic, Watched, machine_for, model_nic,
};

/// What a window is blanked with where one is; the bytes of frames never look like it.
const BLANK: u64 = 0x9e37_79b9_7f4a_7c15;

/// Frames by one interface on one platform.
#[derive(Clone, Debug)]
pub struct Experiment<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// How frames are handed over.
    pub interface: Interface,
    /// Where `mmio` fences.
    pub fences: FencePolicy,
    /// Where the data lie that the device reads.
    pub data: Data,
    /// Seed of the ordering adversary, if one stands before the window.
    pub adversary: Option<u64>,
    /// Cores that send, each by a queue of its own.
    pub cores: u16,
    /// What each of them sends.
    pub traffic: Traffic,
    /// Frames of each core that are sent before latency and rate are counted.
    pub warm_up: u64,
    /// Seed of everything that is random.
    pub seed: u64,
}

/// What came of an experiment.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Latencies, rates and cost.
    pub outcome: Outcome,
    /// The disorder of the windows; only of interfaces that fill a window line by line.
    pub spans: Option<Spans>,
}

impl Experiment<'_> {
    /// A machine with a port that is ready.
    ///
    /// # Errors
    /// The platform makes no machine, or the port does not come up.
    pub fn station(&self) -> Result<Station<Watched<Nic>>, LabError> {
        let shape = NicShape::for_cores(self.cores);
        let settings = machine_for(self.interface, self.platform, self.cores, shape.aperture(), self.data)?;
        let nic = Watched::new(model_nic(&shape)?, shape.aperture());
        let sim = Sim::new(nic, settings, self.seed)?;
        sim.with(|machine| machine.keep_frames());
        Station::new(sim)
    }

    /// What is sent, and how.
    pub fn run(&self) -> Run {
        let mut choice = Choice::of(self.interface, BLANK);
        choice.adversary = self.adversary;
        choice.mmio.fence_policy = self.fences;
        Run {
            choice,
            traffic: self.traffic.clone(),
            message: Picoseconds(self.platform.core.message_ns.value.picoseconds()),
            warm_up: self.warm_up,
            seed: self.seed,
        }
    }

    /// Sends the frames and compares each with what leaves.
    ///
    /// # Errors
    /// As [`Experiment::station`]; a frame cannot be sent; frames were lost or changed on the way, as interfaces lose them
    /// that need lines in order on a machine that does not keep it.
    pub fn measure(&self) -> Result<Measured, LabError> {
        let mut station = self.station()?;
        let outcome = self.run().on(&mut station, self.cores)?;
        if outcome.changed_frames > 0 {
            let (changed, frames) = (outcome.changed_frames, outcome.all_frames);
            return Err(LabError::Changed { changed, frames });
        }
        let fills_lines = matches!(self.interface, Interface::Mmio | Interface::Kpio);
        let spans = station.sim.with(|machine| machine.device().spans().clone());
        Ok(Measured { outcome, spans: fills_lines.then_some(spans) })
    }

    /// Energy of what was spent in nanojoules: of cores that work, of the link and of memory. `None` where the platform does
    /// not say what they use.
    pub fn energy_nj(&self, outcome: &Outcome) -> Option<f64> {
        let energy = self.platform.energy.as_ref()?;
        let cost = &outcome.cost;
        let bits_nj = |bytes: u64, pj_per_bit: f64| bytes as f64 * 8.0 * pj_per_bit / 1000.0;
        // Watts times nanoseconds are nanojoules.
        let cores_nj = energy.core_watts.value * cost.worked.0 as f64 / 1000.0;
        Some(
            cores_nj
                + bits_nj(cost.link_bytes(), energy.link_pj_per_bit.value)
                + bits_nj(cost.memory_bytes, energy.memory_pj_per_bit.value),
        )
    }
}
