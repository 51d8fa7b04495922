//! What `compare` measured: rows that tables, CSV, JSON and the report all come from.

use beeline_floor::Placement;
use beeline_spec::Interface;
use serde::Serialize;

/// A row says so whose rounds lie further apart than this share of their middle.
pub const UNSTEADY_FROM: f64 = 0.15;

/// Everything one run measured, with what is needed to judge it. Every figure in it is *measured*.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    pub machine: Machine,
    /// The command line that made it.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Store kernels, chosen before anything else was started.
    pub kernels: Vec<KernelRow>,
    /// The floor, part by part, and how many rounds of the part were kept.
    pub floors: Vec<FloorRow>,
    /// Parts of which rounds were dropped, those of which none was kept among them.
    pub dropped: Vec<DroppedRow>,
    /// Raw stores into a window, no NIC.
    pub stores: Vec<StoreRow>,
    /// Latencies through the NIC.
    pub latencies: Vec<LatencyRow>,
    /// Rates through the NIC and back.
    pub rates: Vec<RateRow>,
    /// Rates onto the NIC's wire, nothing received.
    pub transmits: Vec<RateRow>,
    /// Correctness across three processes.
    pub checks: Vec<CheckRow>,
    /// What each round found: every figure above is the middle of some of these.
    pub rounds: Vec<RoundRow>,
}

/// A store kernel and what it was chosen from.
#[derive(Clone, Debug, Serialize)]
pub struct KernelRow {
    pub traffic: String,
    pub kernel: &'static str,
    /// The choice in words, with what was timed.
    pub method: String,
}

/// What bare cores did in the rounds of one part, in one placement.
#[derive(Clone, Debug, Serialize)]
pub struct FloorRow {
    pub part: &'static str,
    #[serde(serialize_with = "placement")]
    pub placement: Placement,
    /// Rounds that were kept.
    pub rounds: u32,
    /// Round trip of a bare line, p50, middle of the rounds.
    pub bare_line_ns: f64,
    /// Round trip of the bare copy, p50, middle of the rounds.
    pub bare_copy_ns: f64,
}

/// Rounds of a part in which the cores changed their placement, or were one.
#[derive(Clone, Debug, Serialize)]
pub struct DroppedRow {
    pub part: &'static str,
    pub rounds: u32,
}

/// A figure of one round.
#[derive(Clone, Debug, Serialize)]
pub struct RoundRow {
    pub part: &'static str,
    #[serde(serialize_with = "placement")]
    pub placement: Placement,
    /// Number of the round in its part.
    pub round: u32,
    /// The bare line before the round, p50 in ns.
    pub bare_line_ns: f64,
    /// Interface, or fence policy and whether there was a receiver.
    pub what: String,
    pub kernel: &'static str,
    pub bytes: u32,
    pub value: f64,
    pub unit: &'static str,
}

/// The machine and the settings that a figure must name.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Model name of the CPU.
    pub cpu: String,
    /// CPUs that are online.
    pub cpus: usize,
    /// Kernel release.
    pub kernel: String,
    /// Hypervisor or "none seen".
    pub hypervisor: String,
    /// Cores used: measuring thread, NIC.
    pub cores: Vec<usize>,
}

/// Goodput of raw stores into a window (HotOS'25 figure 2 on this CPU).
#[derive(Clone, Debug, Serialize)]
pub struct StoreRow {
    #[serde(serialize_with = "placement")]
    pub placement: Placement,
    /// Fence policy.
    pub policy: &'static str,
    /// Whether another core receives; without, nobody reads and nothing limits the stores.
    pub receiver: bool,
    pub kernel: &'static str,
    /// Bytes of a message in the window: header, payload and padding.
    pub message_bytes: u32,
    /// Messages a second, middle of the rounds.
    pub messages_per_s: f64,
    /// Window bytes a second, in Gbit/s.
    pub goodput_gbps: f64,
    /// Width of the middle half of the rounds, as a share of the middle.
    pub spread: f64,
}

/// Between which two events a latency is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// From the call to send to the frame in hand at the receiver.
    OneWay,
    /// A frame there and its answer back.
    RoundTrip,
}

/// Percentiles of a latency.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyRow {
    #[serde(serialize_with = "placement")]
    pub placement: Placement,
    #[serde(serialize_with = "name")]
    pub interface: Interface,
    #[serde(rename = "way")]
    pub latency_kind: LatencyKind,
    /// Store kernel of the window, or "-" where there is none.
    pub kernel: &'static str,
    /// Frame bytes, FCS excluded.
    pub frame_bytes: u32,
    /// Samples of all rounds.
    pub samples: u64,
    /// Median in ns, middle of the rounds.
    pub p50_ns: u64,
    /// 99th percentile in ns of all samples.
    pub p99_ns: u64,
    /// 99.9th percentile in ns of all samples.
    pub p999_ns: u64,
    /// Width of the middle half of the rounds' medians, as a share of the middle.
    pub spread: f64,
}

/// Frames a second and what they cost.
#[derive(Clone, Debug, Serialize)]
pub struct RateRow {
    #[serde(serialize_with = "placement")]
    pub placement: Placement,
    #[serde(serialize_with = "name")]
    pub interface: Interface,
    /// Store kernel of the window, or "-" where there is none.
    pub kernel: &'static str,
    /// Frame bytes, FCS excluded.
    pub frame_bytes: u32,
    /// Frames handed over at once.
    pub burst: u32,
    /// Frames sent in all rounds; there and back, received and verified too; onto the wire, counted there by the NIC.
    pub frames: u64,
    /// Frames a second, middle of the rounds.
    pub frames_per_s: f64,
    /// Frame bytes a second, in Gbit/s.
    pub goodput_gbps: f64,
    /// CPU time of the measuring thread for each frame, in ns: sending, and receiving where anything comes back.
    pub host_ns_per_frame: f64,
    /// Width of the middle half of the rounds' rates, as a share of the middle.
    pub spread: f64,
}

/// A run over three processes.
#[derive(Clone, Debug, Serialize)]
pub struct CheckRow {
    #[serde(serialize_with = "name")]
    pub interface: Interface,
    /// Frames that arrived in order and unchanged.
    pub frames: u64,
    /// Bytes of those frames.
    pub bytes: u64,
    /// "complete and in order", or what was wrong.
    pub result: String,
}

fn placement<S: serde::Serializer>(placement: &Placement, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(placement.name())
}

fn name<S: serde::Serializer>(interface: &Interface, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(interface.name())
}

impl LatencyKind {
    /// Returns the name in reports.
    pub const fn label(self) -> &'static str {
        match self {
            LatencyKind::OneWay => "one-way",
            LatencyKind::RoundTrip => "round trip",
        }
    }
}

#[cfg(test)]
pub mod sample;
