//! `beeline compare --bar`: what stores into the BAR of any device cost, by HotOS'25 figure 2.
//!
//! One core stores messages of 64 B to 8 KiB into bytes that may be scratched, by every store kernel of this CPU and under every fence
//! policy; then it reads lines back. What may be scratched and how it is restored is `link/bar`'s, the loops that are timed are those
//! of `lab/floor`. No frames, no NIC, nothing receives.

pub mod args;
mod measure;
mod results;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use beeline_floor::pin;
use beeline_link_bar::{SYSFS, Scratch, Target};
use beeline_mmio::{StoreKernel, selftest};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::args::CompareArgs;
use super::file;
use crate::failure::Failure;
use crate::{cores, machine, out, progress};
use measure::Measurement;
use results::{BarFacts, BarResults, MappingFacts};

/// Seconds that all rounds take unless others are asked for.
const SECONDS: f64 = 20.0;
const QUICK_SECONDS: f64 = 2.0;

/// Runs `beeline compare --bar`.
pub fn run(args: &CompareArgs, bar: &str, rounds: u32) -> Result<(), Failure> {
    let core = args.cores.first().copied().unwrap_or(0);
    cores::check("--cores", [core])?;
    let sysfs = Path::new(SYSFS);
    let refused = |error: &dyn std::error::Error| Failure::new(error.to_string());
    let target = Target::of_text(sysfs, bar).map_err(|error| refused(&error))?;
    // From here on nothing ends this process without the bytes restored.
    let stop = stop_at_signals()?;
    let scratch = Scratch::open(sysfs, &target, &args.scratch.wanted()).map_err(|error| refused(&error))?;
    pin(core)?;
    let is_for_it = |kernel: &StoreKernel| kernel.is_for_memory() || scratch.region().is_device();
    let measurement = Measurement {
        kernels: match args.kernel.named {
            Some(kernel) => vec![kernel],
            None => StoreKernel::available().into_iter().filter(is_for_it).collect(),
        },
        is_quick: args.quick,
        rounds,
        seconds: args.scratch.seconds.unwrap_or(if args.quick { QUICK_SECONDS } else { SECONDS }),
    };
    let mapping = MappingFacts::of(&selftest::mapping(scratch.region(), 0));
    let facts = BarFacts::of(&scratch);
    let steps = progress::bar(measurement.steps(scratch.region()), "measurements", args.output.json);
    let samples = measurement.take(scratch.region(), &stop, &steps)?;
    steps.finish_and_clear();
    let restored = scratch.restore();
    let Some(samples) = samples else {
        return Err(Failure::new(format!("ended by a signal; {}", results::in_words(restored))));
    };
    let results = BarResults {
        machine: machine::look(&[core]),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        bar: facts,
        mapping,
        rounds,
        seconds: measurement.seconds,
        stores: samples.store_rows(),
        reads: samples.read_rows(),
        restored: results::in_words(restored),
    };
    if let Some(folder) = &args.output.csv {
        file::write_all(folder, samples.csv())?;
    }
    if args.output.json {
        return out::json(&results);
    }
    out::text(table::render(&results))
}

/// Has the signals that people and services end a program by noted instead.
fn stop_at_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|e| {
            Failure::new("cannot catch the signals behind which the bytes are restored").because(e)
        })?;
    }
    Ok(stop)
}
