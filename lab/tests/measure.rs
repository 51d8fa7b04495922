//! Quantities of a platform, against what paper and pencil give from its file.

use beeline_lab::measure::{Bench, Direction, DmaEngine, Fences, Stamp};
use beeline_platforms::Platform;
use beeline_spec::Interface;

#[test]
fn print() {
    let platform = Platform::named("epyc-7543-cx6dx").unwrap();
    let bench = Bench::new(&platform, 1);
    println!("line interval {:.2}", bench.line_interval_ns().unwrap());
    for bytes in [64, 128, 1024] {
        for fences in [Fences::None, Fences::PerMessage, Fences::PerLine] {
            println!("store {bytes} {fences:?} {:.2} ns", bench.store_time_ns(bytes, fences).unwrap());
        }
    }
    println!("rate {:.2}", bench.store_rate_gbps(64, Fences::None, 1).unwrap());
    println!("rate 4 cores {:.2}", bench.store_rate_gbps(64, Fences::None, 4).unwrap());
    println!(
        "write latency {:.2} {:.2}",
        bench.write_latency_ns(64).unwrap(),
        bench.write_latency_ns(8).unwrap()
    );
    println!("write read {:.2}", bench.write_then_read_ns().unwrap());
    println!("read {:.2} {:.2}", bench.read_round_trip_ns(8).unwrap(), bench.read_round_trip_ns(64).unwrap());
    for bytes in [8, 64, 512, 2048] {
        println!(
            "dma {bytes}: {:.1} {:.1} {:.1} cmd {:.1} bw {:.1} {:.1} {:.1}",
            bytes as f64,
            bench.dma_read_latency_ns(DmaEngine::Bulk, bytes).unwrap(),
            bench.dma_write_read_latency_ns(DmaEngine::Bulk, bytes).unwrap(),
            bench.dma_read_latency_ns(DmaEngine::Command, bytes).unwrap(),
            bench.dma_rate_gbps(Direction::Read, bytes).unwrap(),
            bench.dma_rate_gbps(Direction::Write, bytes).unwrap(),
            bench.dma_rate_gbps(Direction::ReadWrite, bytes).unwrap(),
        );
    }
    for interface in Interface::ALL {
        println!(
            "{interface:?} latency {:.1} done {:.1} rate {:.2} / {:.2}",
            bench.transmit_latency_ns(interface, 64).unwrap(),
            bench.transmit_done_ns(interface, 100, 10).unwrap(),
            bench.frame_rate_gbps(interface, 64, 1).unwrap(),
            bench.frame_rate_gbps(interface, 1500, 1).unwrap()
        );
    }
    println!(
        "share {:.1} {:.1}",
        bench.descriptor_share_percent(64).unwrap(),
        bench.descriptor_share_percent(1500).unwrap()
    );
    println!(
        "stamp {:.1}",
        bench.trace_stamp_ns(Interface::Descriptor, 64, Stamp::CompletionAcknowledged(0)).unwrap()
    );
}
