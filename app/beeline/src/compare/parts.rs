//! The parts of a comparison, each measured in rounds: inside a round every interface takes its turn at every size.

use beeline_floor::{Cores, LineTrip, bare_trip_p50_ns};
use beeline_mmio::StoreKernel;
use beeline_mmio::clock::Calibration;
use beeline_session::{
    BURST, IN_FLIGHT, Latency, NicOptions, PrivateNic, Queue, Session, ThereAndBack, TransmitRate,
    kernel_name, new_times,
};
use beeline_spec::Interface;
use indicatif::ProgressBar;

use super::args::Part;
use super::plan::Plan;
use super::results::LatencyKind;
use super::rows::{NicSample, Sent, StoreSample, Taken};
use super::steps::Steps;
use super::stores::Stores;
use crate::failure::{Failure, own_program};
use beeline_floor::rounds::{self, Rounds};

/// Lines of the ring in which the bare copy goes round: as many as a window of [`super::stores`] has.
const COPY_LINES: u32 = 4096;
/// Round trips of the bare copy in a round.
const COPY_TRIPS: u64 = 5_000;

/// Store kernels, chosen while both cores were free.
#[derive(Debug)]
pub struct Kernels {
    pub latency: StoreKernel,
    pub stream: StoreKernel,
}

/// Where the cores lie to each other now.
pub fn look(cores: Cores) -> Result<LineTrip, Failure> {
    LineTrip::measure(cores).map_err(|e| Failure::new("the cores' placement cannot be measured").because(e))
}

fn bare_copy_ns(cores: Cores) -> Result<f64, Failure> {
    let failed = |e| Failure::new("the bare copy cannot be measured").because(e);
    bare_trip_p50_ns(cores, COPY_LINES, COPY_TRIPS, 1).map_err(failed)
}

/// Raw stores into a window; no NIC.
pub fn stores(
    plan: &Plan<'_>,
    stores: &Stores<'_>,
    mut steps: Steps<'_>,
) -> Result<Rounds<Taken<StoreSample>>, Failure> {
    let cores = plan.cores;
    let rounds = rounds::take(
        plan.rounds,
        plan.keep(),
        || look(cores),
        |_| {
            steps.begin_round();
            Ok::<_, Failure>(Taken { bare_copy_ns: bare_copy_ns(cores)?, samples: stores.round()? })
        },
    )?;
    steps.end();
    Ok(rounds)
}

/// A NIC process with a core of its own, which it leaves when nothing happens.
fn start_nic(plan: &Plan<'_>, loopback: bool) -> Result<PrivateNic, Failure> {
    let core = Some(plan.cores.second);
    let root = plan.args.root.root.clone();
    let options = NicOptions { loopback, lossless: true, spin: true, core, root, pcap_out: None };
    Ok(PrivateNic::start(&own_program()?, &options)?)
}

/// One round through a NIC.
struct NicRound<'a> {
    plan: &'a Plan<'a>,
    kernels: &'a Kernels,
    calibration: Calibration,
    bar: &'a ProgressBar,
}

/// Latencies and rates, all through one NIC process that gives frames back.
pub fn there_and_back(
    plan: &Plan<'_>,
    kernels: &Kernels,
    steps: Steps<'_>,
) -> Result<Rounds<Taken<NicSample>>, Failure> {
    through_nic(plan, kernels, steps, true)
}

/// Transmit rates, all through one NIC process whose wire leads nowhere.
pub fn onto_the_wire(
    plan: &Plan<'_>,
    kernels: &Kernels,
    steps: Steps<'_>,
) -> Result<Rounds<Taken<NicSample>>, Failure> {
    through_nic(plan, kernels, steps, false)
}

fn through_nic(
    plan: &Plan<'_>,
    kernels: &Kernels,
    mut steps: Steps<'_>,
    loopback: bool,
) -> Result<Rounds<Taken<NicSample>>, Failure> {
    let nic = start_nic(plan, loopback)?;
    let mut session = Session::open(&nic.session_options(kernels.stream))?;
    let round = NicRound { plan, kernels, calibration: Calibration::measure(), bar: steps.bar() };
    let free_look = || {
        nic.until_asleep()?;
        look(plan.cores)
    };
    let rounds = rounds::take(plan.rounds, plan.keep(), free_look, |_| {
        steps.begin_round();
        let bare_copy_ns = bare_copy_ns(plan.cores)?;
        let mut samples = Vec::new();
        for size in &plan.sizes {
            for interface in &plan.args.interface {
                if loopback {
                    round.there_and_back(&mut session, *interface, *size, &mut samples)?;
                } else {
                    samples.push(round.transmit_rate(&mut session, *interface, *size)?);
                }
            }
        }
        Ok::<_, Failure>(Taken { bare_copy_ns, samples })
    })?;
    steps.end();
    drop(session);
    nic.stop()?;
    Ok(rounds)
}

impl NicRound<'_> {
    fn sent(interface: Interface, kernel: StoreKernel, frame_bytes: u32) -> Sent {
        Sent { interface, kernel: kernel_name(interface, kernel), frame_bytes }
    }

    fn there_and_back(
        &self,
        session: &mut Session,
        interface: Interface,
        size: u32,
        samples: &mut Vec<NicSample>,
    ) -> Result<(), Failure> {
        if self.plan.wants(Part::Latency) {
            for latency_kind in [LatencyKind::OneWay, LatencyKind::RoundTrip] {
                samples.push(self.latency(session, interface, size, latency_kind)?);
            }
        }
        if self.plan.wants(Part::Rate) {
            samples.push(self.rate(session, interface, size)?);
        }
        Ok(())
    }

    fn latency(
        &self,
        session: &mut Session,
        interface: Interface,
        size: u32,
        latency_kind: LatencyKind,
    ) -> Result<NicSample, Failure> {
        self.bar.set_message(format!("{interface}, {size} B, {}", latency_kind.label()));
        let kernel = self.kernels.latency;
        session.set_kernel(kernel);
        let samples = (self.plan.samples / u64::from(self.plan.rounds)).max(100);
        let mut times = new_times();
        let job = Latency {
            frame_bytes: size as usize,
            passes: if latency_kind == LatencyKind::OneWay { 1 } else { 2 },
            samples,
            warm_up: samples / 10 + 100,
            calibration: self.calibration,
            record: |ns| times.saturating_record(ns as u64),
        };
        session.with_queue(Queue::of(interface), job)?;
        self.bar.inc(1);
        Ok(NicSample::Latency(Self::sent(interface, kernel, size), latency_kind, times))
    }

    fn rate(&self, session: &mut Session, interface: Interface, size: u32) -> Result<NicSample, Failure> {
        self.bar.set_message(format!("{interface}, {size} B, rate"));
        let kernel = self.kernels.stream;
        session.set_kernel(kernel);
        let job = ThereAndBack {
            frame_bytes: size as usize,
            frames: self.frames(size),
            burst: BURST,
            in_flight: IN_FLIGHT,
            calibration: self.calibration,
        };
        let rated = session.with_queue(Queue::of(interface), job)?;
        self.bar.inc(1);
        Ok(NicSample::Rate(Self::sent(interface, kernel, size), rated))
    }

    fn transmit_rate(
        &self,
        session: &mut Session,
        interface: Interface,
        size: u32,
    ) -> Result<NicSample, Failure> {
        self.bar.set_message(format!("{interface}, {size} B, transmit rate"));
        let kernel = self.kernels.stream;
        let job = TransmitRate {
            frame_bytes: size as usize,
            frames: self.frames(size),
            burst: BURST,
            calibration: self.calibration,
        };
        let rated = session.with_queue(Queue::of(interface), job)?;
        self.bar.inc(1);
        Ok(NicSample::Rate(Self::sent(interface, kernel, size), rated))
    }

    /// Frames of a rate in one round: about as many bytes at every size, so that each row takes about as long.
    fn frames(&self, frame_bytes: u32) -> u64 {
        let bytes = if self.plan.args.quick { 20_000_000 } else { 400_000_000 };
        (bytes / u64::from(frame_bytes.max(128)) / u64::from(self.plan.rounds)).max(1_000)
    }
}
