//! What `compare` measured: rows that tables, CSV, JSON and the report all come from.

use beeline_spec::Interface;
use serde::Serialize;

/// Everything one run measured, with what is needed to judge it. Every figure in it is *measured*.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    pub machine: Machine,
    /// The command line that made it.
    pub command: String,
    /// Version of the program.
    pub version: &'static str,
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
    /// Round trip of the bare copy between those cores, p50 in ns: the floor.
    pub bare_copy_p50_ns: Option<u64>,
}

/// Goodput of raw stores into a window (HotOS'25 figure 2 on this CPU).
#[derive(Clone, Debug, Serialize)]
pub struct StoreRow {
    /// Fence policy.
    pub policy: &'static str,
    /// Whether another core receives; without, nobody reads and nothing limits the stores.
    pub receiver: bool,
    pub kernel: &'static str,
    /// Bytes of a message in the window: header, payload and padding.
    pub message_bytes: u32,
    /// Messages a second.
    pub messages_per_s: f64,
    /// Window bytes a second, in Gbit/s.
    pub goodput_gbps: f64,
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
    #[serde(serialize_with = "name")]
    pub interface: Interface,
    #[serde(rename = "way")]
    pub latency_kind: LatencyKind,
    /// Store kernel of the window, or "-" where there is none.
    pub kernel: &'static str,
    /// Frame bytes, FCS excluded.
    pub frame_bytes: u32,
    pub samples: u64,
    /// Median in ns.
    pub p50_ns: u64,
    /// 99th percentile in ns.
    pub p99_ns: u64,
    /// 99.9th percentile in ns.
    pub p999_ns: u64,
}

/// Frames a second and what they cost.
#[derive(Clone, Debug, Serialize)]
pub struct RateRow {
    #[serde(serialize_with = "name")]
    pub interface: Interface,
    /// Store kernel of the window, or "-" where there is none.
    pub kernel: &'static str,
    /// Frame bytes, FCS excluded.
    pub frame_bytes: u32,
    /// Frames handed over at once.
    pub burst: u32,
    /// Frames sent; there and back, received and verified too; onto the wire, counted there by the NIC.
    pub frames: u64,
    /// Frames a second.
    pub frames_per_s: f64,
    /// Frame bytes a second, in Gbit/s.
    pub goodput_gbps: f64,
    /// CPU time of the measuring thread for each frame, in ns: sending, and receiving where anything comes back.
    pub host_ns_per_frame: f64,
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
    pub verdict: String,
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

impl Results {
    /// The CSV files of a run: file name and text.
    pub fn csv(&self) -> Vec<(&'static str, String)> {
        let mut stores =
            String::from("kind,policy,receiver,kernel,message_bytes,messages_per_s,goodput_gbps\n");
        for r in &self.stores {
            let StoreRow { policy, receiver, kernel, message_bytes, .. } = r;
            stores += &format!(
                "measured,{policy},{receiver},{kernel},{message_bytes},{:.0},{:.4}\n",
                r.messages_per_s, r.goodput_gbps
            );
        }
        let mut latency =
            String::from("kind,interface,way,kernel,frame_bytes,samples,p50_ns,p99_ns,p999_ns\n");
        for r in &self.latencies {
            let LatencyRow { interface, kernel, frame_bytes, samples, p50_ns, p99_ns, p999_ns, latency_kind } =
                r;
            let latency_kind = latency_kind.label();
            latency += &format!(
                "measured,{interface},{latency_kind},{kernel},{frame_bytes},{samples},{p50_ns},{p99_ns},{p999_ns}\n"
            );
        }
        let (rate, transmit) = (rates_csv(&self.rates), rates_csv(&self.transmits));
        vec![("stores.csv", stores), ("latency.csv", latency), ("rate.csv", rate), ("transmit.csv", transmit)]
    }
}

fn rates_csv(rows: &[RateRow]) -> String {
    let mut text = String::from(
        "kind,interface,kernel,frame_bytes,burst,frames,frames_per_s,goodput_gbps,host_ns_per_frame\n",
    );
    for r in rows {
        let RateRow { interface, kernel, frame_bytes, burst, frames, .. } = r;
        text += &format!(
            "measured,{interface},{kernel},{frame_bytes},{burst},{frames},{:.0},{:.4},{:.2}\n",
            r.frames_per_s, r.goodput_gbps, r.host_ns_per_frame
        );
    }
    text
}

/// Results with a row of every kind, for the tests of tables and report.
#[cfg(test)]
pub fn sample() -> Results {
    let sizes = [16u32, 64, 128, 256, 512, 1024, 1500, 4096, 9000];
    let mut results = Results {
        machine: Machine {
            cpu: "Test CPU <with & markup>".to_owned(),
            cpus: 2,
            kernel: "6.0".to_owned(),
            hypervisor: "none seen".to_owned(),
            cores: vec![0, 1],
            bare_copy_p50_ns: Some(200),
        },
        command: "beeline compare".to_owned(),
        version: "0.0.0",
        stores: Vec::new(),
        latencies: Vec::new(),
        rates: Vec::new(),
        transmits: Vec::new(),
        checks: Vec::new(),
    };
    for policy in ["none", "per-wrap", "per-message", "per-line"] {
        for receiver in [false, true] {
            for message_bytes in [64, 128, 256, 512, 1024, 2048, 4096, 8192] {
                results.stores.push(StoreRow {
                    policy,
                    receiver,
                    kernel: "movdir64b",
                    message_bytes,
                    messages_per_s: 123_456_789.0,
                    goodput_gbps: 123.4,
                });
            }
        }
    }
    for (interface, kernel) in
        [(Interface::Mmio, "cached"), (Interface::Kpio, "cached"), (Interface::Descriptor, "-")]
    {
        for frame_bytes in sizes {
            for latency_kind in [LatencyKind::OneWay, LatencyKind::RoundTrip] {
                results.latencies.push(LatencyRow {
                    interface,
                    latency_kind,
                    kernel,
                    frame_bytes,
                    samples: 1000,
                    p50_ns: 300 + u64::from(frame_bytes),
                    p99_ns: 123_456,
                    p999_ns: 1_234_567,
                });
            }
            let rate = |frames_per_s| RateRow {
                interface,
                kernel,
                frame_bytes,
                burst: 32,
                frames: 1000,
                frames_per_s,
                goodput_gbps: 123.4,
                host_ns_per_frame: 1234.0,
            };
            results.rates.push(rate(12_345_678.0));
            results.transmits.push(rate(98_765_432.0));
        }
        results.checks.push(CheckRow {
            interface,
            frames: 1000,
            bytes: 64_000,
            verdict: "complete and in order".to_owned(),
        });
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_a_file_of_its_kind() {
        let results = sample();
        let lines = |file: &str| {
            let (_, text) = results.csv().into_iter().find(|(name, _)| *name == file).expect("the file");
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines("stores.csv").len(), results.stores.len());
        assert_eq!(lines("latency.csv").len(), results.latencies.len());
        assert_eq!(lines("rate.csv").len(), results.rates.len());
        assert_eq!(lines("transmit.csv").len(), results.transmits.len());
        assert!(lines("rate.csv")[0].ends_with(",1000,12345678,123.4000,1234.00"));
        assert!(lines("transmit.csv")[0].ends_with(",1000,98765432,123.4000,1234.00"));
    }
}
