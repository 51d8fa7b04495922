//! The arithmetic that sources write down: each constant that was solved from a published row gives that row again, when
//! the times along its way are added. No model is needed for these: one packet, nothing waits.

use beeline_platforms::{Link, Platform};

/// Framing, sequence number and LCRC of a packet.
const FRAME_BYTES: u32 = 8;
/// Packets of acknowledgement and header of a completion.
const COMPLETION_BYTES: u32 = 12 + FRAME_BYTES;

fn platform(name: &str) -> Platform {
    Platform::named(name).expect("a built-in platform")
}

/// Nanoseconds of so many bytes on the wire.
fn wire_ns(link: &Link, bytes: u32) -> f64 {
    let bytes_per_ns = match link.generation.value {
        generation @ 1..=2 => f64::from(generation) * 0.25,
        generation => f64::from(1 << (generation - 3)) * 128.0 / 130.0,
    };
    f64::from(bytes) / (bytes_per_ns * f64::from(link.lanes.value))
}

fn request_ns(link: &Link, payload_bytes: u32) -> f64 {
    wire_ns(link, link.header_dw.value * 4 + FRAME_BYTES + payload_bytes)
}

/// A DMA read of at most one completion, from the decision until the device has the data.
fn dma_read_ns(machine: &Platform, bytes: u32) -> f64 {
    let (link, device, root) = (&machine.link, &machine.device, &machine.root_complex);
    let flight = link.flight_ns.value.nanoseconds();
    let far =
        if root.data_in.value.word() == "other-socket" { root.numa_ns.value.nanoseconds() } else { 0.0 };
    let way = request_ns(link, 0) + flight + wire_ns(link, bytes + COMPLETION_BYTES) + flight;
    device.read_start_ns.value.nanoseconds()
        + way
        + root.read_latency_ns.value.nanoseconds()
        + far
        + device.read_finish_ns.value.nanoseconds()
        + inside_ns(machine, bytes)
        + machine.device.read_transfer_ns.value.nanoseconds()
}

/// The device's own data path, store and forward.
fn inside_ns(machine: &Platform, bytes: u32) -> f64 {
    let gbps = machine.device.dma_gbps.value;
    if gbps == 0.0 { 0.0 } else { f64::from(bytes) * 8.0 / gbps }
}

/// An uncached load, from the core and back.
fn load_ns(machine: &Platform) -> f64 {
    let link = &machine.link;
    machine.core.uncached_load_ns.value.nanoseconds()
        + request_ns(link, 0)
        + wire_ns(link, machine.core.uncached_load_bytes.value + COMPLETION_BYTES)
        + 2.0 * link.flight_ns.value.nanoseconds()
        + machine.device.register_read_ns.value.nanoseconds()
}

/// Stores that fill a line.
fn fill_ns(machine: &Platform) -> f64 {
    let stores = 64 / machine.core.store_bytes.value;
    f64::from(stores) * machine.core.store_ns.value.nanoseconds()
}

#[track_caller]
fn near(ours: f64, published: f64, within: f64) {
    assert!((ours - published).abs() <= within, "{ours:.1} against {published}, {within} allowed");
}

/// pcie-bench's clock ticks every 13.3 ns: medians are as far off as half a tick, and so are those of 8 B.
#[test]
fn reads_of_pcie_bench_come_out() {
    const TICK_NS: f64 = 13.34;
    for (name, of_8, of_64) in [
        ("snb-nfp6000", 546.7, 560.0),              // r0202, r0203
        ("snb-nfp6000-iommu", 546.7, 560.0),        // r0237, r0238
        ("ib-nfp6000-local", 546.7, 560.0),         // r0272, r0273
        ("ib-nfp6000-remote", 653.3, 666.7),        // r0307, r0308
        ("hsw-2637v3-nfp6000", 586.7, 600.0),       // r0342, r0343
        ("hsw-2620v3-nfp6000", 533.3, 546.7),       // r0377, r0378
        ("hsw-2620v3-nfp6000-iommu", 533.3, 546.7), // r0412, r0413
        ("hsw-1226v3-nfp6000", 1226.7, 1226.7),     // r0447, r0448
        ("bdw-nfp6000-local", 546.7, 546.7),        // r0482, r0483
        ("bdw-nfp6000-remote", 640.0, 653.3),       // r0517, r0518
        ("bdw-nfp6000-local-iommu", 546.7, 560.0),  // r0552, r0553
    ] {
        let machine = platform(name);
        near(dma_read_ns(&machine, 64), of_64, 0.2);
        near(dma_read_ns(&machine, 8), of_8, 1.5 * TICK_NS);
    }
}

/// A command takes no engine: it is the host and the way alone.
#[test]
fn commands_of_pcie_bench_come_out() {
    let machine = platform("snb-nfp6000");
    let (device, inside) = (&machine.device, inside_ns(&machine, 64));
    let engine = [&device.read_start_ns, &device.read_finish_ns, &device.read_transfer_ns];
    let engine: f64 = engine.iter().map(|time| time.value.nanoseconds()).sum();
    near(dma_read_ns(&machine, 64) - engine - inside, 440.0, 0.5); // r0200
}

/// The read leaves when the write has left the engine, and is answered when the write is visible.
#[test]
fn a_write_before_a_read_adds_its_way_out_of_the_device() {
    let machine = platform("snb-nfp6000");
    let (device, link) = (&machine.device, &machine.link);
    for (bytes, published) in [(64, 786.7 - 560.0), (8, 760.0 - 546.7)] {
        let left = device.write_start_ns.value.nanoseconds() + inside_ns(&machine, bytes);
        let visible =
            left + request_ns(link, bytes) + machine.root_complex.write_visible_ns.value.nanoseconds();
        let alone = device.read_start_ns.value.nanoseconds() + request_ns(link, 0);
        near(visible.max(left + alone) - alone, published, 6.7); // r0209 to r0210, r0202 to r0203
    }
}

#[test]
fn a_descriptor_is_there_when_the_analyser_saw_it() {
    let machine = platform("i5-2400s-82575eb");
    let stage = machine.device.ingress_latency_ns.value.nanoseconds() + dma_read_ns(&machine, 16)
        - machine.device.read_finish_ns.value.nanoseconds();
    near(stage, 1064.0 - 184.0, 1.0); // r0026, r0027
}

#[test]
fn loads_come_back_in_time() {
    let epyc = platform("epyc-7543-cx6dx");
    near(load_ns(&epyc) + epyc.core.fence_ns.value.nanoseconds(), 650.0, 1.0); // r0053
    let enzian = platform("enzian-pcie");
    let way = enzian.core.uncached_store_ns.value.nanoseconds()
        + enzian.root_complex.write_latency_ns.value.nanoseconds()
        + request_ns(&enzian.link, 8)
        + enzian.link.flight_ns.value.nanoseconds()
        + enzian.device.ingress_latency_ns.value.nanoseconds();
    near(way + load_ns(&enzian), 1292.0, 1.0); // r0768
    near(8.0 * enzian.core.uncached_store_ns.value.nanoseconds(), 54.4, 0.1); // r0834
}

#[test]
fn a_core_gives_up_lines_at_the_published_rate() {
    let epyc = platform("epyc-7543-cx6dx");
    let buffer = fill_ns(&epyc) + epyc.core.wc_busy_ns.value.nanoseconds();
    near(f64::from(epyc.core.wc_buffers.value) * 512.0 / buffer, 120.0, 0.2); // r0049
    near(512.0 / fill_ns(&epyc), 200.0, 0.1); // r0051
}

#[test]
fn a_line_with_a_fence_takes_what_gdrcopy_prints() {
    let machine = platform("xeon-v100");
    let fenced = fill_ns(&machine)
        + machine.core.wc_busy_ns.value.nanoseconds()
        + machine.core.fence_ns.value.nanoseconds();
    near(fenced, 90.2, 0.2); // r0624
}

#[test]
fn eight_stores_of_thunderx2_cost_more_than_a_fetch() {
    let machine = platform("thunderx2-cx5");
    let store = machine.core.uncached_store_ns.value.nanoseconds();
    near(7.0 * store - 350.0, 1825.0 - 1280.0, 1.5); // r0678, r0679, r0671
}

#[test]
fn a_word_crosses_dolphins_switches_in_half_a_round_trip() {
    let machine = platform("dolphin-ntb");
    let link = &machine.link;
    let one_link = request_ns(link, 4) + link.flight_ns.value.nanoseconds();
    let hops: f64 = machine.hops.iter().map(|hop| hop.latency_ns.value.nanoseconds() + one_link).sum();
    let one_way = machine.core.message_ns.value.nanoseconds()
        + machine.root_complex.write_latency_ns.value.nanoseconds()
        + one_link
        + hops
        + machine.root_complex.write_visible_ns.value.nanoseconds()
        + machine.core.line_wake_ns.value.nanoseconds()
        + machine.core.poll_ns.value.nanoseconds();
    near(2.0 * one_way, 2162.0, 10.0); // r0934
}

#[test]
fn two_reads_a_frame_are_the_82573s_pace() {
    let machine = platform("i82573e");
    near(dma_read_ns(&machine, 16) + dma_read_ns(&machine, 100), 5200.0, 20.0); // r0096
}

#[test]
fn a_dma_engine_starts_so_late_that_256_bytes_take_what_is_printed() {
    let machine = platform("vpx3-133-gen2x4");
    let (link, core) = (&machine.link, &machine.core);
    let payload_bytes = link.max_payload_bytes.value;
    let packet = request_ns(link, payload_bytes);
    let flight = link.flight_ns.value.nanoseconds();
    let hops: f64 = machine.hops.iter().map(|hop| hop.latency_ns.value.nanoseconds() + packet + flight).sum();
    let root = &machine.root_complex;
    let one_way = core.message_ns.value.nanoseconds()
        + core.uncached_store_ns.value.nanoseconds()
        + machine.device.write_start_ns.value.nanoseconds()
        + root.read_latency_ns.value.nanoseconds()
        + root.read_interval_ns.value.nanoseconds() * f64::from(payload_bytes / 64 - 1)
        + f64::from(256 / payload_bytes) * packet
        + flight
        + hops
        + root.write_visible_ns.value.nanoseconds()
        + core.line_wake_ns.value.nanoseconds()
        + core.poll_ns.value.nanoseconds();
    near(one_way, 1750.0, 1.0); // r0127
}

/// The worked example of `docs/platforms.md`, as it stands there.
#[test]
fn the_example_of_the_page_gives_what_it_starts_from() {
    let page = include_str!("../../../docs/platforms.md");
    let text =
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a file in the page");
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("example.toml");
    std::fs::write(&path, text).expect("a file in it");
    let machine = Platform::read(&path).unwrap_or_else(|error| panic!("{error}"));
    near(dma_read_ns(&machine, 64), 632.0, 0.2);
    near(dma_read_ns(&machine, 8), 625.0, 0.2);
    near(machine.device.write_start_ns.value.nanoseconds() + request_ns(&machine.link, 64), 90.0, 0.1);
    near(load_ns(&machine), 900.0, 0.2);
    let tags = f64::from(machine.device.read_tags.value);
    let held = dma_read_ns(&machine, 64)
        - machine.device.read_start_ns.value.nanoseconds()
        - machine.device.read_finish_ns.value.nanoseconds();
    near(tags * 512.0 / held, 24.6, 1.0);
}
