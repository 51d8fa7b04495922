//! `beeline compare`: what every interface costs on this machine, measured in one run.
//!
//! Raw stores first (no NIC), then each interface through a NIC process that gives frames back: one thread sends and
//! polls its own receive ring on one core, the NIC has another. Frames are compared byte for byte. Then each interface
//! through a NIC process that puts frames on the wire and counts them. Each of these parts is measured in rounds, in which
//! every interface takes its turn and which are dropped when the cores changed their placement (`lab/floor`). The loops that
//! are timed are those of `lab/floor` (stores, the bare copy) and `host/session` (frames). Nothing here knows what a good result is.

pub mod args;
mod bar;
mod charts;
mod check;
mod file;
mod kept;
mod parts;
mod plan;
mod report;
pub mod results;
mod rows;
mod steps;
mod stores;
mod summary;
pub mod table;

use std::path::Path;

use beeline_floor::{Cores, Placement, pin};
use beeline_mmio::{Traffic, kernel_from_environment};
use beeline_tuning::KernelChoice;
use indicatif::ProgressBar;

use args::{CompareArgs, Part};
use beeline_floor::rounds::Keep;
use check::Check;
use parts::Kernels;
use plan::Plan;
use results::{KernelRow, Machine, Results};
use steps::Steps;
use stores::Stores;

use crate::failure::Failure;
use crate::options::DeviceName;
use crate::{cores, machine, out, progress, rtl};

/// Frame sizes in bytes unless others are asked for.
const SIZES: [u32; 9] = [16, 64, 128, 256, 512, 1024, 1500, 4096, 9000];
/// Sizes of a quick look.
const QUICK_SIZES: [u32; 3] = [64, 512, 1500];
const ROUNDS: u32 = 7;
const QUICK_ROUNDS: u32 = 3;
const CHECK_FRAMES: u64 = 100_000;

/// Runs `beeline compare`.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let rounds = args.rounds.unwrap_or(if args.quick { QUICK_ROUNDS } else { ROUNDS });
    if let Some(name) = &args.scratch.bar {
        return bar::run(args, name, rounds);
    }
    if args.device == DeviceName::Rtl {
        return rtl::compare(args);
    }
    if !args.no_report {
        check_folder(&args.report)?;
    }
    if let Some(folder) = &args.read {
        return publish(args, &kept::read(folder)?);
    }
    let [first, second] = cores::two(&args.cores)?;
    let default_sizes = if args.quick { QUICK_SIZES.to_vec() } else { SIZES.to_vec() };
    let plan = Plan {
        args,
        sizes: if args.size.is_empty() { default_sizes } else { args.size.clone() },
        samples: if args.quick { args.samples.min(5_000) } else { args.samples },
        rounds,
        cores: Cores { first, second },
    };
    let results = measure(&plan)?;
    publish(args, &results)
}

/// Refuses to measure where two threads are on one core, or where one is not left alone.
fn check_placement(plan: &Plan<'_>) -> Result<(), Failure> {
    let Cores { first, second } = plan.cores;
    if first == second {
        return Err(Failure::new(format!("core {first} was given for both sides"))
            .remedy("--cores with two different ones"));
    }
    let line = parts::look(plan.cores)?;
    if line.placement() == Placement::Shared {
        return Err(shared(plan.cores, line.p50_ns));
    }
    Ok(())
}

fn shared(cores: Cores, line_ns: f64) -> Failure {
    let Cores { first, second } = cores;
    Failure::new(format!(
        "cores {first} and {second} take {:.1} us for one line there and back: they are two virtual CPUs on one core, or \
         somebody else works on one of them; no figure between them would mean anything",
        line_ns / 1e3
    ))
    .remedy(
        "end what runs beside, try again in some minutes, or name two other cores with --cores; to try the program without \
         figures to build on: --any-placement",
    )
}

/// Chooses store kernels while both cores are free, as windows of programs have them chosen, and says how.
fn choose(plan: &Plan<'_>, results: &mut Results) -> Kernels {
    // A variable that cannot be followed is as good as none: `beeline doctor` says what is wrong with it.
    let named = plan.args.kernel.named.or_else(|| kernel_from_environment().ok().flatten());
    let Cores { first, second } = plan.cores;
    let mut choice = |traffic: Traffic| {
        let choice = match named {
            Some(kernel) => KernelChoice::named(traffic, kernel),
            None => KernelChoice::timed(traffic, [first, second]),
        };
        results.kernels.push(KernelRow {
            traffic: traffic.to_string(),
            kernel: choice.kernel.name(),
            method: choice.to_string(),
        });
        choice.kernel
    };
    Kernels { latency: choice(Traffic::Latency), stream: choice(Traffic::Stream) }
}

fn measure(plan: &Plan<'_>) -> Result<Results, Failure> {
    let args = plan.args;
    let mut results = Results {
        machine: machine::look(&args.cores),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernels: Vec::new(),
        floors: Vec::new(),
        dropped: Vec::new(),
        stores: Vec::new(),
        latencies: Vec::new(),
        rates: Vec::new(),
        transmits: Vec::new(),
        checks: Vec::new(),
        rounds: Vec::new(),
    };
    let bar = progress::bar(plan.checks(), "measurements", args.output.json);
    if [Part::Stores, Part::Latency, Part::Rate, Part::Transmit].into_iter().any(|part| plan.wants(part)) {
        measure_timed(plan, &bar, &mut results)?;
    }
    if plan.wants(Part::Check) {
        check(plan, &bar, &mut results)?;
    }
    bar.finish_and_clear();
    Ok(results)
}

/// Everything that is timed: what needs both cores, and store kernels.
fn measure_timed(plan: &Plan<'_>, bar: &ProgressBar, results: &mut Results) -> Result<(), Failure> {
    if plan.keep() == Keep::Steady {
        check_placement(plan)?;
    }
    let kernels = choose(plan, results);
    pin(plan.cores.first)?;
    let stores = Stores {
        quick: plan.args.quick,
        kernels: stores::kernels(plan.args.kernel.named, kernels.stream),
        cores: plan.cores,
        rounds: plan.rounds,
        bar,
    };
    // All parts before the first begins: the bar shows the whole run.
    let part = |of_round| Steps::plan(bar, of_round, plan.rounds);
    let store_steps = plan.wants(Part::Stores).then(|| part(stores.steps()));
    let is_there_and_back = plan.wants(Part::Latency) || plan.wants(Part::Rate);
    let nic_steps = is_there_and_back.then(|| part(plan.there_and_back_steps()));
    let wire_steps = plan.wants(Part::Transmit).then(|| part(plan.transmit_steps()));
    if let Some(store_steps) = store_steps {
        results.add_stores(&parts::stores(plan, &stores, store_steps)?);
    }
    if let Some(nic_steps) = nic_steps {
        results.add_there_and_back(&parts::there_and_back(plan, &kernels, nic_steps)?);
    }
    if let Some(wire_steps) = wire_steps {
        results.add_transmits(&parts::onto_the_wire(plan, &kernels, wire_steps)?);
    }
    if results.floors.is_empty() {
        return Err(Failure::new("no round kept its placement: the cores were moved in every one of them")
            .remedy("end what runs beside, or try again in some minutes"));
    }
    Ok(())
}

fn check(plan: &Plan<'_>, bar: &ProgressBar, results: &mut Results) -> Result<(), Failure> {
    let args = plan.args;
    for (seed, interface) in (1..).zip(&args.interface) {
        bar.set_message(format!("{interface}, three processes"));
        let frames = if args.quick { CHECK_FRAMES / 20 } else { CHECK_FRAMES };
        let kernel = args.kernel.named;
        let check = Check { interface: *interface, kernel, frames, seed, root: &args.root };
        results.checks.push(check::run(check)?);
        bar.inc(1);
    }
    Ok(())
}

fn publish(args: &CompareArgs, results: &Results) -> Result<(), Failure> {
    if let Some(folder) = &args.output.csv {
        file::write_all(folder, results.csv())?;
    }
    if !args.no_report {
        file::write(&args.report, &report::render(results))?;
    }
    if args.output.json {
        return out::json(results);
    }
    let Machine { cpu, cpus, kernel, .. } = &results.machine;
    if let Some(folder) = &args.read {
        out::line(format_args!("A run kept in {}; nothing was measured now.", folder.display()))?;
    }
    out::line(format_args!("{cpu} ({cpus} CPUs), kernel {kernel}"))?;
    out::text(table::render(results))?;
    out::text(summary::render(results))?;
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
