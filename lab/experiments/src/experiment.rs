//! One point of a sweep: a platform, an interface and traffic, and what came of it.

use beeline_contract_device::Device;
use beeline_driver::Choice;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{Aperture, Sim};
use beeline_nic_model::Nic;
#[cfg(feature = "rtl")]
use beeline_nic_rtl::{ClockPeriod, ClockedNic};
use beeline_platforms::Platform;
use beeline_spec::{Interface, Writes};
use beeline_window::FencePolicy;

use crate::branches::branch_out;
#[cfg(feature = "rtl")]
use crate::rtl::{check, rtl_nic};
use crate::{
    Data, LabError, NicKind, NicShape, Outcome, Run, Spans, Station, Traffic, Watched, machine_for, model_nic,
};

/// What a window is blanked with where one is; the bytes of frames never look like it.
const BLANK: u64 = 0x9e37_79b9_7f4a_7c15;

/// Frames by one interface on one platform.
#[derive(Clone, Debug)]
pub struct Experiment<'a> {
    /// The machine.
    pub platform: &'a Platform,
    pub nic: NicKind,
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
    /// NICs that the cores take in turn; several stand behind the platform's switch, which one alone has not before it.
    pub devices: u16,
    /// Frames that each core sends.
    pub traffic: Traffic,
    /// Frames of each core that are sent before latency and rate are counted.
    pub warm_up: u64,
    /// Seed of everything that is random.
    pub seed: u64,
}

/// Result of an experiment.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Latencies, rates and cost.
    pub outcome: Outcome,
    /// The disorder of the windows; only of interfaces that fill a window line by line.
    pub spans: Option<Spans>,
}

impl Experiment<'_> {
    /// A machine with behavioural NICs and ports that are ready, whatever [`Experiment::nic`] says.
    ///
    /// # Errors
    /// The platform makes no machine, or has no switch for so many devices; or a port does not come up.
    pub fn model_station(&self) -> Result<Station<Watched<Nic>>, LabError> {
        let shape = NicShape::for_cores(self.cores_of_a_device());
        let nics = (0..self.devices).map(|_| model_nic(&shape)).collect::<Result<_, _>>()?;
        self.station(nics, shape.aperture())
    }

    /// The same with the RTL.
    ///
    /// # Errors
    /// As [`Experiment::model_station`].
    #[cfg(feature = "rtl")]
    pub fn rtl_station(&self, clock: ClockPeriod) -> Result<Station<Watched<ClockedNic>>, LabError> {
        let (first, aperture) = rtl_nic(clock, self.cores_of_a_device())?;
        let mut nics = vec![first];
        for _ in 1..self.devices {
            nics.push(rtl_nic(clock, self.cores_of_a_device())?.0);
        }
        self.station(nics, aperture)
    }

    /// The most cores that one device has.
    fn cores_of_a_device(&self) -> u16 {
        self.cores.div_ceil(self.devices.max(1))
    }

    fn station<D: Device>(&self, nics: Vec<D>, aperture: Aperture) -> Result<Station<Watched<D>>, LabError> {
        let mut settings = machine_for(self.interface, self.platform, self.cores, aperture, self.data)?;
        if self.devices > 1 {
            branch_out(self.platform, &mut settings, self.devices)?;
        }
        let nics = nics.into_iter().map(|nic| Watched::new(nic, aperture)).collect();
        let sim = Sim::with_devices(nics, settings, self.seed)?;
        sim.with(|machine| machine.keep_frames());
        Station::new(sim)
    }

    /// Returns what is sent and how.
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
    /// As [`Experiment::model_station`]; a frame cannot be sent; frames were lost or changed on the way, as interfaces lose
    /// them that need lines in order on a machine that does not keep it.
    pub fn measure(&self) -> Result<Measured, LabError> {
        match self.nic {
            NicKind::Model => self.measure_on(&mut self.model_station()?),
            #[cfg(feature = "rtl")]
            NicKind::Rtl { clock } => {
                let mut station = self.rtl_station(clock)?;
                let measured = self.measure_on(&mut station);
                check(&station)?;
                measured
            }
        }
    }

    /// As [`Experiment::measure`], on a machine that is there.
    ///
    /// # Errors
    /// The same, but for those of making the machine.
    pub fn measure_on<D: Device + 'static>(
        &self,
        station: &mut Station<Watched<D>>,
    ) -> Result<Measured, LabError> {
        let run = self.run().on(station, self.cores);
        let fills_lines = self.interface.writes() == Writes::Lines;
        let spans = station.sim.with(|machine| {
            let mut spans = machine.device().spans().clone();
            machine.devices()[1..].iter().for_each(|device| spans.merge(device.spans()));
            spans
        });
        let outcome = run.map_err(|error| if fills_lines { beyond_span(error, &spans) } else { error })?;
        if outcome.changed_frames > 0 {
            let (changed, frames) = (outcome.changed_frames, outcome.all_frames);
            return Err(LabError::Changed { changed, frames });
        }
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

/// Why no frame leaves any more, where the disorder of the writes explains it.
fn beyond_span(error: LabError, spans: &Spans) -> LabError {
    let (lines, span_lines) = (spans.most(), NicShape::SPAN_LINES);
    match error {
        LabError::Stuck { at, done, wanted } if lines > span_lines as usize => {
            LabError::BeyondSpan { at, lines, span_lines, done, wanted }
        }
        error => error,
    }
}
