//! A point's results: counted whole numbers, and what is computed from them when it is printed.

use beeline_experiments::{Experiment, Measured};
use beeline_link_sim::pcie::{Carried, Kind};
use serde::{Deserialize, Serialize};

/// Spans in lines for which it is told how often more was needed.
pub const SPANS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// A point and what came of it. Files keep only what was counted, so that results read back are the same results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which sweep it is of: a hash over all of its points.
    pub sweep: String,
    /// Its place in the sweep, from 0.
    pub index: u64,
    /// Number of points of the sweep.
    pub points: u64,
    /// What was done, in one line: equal keys are equal points.
    pub key: String,
    pub platform: String,
    /// Parameters of the platform that were changed.
    pub set: String,
    /// The device: `model`, or `rtl` and its clock.
    pub device: String,
    pub interface: String,
    /// Where it fenced; `-` where there is no place for a fence.
    pub fences: String,
    /// Seed of the ordering adversary.
    pub adversary: Option<u64>,
    /// Cores that sent.
    pub cores: u16,
    /// Devices that they sent by; one in results of before there could be several.
    #[serde(default = "one")]
    pub devices: u16,
    pub arrivals: String,
    /// Size of the frames in bytes; of a capture the mean.
    pub frame_bytes: f64,
    /// The capture that sizes are from.
    pub capture: Option<String>,
    /// Frames of each core that were counted.
    pub frames: u64,
    pub seed: u64,
    /// The counts, if the point can be run.
    pub figures: Option<Figures>,
    /// The reason for which the point cannot be run.
    pub why_not: Option<String>,
}

/// Counts of one point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Latencies to the wire.
    pub samples: u64,
    /// From the call, of an open loop from the arrival, to the first bit on the wire.
    pub p50_ps: u64,
    pub p99_ps: u64,
    pub p999_ps: u64,
    /// The longest.
    pub most_ps: u64,
    /// Frames between the first that was counted and the last.
    pub frames: u64,
    pub bytes: u64,
    /// Time from the first frame on the wire to the last.
    pub elapsed_ps: u64,
    /// What of it left by the wire of each device, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_devices: Vec<DeviceFigures>,
    /// Frames that the costs below are of: all.
    pub all_frames: u64,
    pub all_bytes: u64,
    /// Traffic of the link towards the device.
    pub to_device: LinkBytes,
    /// Traffic of the link towards the host.
    pub to_host: LinkBytes,
    /// Bytes of memory that the device read and wrote.
    pub memory_bytes: u64,
    /// Time of cores.
    pub core_ps: u64,
    /// Energy, where the platform says what its parts use.
    pub energy_pj: Option<u64>,
    /// Disorder of the windows, of interfaces that fill them line by line.
    pub disorder: Option<Disorder>,
}

fn one() -> u16 {
    1
}

/// What left by the wire of one of several devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Frames between its first that was counted and its last.
    pub frames: u64,
    pub bytes: u64,
    /// Time from the device's first frame on its wire to the last.
    pub elapsed_ps: u64,
}

/// Bytes on the wire in one direction, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBytes {
    pub writes: u64,
    /// Bytes of read requests.
    pub reads: u64,
    /// Bytes of completions.
    pub answers: u64,
    /// Of the data link layer: acknowledgements and credits.
    pub control: u64,
}

/// How far writes came ahead of what was missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disorder {
    /// Writes to windows.
    pub writes: u64,
    /// How many of them needed a reorder span of more lines than each of [`SPANS`].
    pub beyond: Vec<u64>,
    /// The most that one needed.
    pub most_lines: u64,
}

impl LinkBytes {
    fn of(carried: &Carried) -> LinkBytes {
        let kinds = |kinds: &[Kind]| kinds.iter().map(|kind| carried.tlps[*kind as usize].wire_bytes).sum();
        LinkBytes {
            writes: kinds(&[Kind::MemoryWrite, Kind::Message]),
            reads: kinds(&[Kind::MemoryRead, Kind::NonPostedWrite, Kind::Atomic]),
            answers: kinds(&[Kind::CompletionWithData, Kind::Completion]),
            control: carried.dllp_bytes,
        }
    }

    /// Returns the parts in the order of the columns.
    pub fn parts(&self) -> [u64; 4] {
        [self.writes, self.reads, self.answers, self.control]
    }

    fn sum(&self) -> u64 {
        self.parts().iter().sum()
    }
}

impl Figures {
    /// Takes the counts of an experiment.
    pub fn of(experiment: &Experiment<'_>, measured: &Measured) -> Figures {
        let outcome = &measured.outcome;
        let summary = outcome.to_wire.summary();
        let ps = |ns: f64| (ns * 1000.0).round() as u64;
        let disorder = measured.spans.as_ref().map(|spans| Disorder {
            writes: spans.writes(),
            beyond: SPANS.iter().map(|lines| spans.beyond(*lines)).collect(),
            most_lines: spans.most() as u64,
        });
        Figures {
            samples: summary.count,
            p50_ps: ps(summary.p50_ns),
            p99_ps: ps(summary.p99_ns),
            p999_ps: ps(summary.p999_ns),
            most_ps: ps(summary.most_ns),
            frames: outcome.frames,
            bytes: outcome.bytes,
            elapsed_ps: outcome.elapsed.0,
            of_devices: outcome
                .of_devices
                .iter()
                .filter(|_| experiment.devices > 1)
                .map(|share| DeviceFigures {
                    frames: share.frames,
                    bytes: share.bytes,
                    elapsed_ps: share.elapsed.0,
                })
                .collect(),
            all_frames: outcome.all_frames,
            all_bytes: outcome.all_bytes,
            to_device: LinkBytes::of(&outcome.cost.to_device),
            to_host: LinkBytes::of(&outcome.cost.to_host),
            memory_bytes: outcome.cost.memory_bytes,
            core_ps: outcome.cost.worked.0,
            energy_pj: experiment.energy_nj(outcome).map(|nj| (nj * 1000.0).round() as u64),
            disorder,
        }
    }

    /// Gbit/s of frames.
    pub fn gbps(&self) -> f64 {
        ratio(self.bytes as f64 * 8000.0, self.elapsed_ps)
    }

    /// Millions of frames a second.
    pub fn frames_m_per_s(&self) -> f64 {
        ratio(self.frames as f64 * 1e6, self.elapsed_ps)
    }

    /// Nanoseconds of cores a frame.
    pub fn core_ns_per_frame(&self) -> f64 {
        ratio(self.core_ps as f64 / 1000.0, self.all_frames)
    }

    /// Nanoseconds of cores a byte of frames.
    pub fn core_ns_per_byte(&self) -> f64 {
        ratio(self.core_ps as f64 / 1000.0, self.all_bytes)
    }

    /// Bytes of memory traffic of the device a byte of frames.
    pub fn memory_bytes_per_byte(&self) -> f64 {
        ratio(self.memory_bytes as f64, self.all_bytes)
    }

    /// Share of frames in all bytes on the link, both directions and layers, in percent.
    pub fn efficiency_percent(&self) -> f64 {
        ratio(self.all_bytes as f64 * 100.0, self.to_device.sum() + self.to_host.sum())
    }

    pub fn per_frame(&self, bytes: u64) -> f64 {
        ratio(bytes as f64, self.all_frames)
    }

    /// Nanojoules a frame.
    pub fn energy_nj_per_frame(&self) -> Option<f64> {
        self.energy_pj.map(|pj| ratio(pj as f64 / 1000.0, self.all_frames))
    }
}

impl DeviceFigures {
    /// Gbit/s of frames.
    pub fn gbps(&self) -> f64 {
        ratio(self.bytes as f64 * 8000.0, self.elapsed_ps)
    }
}

impl Disorder {
    /// Share of writes that needed more than [`SPANS`]`[index]` lines.
    pub fn beyond_share(&self, index: usize) -> f64 {
        ratio(self.beyond.get(index).copied().unwrap_or(0) as f64, self.writes)
    }
}

fn ratio(value: f64, by: u64) -> f64 {
    if by == 0 { 0.0 } else { value / by as f64 }
}
