//! Options of `beeline compare`.

use std::path::PathBuf;

use beeline_spec::Interface;
use clap::{Args, ValueEnum};

use super::bar::args::BarArgs;
use crate::choices::interface;
use crate::options::{DeviceName, KernelArgs, OutputArgs, RootArgs};

/// Options of `compare`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline compare                         everything, under two minutes, report.html beside you
  beeline compare --quick --no-report     a look, in seconds
  beeline compare --only latency --interface mmio,descriptor --size 64 --samples 200000
  beeline compare --only stores,rate --kernel cached   how plain stores do, whatever is fastest
  beeline compare --csv run1              also keeps every round, in a folder
  beeline compare --read run1             its tables, summary and report again, nothing measured
  beeline compare --json > results.json
  beeline compare --bar 0000:3b:00.0 --stores          stores into a device's BAR (HotOS'25 figure 2)
  beeline compare --bar /dev/shm/try --stores --quick  the same into a file, to try it")]
pub struct CompareArgs {
    /// Measure only these parts
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    pub only: Vec<Part>,
    /// Interfaces to measure; all others only when they are named
    #[arg(long, value_delimiter = ',', default_values_t = [Interface::Mmio, Interface::Kpio, Interface::Descriptor], value_name = "NAME", value_parser = interface())]
    pub interface: Vec<Interface>,
    /// Device to measure: `rtl` counts cycles of the NIC's clock and measures no time
    #[arg(long, default_value = "model", value_name = "NAME")]
    pub device: DeviceName,
    /// With `--device rtl`: clock in MHz at which rates are stated
    #[arg(long, default_value_t = 250, value_name = "MHZ", value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub clock_mhz: u32,
    /// Frame sizes in bytes, 14 to 9216 [default: 16,64,128,256,512,1024,1500,4096,9000]
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = clap::value_parser!(u32).range(14..=9216))]
    pub size: Vec<u32>,
    /// Rounds: everything is measured once in each, in turn; a row is the middle of its rounds [default: 7, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Keep every round, wherever the cores lie and whoever works on them: to try the program, not to measure
    #[arg(long)]
    pub any_placement: bool,
    /// Latency samples for each interface and size, all rounds together
    #[arg(long, default_value_t = 50_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    pub samples: u64,
    /// Measure nothing: tables, summary and report of a run that --csv kept in this folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath,
          conflicts_with_all = ["only", "interface", "device", "clock_mhz", "size", "rounds", "any_placement", "samples", "named", "quick", "cores", "root"])]
    pub read: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Few samples and sizes: a look, not a measurement
    #[arg(long)]
    pub quick: bool,
    /// Core of the measuring thread and core of the NIC; with --bar only the first counts
    #[arg(long, value_delimiter = ',', default_values_t = [0usize, 1], num_args = 1, value_name = "HOST,NIC")]
    pub cores: Vec<usize>,
    /// Where the report goes
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub report: PathBuf,
    /// Write no report
    #[arg(long)]
    pub no_report: bool,
    #[command(flatten)]
    pub scratch: BarArgs,
    #[command(flatten)]
    pub root: RootArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Parts of `compare`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Raw stores into a window (HotOS'25 figure 2 on this CPU)
    Stores,
    /// One-way and round-trip times through the NIC
    Latency,
    /// Frames a second through the NIC and back, and what they cost the CPU
    Rate,
    /// Frames a second onto the wire, nothing received
    Transmit,
    /// Correctness with NIC, sender and receiver in three processes
    Check,
}
