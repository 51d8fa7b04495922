//! `beeline compare`: what every interface costs on this machine, measured in one run.
//!
//! Raw stores first (no NIC), then each interface through a NIC process that gives frames back: one thread sends and
//! polls its own receive ring on one core, the NIC has another. Frames are compared byte for byte. Then each interface
//! through a NIC process that puts frames on the wire and counts them. The loops that are timed are those of `bench/`.
//! Nothing here knows what a good result is.

pub mod args;
mod check;
mod report;
pub mod results;
mod stores;
pub mod table;

use std::path::Path;

use beeline_floor::{Cores, pin};
use beeline_mmio::clock::Calibration;
use beeline_mmio::{StoreKernel, Traffic};
use beeline_session::{
    BURST, IN_FLIGHT, Latency, NicOptions, PrivateNic, Queue, Rated, Session, ThereAndBack, TransmitRate,
    kernel_name, new_times,
};
use beeline_spec::Interface;
use indicatif::ProgressBar;

use args::{CompareArgs, Part};
use check::Check;
use results::{LatencyKind, LatencyRow, Machine, RateRow, Results};

use crate::failure::{Failure, own_program};
use crate::options::DeviceName;
use crate::{cores, machine, out, progress, rtl};

/// Frame sizes in bytes unless others are asked for.
const SIZES: [u32; 9] = [16, 64, 128, 256, 512, 1024, 1500, 4096, 9000];
/// Sizes of a quick look.
const QUICK_SIZES: [u32; 3] = [64, 512, 1500];
const CHECK_FRAMES: u64 = 100_000;

/// The measurements of a run, defaults filled in.
struct Plan<'a> {
    args: &'a CompareArgs,
    sizes: Vec<u32>,
    samples: u64,
    host_core: usize,
    nic_core: usize,
}

/// Runs `beeline compare`.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    if args.device == DeviceName::Rtl {
        return rtl::compare(args);
    }
    let [host_core, nic_core] = cores::two(&args.cores)?;
    if !args.no_report {
        check_folder(&args.report)?;
    }
    pin(host_core)?;
    let default_sizes = if args.quick { QUICK_SIZES.to_vec() } else { SIZES.to_vec() };
    let plan = Plan {
        args,
        sizes: if args.size.is_empty() { default_sizes } else { args.size.clone() },
        samples: if args.quick { args.samples.min(5_000) } else { args.samples },
        host_core,
        nic_core,
    };
    let results = measure(&plan)?;
    publish(args, &results)
}

impl Plan<'_> {
    fn wants(&self, part: Part) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&part)
    }

    fn steps(&self) -> u64 {
        let through_nic = (self.args.interface.len() * self.sizes.len()) as u64;
        let mut steps = 0;
        if self.wants(Part::Stores) {
            steps += stores::steps(self.args.quick, self.args.kernel.named);
        }
        if self.wants(Part::Latency) {
            steps += 2 * through_nic;
        }
        for part in [Part::Rate, Part::Transmit] {
            if self.wants(part) {
                steps += through_nic;
            }
        }
        if self.wants(Part::Check) {
            steps += self.args.interface.len() as u64;
        }
        steps
    }
}

fn measure(plan: &Plan<'_>) -> Result<Results, Failure> {
    let args = plan.args;
    let mut results = Results {
        machine: machine::look(&args.cores),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        version: env!("CARGO_PKG_VERSION"),
        stores: Vec::new(),
        latencies: Vec::new(),
        rates: Vec::new(),
        transmits: Vec::new(),
        checks: Vec::new(),
    };
    let bar = progress::bar(plan.steps(), "measurements", args.output.json);
    if plan.wants(Part::Stores) {
        results.machine.bare_copy_p50_ns = Some(stores::bare_copy_p50_ns(plan.host_core, plan.nic_core)?);
        let cores = Cores { first: plan.host_core, second: plan.nic_core };
        results.stores = stores::run(args.quick, args.kernel.named, cores, &bar)?;
    }
    if plan.wants(Part::Latency) || plan.wants(Part::Rate) {
        there_and_back(plan, &bar, &mut results)?;
    }
    if plan.wants(Part::Transmit) {
        results.transmits = onto_the_wire(plan, &bar)?;
    }
    if plan.wants(Part::Check) {
        for (seed, interface) in (1..).zip(&args.interface) {
            bar.set_message(format!("{interface}, three processes"));
            let frames = if args.quick { CHECK_FRAMES / 20 } else { CHECK_FRAMES };
            let kernel = args.kernel.named;
            results.checks.push(check::run(Check {
                interface: *interface,
                kernel,
                frames,
                seed,
                root: &args.root,
            })?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(results)
}

/// A NIC process with a core of its own.
fn start_nic(plan: &Plan<'_>, loopback: bool) -> Result<PrivateNic, Failure> {
    let core = Some(plan.nic_core);
    let root = plan.args.root.root.clone();
    let options = NicOptions { loopback, lossless: true, spin: true, core, root, pcap_out: None };
    Ok(PrivateNic::start(&own_program()?, &options)?)
}

/// Latencies and rates, all through one NIC process that gives frames back.
fn there_and_back(plan: &Plan<'_>, bar: &ProgressBar, results: &mut Results) -> Result<(), Failure> {
    let nic = start_nic(plan, true)?;
    let kernel = plan.args.kernel;
    let (latency, stream) = (kernel.choose(Traffic::Latency), kernel.choose(Traffic::Stream));
    let mut session = Session::open(&nic.session_options(latency))?;
    let calibration = Calibration::measure();
    for interface in &plan.args.interface {
        for size in &plan.sizes {
            if plan.wants(Part::Latency) {
                session.set_kernel(latency);
                for latency_kind in [LatencyKind::OneWay, LatencyKind::RoundTrip] {
                    bar.set_message(format!("{interface}, {size} B, {}", latency_kind.label()));
                    let row = latency_row(
                        plan,
                        &mut session,
                        *interface,
                        *size,
                        latency_kind,
                        latency,
                        calibration,
                    )?;
                    results.latencies.push(row);
                    bar.inc(1);
                }
            }
            if plan.wants(Part::Rate) {
                session.set_kernel(stream);
                bar.set_message(format!("{interface}, {size} B, rate"));
                let (frames, frame_bytes) = (frames_of(plan, *size), *size as usize);
                let job =
                    ThereAndBack { frame_bytes, frames, burst: BURST, in_flight: IN_FLIGHT, calibration };
                let rated = session.with_queue(Queue::of(*interface), job)?;
                results.rates.push(rate_row(*interface, *size, stream, rated));
                bar.inc(1);
            }
        }
    }
    drop(session);
    Ok(nic.stop()?)
}

/// Transmit rates, all through one NIC process whose wire leads nowhere.
fn onto_the_wire(plan: &Plan<'_>, bar: &ProgressBar) -> Result<Vec<RateRow>, Failure> {
    let nic = start_nic(plan, false)?;
    let kernel = plan.args.kernel.choose(Traffic::Stream);
    let mut session = Session::open(&nic.session_options(kernel))?;
    let calibration = Calibration::measure();
    let mut rows = Vec::new();
    for interface in &plan.args.interface {
        for size in &plan.sizes {
            bar.set_message(format!("{interface}, {size} B, transmit rate"));
            let (frames, frame_bytes) = (frames_of(plan, *size), *size as usize);
            let job = TransmitRate { frame_bytes, frames, burst: BURST, calibration };
            let rated = session.with_queue(Queue::of(*interface), job)?;
            rows.push(rate_row(*interface, *size, kernel, rated));
            bar.inc(1);
        }
    }
    drop(session);
    nic.stop()?;
    Ok(rows)
}

/// Frames of a rate: about as many bytes at every size, so that each row takes about as long.
fn frames_of(plan: &Plan<'_>, frame_bytes: u32) -> u64 {
    let frames = (400_000_000 / u64::from(frame_bytes.max(128))).max(20_000);
    if plan.args.quick { frames / 20 } else { frames }
}

fn latency_row(
    plan: &Plan<'_>,
    session: &mut Session,
    interface: Interface,
    frame_bytes: u32,
    latency_kind: LatencyKind,
    kernel: StoreKernel,
    calibration: Calibration,
) -> Result<LatencyRow, Failure> {
    let passes = if latency_kind == LatencyKind::OneWay { 1 } else { 2 };
    let mut times = new_times();
    let job = Latency {
        frame_bytes: frame_bytes as usize,
        passes,
        samples: plan.samples,
        warm_up: plan.samples / 10 + 100,
        calibration,
        record: |ns| times.saturating_record(ns as u64),
    };
    session.with_queue(Queue::of(interface), job)?;
    Ok(LatencyRow {
        interface,
        latency_kind,
        kernel: kernel_name(interface, kernel),
        frame_bytes,
        samples: times.len(),
        p50_ns: times.value_at_quantile(0.5),
        p99_ns: times.value_at_quantile(0.99),
        p999_ns: times.value_at_quantile(0.999),
    })
}

fn rate_row(interface: Interface, frame_bytes: u32, kernel: StoreKernel, rated: Rated) -> RateRow {
    let frames_per_s = rated.frames_per_second();
    RateRow {
        interface,
        kernel: kernel_name(interface, kernel),
        frame_bytes,
        burst: BURST as u32,
        frames: rated.frames,
        frames_per_s,
        goodput_gbps: frames_per_s * f64::from(frame_bytes) * 8.0 / 1e9,
        host_ns_per_frame: rated.host_ns_per_frame,
    }
}

fn publish(args: &CompareArgs, results: &Results) -> Result<(), Failure> {
    if let Some(folder) = &args.output.csv {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::new(format!("cannot make {}", folder.display())).because(e))?;
        for (name, text) in results.csv() {
            write(&folder.join(name), &text)?;
        }
    }
    if !args.no_report {
        write(&args.report, &report::render(results))?;
    }
    if args.output.json {
        return out::json(results);
    }
    let Machine { cpu, cpus, kernel, .. } = &results.machine;
    out::line(format_args!("{cpu} ({cpus} CPUs), kernel {kernel}"))?;
    if let Some(ns) = results.machine.bare_copy_p50_ns {
        let cores = &results.machine.cores;
        out::line(format_args!("floor: a bare copy between cores {cores:?} and back takes {ns} ns (p50)"))?;
    }
    out::text(table::render(results))?;
    if !args.no_report {
        out::line(format_args!("\nplots and raw data: {}", args.report.display()))?;
    }
    Ok(())
}

/// Whether the folder of the report is there, before anything is measured for it.
fn check_folder(report: &Path) -> Result<(), Failure> {
    let folder = report.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = Failure::new(format!("cannot write {}", report.display()));
    match std::fs::metadata(folder) {
        Ok(data) if data.is_dir() => Ok(()),
        Ok(_) => {
            Err(failed.remedy(format!("{} is not a folder; name another with --report", folder.display())))
        }
        Err(e) => Err(failed.because(e).remedy(format!("mkdir {}, or --no-report", folder.display()))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e| Failure::new(format!("cannot write {}", path.display())).because(e);
    std::fs::write(path, text).map_err(failed)
}
