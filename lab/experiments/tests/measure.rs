//! Quantities of a platform, against what paper and pencil give from its file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use beeline_experiments::measure::{Bench, Direction, DmaEngine, Fences, Stamp};
use beeline_platforms::Platform;
use beeline_spec::Interface;

fn close(ours: f64, expected: f64, relative: f64, what: &str) {
    assert!((ours / expected - 1.0).abs() <= relative, "{what}: {ours} and not {expected}");
}

#[test]
fn stores_cost_what_their_parts_cost() {
    let platform = Platform::named("epyc-7543-cx6dx").unwrap();
    let bench = Bench::new(&platform, 1);
    let (core, root) = (&platform.core, &platform.root_complex);
    let fill = core.store_ns.value.nanoseconds() * f64::from(64 / core.store_bytes.value);
    let interval = (fill + core.wc_busy_ns.value.nanoseconds()) / f64::from(core.wc_buffers.value);
    close(bench.line_interval_ns().unwrap(), interval, 0.01, "interval of lines");
    close(bench.store_rate_gbps(64, Fences::None, 1).unwrap(), 512.0 / interval, 0.01, "rate of lines");
    let on_the_wire = 88.0 / (16.0 * 1.969_23);
    let way = fill
        + root.write_latency_ns.value.nanoseconds()
        + on_the_wire
        + platform.link.flight_ns.value.nanoseconds();
    let seen = way + platform.device.ingress_latency_ns.value.nanoseconds();
    close(bench.write_latency_ns(64).unwrap(), seen, 0.005, "a line to the device");
    // The acknowledgement of the device comes back the way that the line went, but for the wire.
    let fenced = 2.0 * way - fill - on_the_wire + core.fence_ns.value.nanoseconds();
    close(bench.store_time_ns(64, Fences::PerMessage).unwrap(), fenced, 0.01, "a line and a fence");
    let lines = bench.store_time_ns(1024, Fences::PerLine).unwrap();
    close(lines, 16.0 * bench.store_time_ns(64, Fences::PerMessage).unwrap(), 0.05, "a fence a line");
}

#[test]
fn transfers_of_a_device_cost_what_their_parts_cost() {
    let platform = Platform::named("snb-nfp6000").unwrap();
    let bench = Bench::new(&platform, 1);
    // r0203 and r0210, from which its file was solved.
    close(bench.dma_read_latency_ns(DmaEngine::Bulk, 64).unwrap(), 560.0, 0.01, "a read");
    close(bench.dma_write_read_latency_ns(DmaEngine::Bulk, 64).unwrap(), 786.7, 0.01, "a write and a read");
    let read = bench.dma_rate_gbps(Direction::Read, 2048).unwrap();
    let both = bench.dma_rate_gbps(Direction::ReadWrite, 2048).unwrap();
    assert!(both <= 1.001 * read && both > 0.5 * read, "{both} of one direction, and {read}");
}

#[test]
fn interfaces_take_as_many_crossings_as_they_do() {
    let platform = Platform::named("epyc-7543-cx6dx").unwrap();
    let bench = Bench::new(&platform, 1);
    let latency = |interface| bench.transmit_latency_ns(interface, 64).unwrap();
    // One crossing; a doorbell and one read; a doorbell and two reads one after the other.
    let (mmio, enso, descriptor) =
        (latency(Interface::Mmio), latency(Interface::Enso), latency(Interface::Descriptor));
    assert!(mmio < enso && enso < descriptor, "{mmio} {enso} {descriptor}");
    close(descriptor - enso, enso - mmio, 0.35, "a read of the device");
    let share = |bytes, burst| bench.descriptor_share_percent(bytes, burst).unwrap();
    assert!(share(64, 16) > share(1500, 16) && share(1500, 16) < 5.0);
    assert!(share(64, 1) > share(64, 16), "a doorbell a frame is more than one for sixteen");
    let acknowledged =
        bench.trace_stamp_ns(Interface::Descriptor, 64, Stamp::CompletionAcknowledged(0)).unwrap();
    let sent = bench.trace_stamp_ns(Interface::Descriptor, 64, Stamp::CompletionSent(0)).unwrap();
    assert!(acknowledged > sent + platform.link.flight_ns.value.nanoseconds());
    let round = bench.ping_pong_ns(Interface::Mmio, 64).unwrap();
    assert!(round > 2.0 * mmio && round < 20.0 * mmio, "{round}");
}

/// What a read that the NIC holds brings is there sooner than a fetch of a descriptor and what it says, if a load
/// brings a line; by words, each of which crosses the link and back, it is later. Figures said of r0131.
#[test]
fn reads_that_are_held_win_if_a_load_brings_a_line() {
    let slow = Platform::named("niq-netfpga").unwrap();
    let wide = slow.with("core.uncached_load_bytes", "64").unwrap();
    let commodity = Platform::named("niq-x520").unwrap();
    let by_dma = Bench::new(&commodity, 1).ping_pong_ns(Interface::Descriptor, 64).unwrap();
    let times = |platform| by_dma / Bench::new(platform, 1).ping_pong_by_reads_ns(64).unwrap();
    close(times(&wide), 1.35, 0.01, "loads of a line");
    close(times(&slow), 0.49, 0.01, "loads of a word");
}
