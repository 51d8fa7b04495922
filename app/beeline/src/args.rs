//! The command line: one source for parsing, `--help`, man pages and shell completions.

use std::path::PathBuf;

use beeline_ethernet::WireConfig;
use beeline_experiments::{NicKind, rtl_nic};
use beeline_mmio::{StoreKernel, Traffic};
use beeline_nic_rtl::ClockPeriod;
use beeline_session::ServeArgs;
use beeline_spec::Interface;
use beeline_window::FencePolicy;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::choices::{KernelName, interface, policy};
use crate::failure::Failure;
use crate::figures::FiguresArgs;
use crate::kv::args::KvArgs;
use crate::platforms::PlatformsArgs;
use crate::sim::args::SimArgs;
use crate::trace::args::TraceArgs;
use crate::wire_ping::WireArgs;

/// Move messages from program to program, and onto the wire, by plain stores.
#[derive(Parser, Debug)]
#[command(name = "beeline", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Start with `beeline doctor` (what this machine can do) and `beeline compare` (what it costs here)."
)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
    /// Say more: -v what happens, -vv every step
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// The programs in the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Measure every interface on this machine: goodput, latency, rate; writes a report
    Compare(CompareArgs),
    /// Send a capture through a NIC and verify what comes out, byte for byte
    Send(SendArgs),
    /// Run the NIC: a process that others reach by name, with up-links to the outside
    Nic(NicArgs),
    /// Measure round trips of small payloads through a running or a private NIC
    Ping(PingArgs),
    /// Show the live counters of a running NIC
    Stat(StatArgs),
    /// Serve a key-value store to programs of this machine, or call one
    Kv(KvArgs),
    /// Send frames in virtual time: latency, rate, link bytes, disorder and cost on the machines of platform files
    Sim(SimArgs),
    /// Show the packets on the link while a frame is sent in virtual time, as a protocol analyser does
    Trace(TraceArgs),
    /// List, describe or check platform files: the machines of virtual time
    Platforms(PlatformsArgs),
    /// Say what this machine can and cannot do, in words
    Doctor(DoctorArgs),
    /// Set the published figures beside ours, from machines in virtual time
    Figures(FiguresArgs),
    /// Write man pages or shell completions
    Generate(GenerateArgs),
    /// One side of a check over three processes
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// The NIC of another command
    #[command(hide = true)]
    PrivateNic(ServeArgs),
}

/// Options of `worker`, which `compare` starts.
#[derive(Args, Debug, Clone)]
pub struct WorkerArgs {
    /// Domain of the NIC
    #[arg(long)]
    pub domain: String,
    /// Name of the NIC
    #[arg(long)]
    pub nic: String,
    /// Interface to send by
    #[arg(long, value_parser = interface())]
    pub interface: Interface,
    /// Frames to exchange
    #[arg(long)]
    pub frames: u64,
    /// Seed of sizes and contents
    #[arg(long)]
    pub seed: u64,
    /// Station address to send to; without it this side receives and prints its own
    #[arg(long)]
    pub to: Option<String>,
    #[command(flatten)]
    pub kernel: KernelArgs,
}

/// How lines leave the core.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct KernelArgs {
    /// Instructions that store a line [default: the fastest of this CPU, timed now]
    ///
    /// The store kernel of transmit windows. kpio needs its lines in order and always has cached stores.
    #[arg(long = "kernel", value_name = "NAME", value_parser = KernelName)]
    pub named: Option<StoreKernel>,
}

impl KernelArgs {
    /// The kernel that was named, or else the best for this traffic; that takes some milliseconds.
    pub fn choose(self, traffic: Traffic) -> StoreKernel {
        self.named.unwrap_or_else(|| StoreKernel::choose(traffic))
    }
}

/// Where a sender fences.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct FenceArgs {
    /// Where the sender fences, by mmio only: the price of what its receiver does without
    #[arg(long = "fences", default_value_t = FencePolicy::None, value_name = "POLICY", value_parser = policy())]
    pub policy: FencePolicy,
}

/// Where machine-readable results go.
#[derive(Args, Debug, Clone, Default)]
pub struct OutputArgs {
    /// Print the results as JSON on standard output instead of tables
    #[arg(long)]
    pub json: bool,
    /// Also write the raw results as CSV files into this folder
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
}

/// Options of `compare`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline compare                         everything, under two minutes, report.html beside you
  beeline compare --quick --no-report     a look, in seconds
  beeline compare --only latency --interface mmio,descriptor --size 64 --samples 200000
  beeline compare --only stores,rate --kernel cached   how plain stores do, whatever is fastest
  beeline compare --json > results.json")]
pub struct CompareArgs {
    /// Measure only these parts
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    pub only: Vec<Part>,
    /// Interfaces to measure; `inline`, `enso`, `niq` and `coherent` only when they are named
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
    /// Latency samples for each interface and size
    #[arg(long, default_value_t = 50_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    pub samples: u64,
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// Few samples and sizes: a look, not a measurement
    #[arg(long)]
    pub quick: bool,
    /// Core of the measuring thread and core of the NIC
    #[arg(long, value_delimiter = ',', default_values_t = [0usize, 1], num_args = 1, value_name = "HOST,NIC")]
    pub cores: Vec<usize>,
    /// Where the report goes
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub report: PathBuf,
    /// Write no report
    #[arg(long)]
    pub no_report: bool,
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

/// Options of `send`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline send in.pcap --out out.pcap                    through mmio and a private NIC
  beeline send in.pcap --out out.pcap --interface kpio
  beeline send in.pcap --out out.pcap --kernel nt8 --fences per-message
  beeline send in.pcap --out out.pcap --adversary 7      stores split and permuted, same bytes out
  beeline send in.pcap --out out.pcap --device rtl       through the NIC's RTL (built with --features rtl)")]
pub struct SendArgs {
    /// Capture to read (classic pcap, Ethernet)
    #[arg(value_name = "IN.pcap")]
    pub input: PathBuf,
    /// Capture to write: what the wire saw
    #[arg(long, short, value_name = "OUT.pcap")]
    pub out: PathBuf,
    /// Interface that carries the frames
    #[arg(long, default_value_t = Interface::Mmio, value_name = "NAME", value_parser = interface())]
    pub interface: Interface,
    /// Device behind the link
    #[arg(long, default_value = "model", value_name = "NAME")]
    pub device: DeviceName,
    /// Split and permute stores with this seed, within what the interface declares it bears
    #[arg(long, value_name = "SEED")]
    pub adversary: Option<u64>,
    /// Let frames begin when so many lines of their message are there (mmio on --device rtl; 0: when all are)
    #[arg(long, default_value_t = 0, value_name = "LINES")]
    pub cut_through_lines: u16,
    /// Write a wave dump of the RTL (with --device rtl; built with --features waves)
    #[arg(long, value_name = "OUT.vcd")]
    pub waves: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub fences: FenceArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| out.write_str(value.get_name()))
    }
}

/// Devices that can stand behind a link.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The behavioural NIC (by `send` and `compare` in a process of its own)
    Model,
    /// The NIC's RTL, Verilated, in this process (make rtl-tools, then build with --features rtl)
    Rtl,
}

/// The device of a machine in virtual time.
#[derive(Args, Debug, Clone, Copy)]
pub struct SimDeviceArgs {
    /// Device behind the link: `rtl` takes the cycles of its clock beside what the platform's device takes
    #[arg(long, default_value = "model", value_name = "NAME")]
    pub device: DeviceName,
    /// With `--device rtl`: its clock in MHz
    #[arg(long, default_value_t = 250, value_name = "MHZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clock_mhz: u32,
}

impl SimDeviceArgs {
    /// The NIC of an experiment.
    ///
    /// # Errors
    /// This program was built without the RTL.
    pub fn nic(self) -> Result<NicKind, Failure> {
        let failed = |error| Failure::new("no RTL").because(error);
        match self.device {
            DeviceName::Model => Ok(NicKind::Model),
            DeviceName::Rtl => {
                let clock = ClockPeriod::from_mhz(self.clock_mhz).map_err(failed)?;
                // Found out here and once, instead of at each point of a sweep.
                rtl_nic(clock, 1).map_err(failed)?;
                Ok(NicKind::Rtl { clock })
            }
        }
    }
}

/// Options of `nic`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline nic                             a switch for any number of local programs
  beeline nic --name lab --loopback       every frame returns to its sender
  beeline nic --pcap-out wire.pcap        what crosses the switch, captured
  sudo beeline nic --tap bee0             joined to the kernel's network
  sudo beeline nic --uplink af-xdp:eth0   joined to a wire, past the kernel")]
pub struct NicArgs {
    /// Name under which ports reach it
    #[arg(long, default_value = "nic", value_name = "NAME")]
    pub name: String,
    /// Domain: the group of processes that can find each other
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub domain: String,
    /// Ports at most
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub ports: u16,
    /// Queues of each port
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub queues: u16,
    /// Reorder span in lines
    #[arg(long, default_value_t = 64, value_name = "LINES")]
    pub span: u32,
    /// Window of each queue in lines
    #[arg(long, default_value_t = 4096, value_name = "LINES")]
    pub window: u32,
    /// Give every frame back to the port it came from
    #[arg(long)]
    pub loopback: bool,
    /// Wait for a slow receiver instead of dropping what it has no room for
    #[arg(long)]
    pub lossless: bool,
    /// Replay this capture into the switch
    #[arg(long, value_name = "FILE")]
    pub pcap_in: Option<PathBuf>,
    /// Capture every frame that enters the switch
    #[arg(long, value_name = "FILE")]
    pub pcap_out: Option<PathBuf>,
    /// Join a TAP device (needs CAP_NET_ADMIN)
    #[arg(long, value_name = "IFNAME")]
    pub tap: Option<String>,
    /// Join an interface past the kernel: af-xdp:IFNAME, af-packet:IFNAME or auto:IFNAME, then ,OPTION=VALUE
    ///
    /// Options: netns=NAME; type=0x88b5 or type=all (which frames are taken from the interface); for af-xdp also
    /// queue=N, copy=auto|copy|zero-copy, attach=auto|native|generic, frames=N, busy-poll=MICROSECONDS/FRAMES. Several
    /// may be given. Needs CAP_NET_RAW, af-xdp also CAP_NET_ADMIN and CAP_BPF; `beeline doctor` looks.
    #[arg(long, value_name = "UP-LINK")]
    pub uplink: Vec<WireConfig>,
    /// Core to run on
    #[arg(long, value_name = "CORE")]
    pub core: Option<usize>,
    /// What to do when nothing arrives
    #[arg(long, value_enum, default_value_t = Idle::Sleep)]
    pub idle: Idle,
    /// End when standard input does, so that a NIC started by a program ends with it
    #[arg(long, hide = true)]
    pub until_stdin_closes: bool,
}

/// What an idle NIC does.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Poll without pause: lowest latency, one core
    Spin,
    /// Give the core to others between polls
    Yield,
    /// Sleep until a store wakes it: no CPU
    Sleep,
}

/// Options of `ping`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline ping                            10 and 100 byte payloads, private NIC
  beeline ping --size 10,100,1024 --count 100000 --interface mmio,descriptor
  beeline ping --kernel nt8 --fences per-line   non-temporal stores, a fence after each
  beeline ping --nic nic                  through the NIC that runs under this name
Over a wire, past the kernel; the server says its station address:
  sudo beeline ping --server --uplink af-xdp:veth1,netns=there --core 1
  sudo beeline ping --client 02:00:00:00:00:02 --uplink af-xdp:veth0 --uplink af-packet:veth0 --core 0
  sudo beeline ping --client 02:00:00:00:00:02 --uplink auto:eth0 --loss 5   what losses cost")]
pub struct PingArgs {
    /// Payload sizes in bytes
    #[arg(long, value_delimiter = ',', default_values_t = [10u32, 100], value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=9000))]
    pub size: Vec<u32>,
    /// Round trips for each size
    #[arg(long, short, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=100_000_000))]
    pub count: u64,
    /// Interfaces to use
    #[arg(long, value_delimiter = ',', default_values_t = [Interface::Mmio], value_name = "NAME", value_parser = interface())]
    pub interface: Vec<Interface>,
    #[command(flatten)]
    pub kernel: KernelArgs,
    #[command(flatten)]
    pub fences: FenceArgs,
    /// Use the NIC running under this name instead of a private one
    #[arg(long, value_name = "NAME")]
    pub nic: Option<String>,
    /// Domain of that NIC
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub domain: String,
    /// Core of the measuring thread and core of the private NIC
    #[arg(long, value_delimiter = ',', default_values_t = [0usize, 1], num_args = 1, value_name = "HOST,NIC")]
    pub cores: Vec<usize>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub wire: WireArgs,
}

/// Options of `stat`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline stat                            counters of the NIC called nic, once a second
  beeline stat --once --json              one snapshot for a script")]
pub struct StatArgs {
    /// Name of the NIC
    #[arg(long, default_value = "nic", value_name = "NAME")]
    pub name: String,
    /// Domain of the NIC
    #[arg(long, default_value = "default", value_name = "NAME")]
    pub domain: String,
    /// Print one snapshot and stop
    #[arg(long)]
    pub once: bool,
    /// Milliseconds between snapshots
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub interval_ms: u64,
    /// Show counters that are zero too
    #[arg(long)]
    pub all: bool,
    /// Print JSON, one object a snapshot
    #[arg(long)]
    pub json: bool,
}

/// Options of `doctor`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline doctor
  beeline doctor --bar 0000:41:00.0/2     also map a real BAR (root); nothing is stored
  beeline doctor --bar /sys/bus/pci/devices/0000:41:00.0/resource2_wc --scratch 4096")]
pub struct DoctorArgs {
    /// BAR to map: a resource file of sysfs, or PCI function, slash, resource number
    #[arg(long, value_name = "FILE|BDF/N")]
    pub bar: Option<String>,
    /// Also measure that BAR, by overwriting 1024 bytes from this offset: their stores must mean nothing to the device
    #[arg(long, value_name = "OFFSET", requires = "bar")]
    pub scratch: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `generate`.
#[derive(Args, Debug, Clone)]
pub struct GenerateArgs {
    /// What to write
    #[command(subcommand)]
    pub what: Generate,
}

/// Things generated from the command line's definition.
#[derive(Subcommand, Debug, Clone)]
pub enum Generate {
    /// Man pages, one a command
    Man {
        /// Folder to write them into
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Completions for a shell, on standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_that_people_type_has_examples() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let after = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
            assert!(
                ["generate", "worker", "private-nic"].contains(&name)
                    || after.contains(&format!("beeline {name}")),
                "{name} has no examples"
            );
        }
    }
}
