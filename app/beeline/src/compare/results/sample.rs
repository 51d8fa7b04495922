//! Results with a row of every kind, for the tests of tables and report.

use super::*;

/// A run that measured nothing.
pub fn empty() -> Results {
    Results {
        machine: Machine {
            cpu: "Test CPU <with & markup>".to_owned(),
            cpus: 2,
            kernel: "6.0".to_owned(),
            hypervisor: "none seen".to_owned(),
            cores: vec![0, 1],
        },
        command: "beeline compare".to_owned(),
        version: "0.0.0".to_owned(),
        kernels: Vec::new(),
        floors: Vec::new(),
        dropped: Vec::new(),
        rounds: Vec::new(),
        stores: Vec::new(),
        latencies: Vec::new(),
        rates: Vec::new(),
        transmits: Vec::new(),
        checks: Vec::new(),
    }
}

pub fn sample() -> Results {
    let sizes = [16u32, 64, 128, 256, 512, 1024, 1500, 4096, 9000];
    let placement = Placement::Near;
    let mut results = empty();
    add_conditions(&mut results);
    for policy in ["none", "per-wrap", "per-message", "per-line"] {
        for receiver in [false, true] {
            for message_bytes in [64, 128, 256, 512, 1024, 2048, 4096, 8192] {
                results.stores.push(StoreRow {
                    placement,
                    spread: 0.01,
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
                    placement,
                    spread: if frame_bytes == 64 { 0.3 } else { 0.02 },
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
                placement,
                spread: 0.02,
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
            result: "complete and in order".to_owned(),
        });
    }
    results
}

fn add_conditions(results: &mut Results) {
    results.kernels.push(KernelRow {
        traffic: "latency".to_owned(),
        kernel: "cached",
        method: "as named".to_owned(),
    });
    results.dropped.push(DroppedRow { part: "onto the wire", rounds: 1 });
    results.floors.push(FloorRow {
        part: "there and back",
        placement: Placement::Near,
        rounds: 7,
        bare_line_ns: 130.0,
        bare_copy_ns: 160.0,
    });
}
