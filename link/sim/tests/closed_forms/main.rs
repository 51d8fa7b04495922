//! Where nothing overlaps, the simulation gives what paper and pencil give: times, bytes and bandwidths, computed here from
//! the numbers of the specification and not by the crate.

mod published;
mod stage;

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::pcie::{
    AckRule, Advertised, Answers, Cut, DLLP_BYTES, Generation, Kind, Lanes, LinkSettings, Side, Tlp,
    UpdateRule, latency_limit_symbols, requests,
};
use stage::Stage;

const ABOVE_4_GIB: u64 = 1 << 40;
/// Start and sequence number, LCRC and end of a packet.
const FRAME_BYTES: u64 = 8;
/// Longer than any run here.
const NEVER: Picoseconds = Picoseconds(1_000_000_000_000);

/// A link without ordered sets, acknowledgements and limits: nothing but the packets of the model.
fn bare(generation: Generation, lanes: u8) -> LinkSettings {
    LinkSettings {
        ordered_sets: false,
        acknowledge: AckRule { after: NEVER, packets: u32::MAX },
        ..LinkSettings::new(generation, Lanes::new(lanes).expect("a width that exists"))
    }
}

/// GT/s, and bits on the wire for each 64 bits of packets.
const RATES: [(Generation, f64, f64); 5] = [
    (Generation::Gen1, 2.5, 80.0),
    (Generation::Gen2, 5.0, 80.0),
    (Generation::Gen3, 8.0, 65.0),
    (Generation::Gen4, 16.0, 65.0),
    (Generation::Gen5, 32.0, 65.0),
];

/// Picoseconds of so many bytes of packets.
fn wire_ps(generation: Generation, lanes: u8, bytes: u64) -> f64 {
    let (_, rate_gtps, bits) = RATES[generation as usize];
    bytes as f64 * bits / 8.0 / rate_gtps / f64::from(lanes) * 1000.0
}

/// Gbit/s of packets that the wire carries.
fn wire_gbps(generation: Generation, lanes: u8) -> f64 {
    8000.0 / wire_ps(generation, lanes, 1)
}

fn gbps(bytes: u64, time: Picoseconds) -> f64 {
    bytes as f64 * 8000.0 / time.0 as f64
}

/// Bytes of TLPs that left `side`: a last acknowledgement comes after the run, and is not in them.
fn tlp_bytes(stage: &Stage, side: Side) -> u64 {
    stage.link.carried(side).tlps.iter().map(|kind| kind.wire_bytes).sum()
}

fn assert_close(ours: f64, expected: f64, relative: f64, what: &str) {
    assert!((ours / expected - 1.0).abs() <= relative, "{what}: {ours} and not {expected}");
}

#[test]
fn a_packet_on_an_empty_link_takes_its_bytes_and_the_way() {
    for (generation, ..) in RATES {
        for lanes in [1, 2, 4, 8, 12, 16] {
            let settings = LinkSettings { flight: Picoseconds::from_ns(150), ..bare(generation, lanes) };
            let mut stage = Stage::new(settings, Answers::Longest);
            let start = Picoseconds::from_ns(7);
            stage.send_at(start, Side::Upstream, Tlp::new(Kind::MemoryWrite, ABOVE_4_GIB, 64));
            stage.run();
            let expected = wire_ps(generation, lanes, FRAME_BYTES + 16 + 64).ceil() as u64 + 150_000;
            assert_eq!(stage.last_arrival - start, Picoseconds(expected), "{generation:?} x{lanes}");
        }
    }
}

/// A flit of x16 takes 2 ns, and what is in it is there when it ends: 20 lines of 80 bytes end in the seventh.
#[test]
fn packets_of_generation_6_come_with_their_flits() {
    let mut stage = Stage::new(bare(Generation::Gen6, 16), Answers::Longest);
    for _ in 0..20 {
        stage.send_at(Picoseconds::ZERO, Side::Upstream, Tlp::new(Kind::MemoryWrite, ABOVE_4_GIB, 64));
    }
    stage.run();
    assert_eq!(stage.last_arrival, Picoseconds(7 * 2000));
    let full_gbps = 64.0 * 16.0 * 236.0 / 256.0;
    let mut stage = Stage::new(bare(Generation::Gen6, 16), Answers::Longest);
    stage.write(ABOVE_4_GIB, 64, 256, 10_000);
    stage.run();
    let efficiency = 64.0 / (64.0 + 16.0);
    assert_close(gbps(640_000, stage.last_arrival), full_gbps * efficiency, 2e-3, "64 B writes");
}

/// Transfers of `size` bytes, as Neugebauer et al. count their bytes ("Understanding PCIe performance for end host
/// networking", SIGCOMM 2018, section 3): 24 bytes around each write and each read request, 20 around each completion.
const SIZES: [u64; 10] = [4, 16, 64, 65, 128, 256, 260, 512, 1024, 1500];

#[test]
fn writes_have_the_bytes_and_the_bandwidth_of_the_formula() {
    for (generation, lanes, max_payload) in
        [(Generation::Gen3, 8, 256), (Generation::Gen1, 4, 128), (Generation::Gen4, 16, 512)]
    {
        for size in SIZES {
            let settings = LinkSettings { max_payload_bytes: max_payload, ..bare(generation, lanes) };
            let mut stage = Stage::new(settings, Answers::Longest);
            let transfers = 200;
            stage.write(ABOVE_4_GIB, size, 2048, transfers);
            stage.run();
            // Payload goes in double words: 65 bytes travel as 68.
            let each = size.div_ceil(u64::from(max_payload)) * 24 + size.next_multiple_of(4);
            assert_eq!(tlp_bytes(&stage, Side::Downstream), transfers * each);
            let expected = wire_ps(generation, lanes, transfers * each).ceil() as u64;
            assert_eq!(stage.last_arrival, Picoseconds(expected), "{generation:?} x{lanes}, {size} bytes");
            let effective = wire_gbps(generation, lanes) * size as f64 / each as f64;
            assert_close(gbps(transfers * size, stage.last_arrival), effective, 1e-5, "bandwidth");
        }
    }
}

#[test]
fn reads_have_the_bytes_and_the_bandwidth_of_the_formula() {
    for (boundary, answers) in
        [(64, Answers::Longest), (64, Answers::EachBoundary), (128, Answers::EachBoundary)]
    {
        for size in SIZES {
            let settings = LinkSettings { completion_boundary_bytes: boundary, ..bare(Generation::Gen3, 8) };
            let mut stage = Stage::new(settings, answers);
            let transfers = 200;
            stage.read(ABOVE_4_GIB, size, 2048, transfers);
            stage.run();
            let asked = size.div_ceil(512) * 24;
            let piece = if answers == Answers::Longest { 256 } else { u64::from(boundary) };
            let answered = size.div_ceil(piece) * 20 + size.next_multiple_of(4);
            assert_eq!(tlp_bytes(&stage, Side::Downstream), transfers * asked, "{size}");
            assert_eq!(tlp_bytes(&stage, Side::Upstream), transfers * answered, "{size}");
            // The busier direction sets the pace; the other one adds a packet at the start or the end.
            let busier = asked.max(answered);
            let effective = wire_gbps(Generation::Gen3, 8) * size as f64 / busier as f64;
            assert_close(gbps(transfers * size, stage.last_arrival), effective, 0.02, "bandwidth");
        }
    }
}

/// A single read: the request, the way, the memory, the first to the last completion, the way.
#[test]
fn a_read_takes_its_stages_one_after_the_other() {
    let settings = LinkSettings { flight: Picoseconds::from_ns(100), ..bare(Generation::Gen3, 8) };
    let mut stage = Stage::new(settings, Answers::Longest);
    stage.memory = Picoseconds::from_ns(250);
    stage.read(ABOVE_4_GIB, 512, 512, 1);
    stage.run();
    let request = wire_ps(Generation::Gen3, 8, 24).ceil() as u64;
    let answer = wire_ps(Generation::Gen3, 8, 2 * 20 + 512).ceil() as u64;
    assert_eq!(stage.last_arrival, Picoseconds(request + 100_000 + 250_000 + answer + 100_000));
}

/// The figures of that paper for Gen3 x8: 62.96 Gbit/s on the wire, 57.88 for TLPs. The second follows if the limits of
/// acknowledgements and updates, symbols of *each* lane, are taken for bytes of all lanes together. Symbols of eight lanes
/// are eight bytes, so that answers at the limit take an eighth of that, and TLPs have more than 62 Gbit/s.
#[test]
fn the_published_bandwidth_of_tlps_and_ours() {
    let wire = wire_gbps(Generation::Gen3, 8);
    assert_close(wire, 62.96, 1e-3, "the wire");
    let x8 = Lanes::new(8).expect("a width that exists");
    let limit = latency_limit_symbols(Generation::Gen3, x8, 256) as f64;
    let published = wire * (1.0 - 2.0 * 8.0 / limit - 4.0 / 1538.0);
    assert_close(published, 57.88, 1e-3, "TLPs, as published");

    // Ours: both directions full of 64-byte writes, acknowledgements at the limit and ordered sets.
    let mut stage = Stage::new(LinkSettings::new(Generation::Gen3, x8), Answers::Longest);
    let writes = 20_000;
    stage.write(ABOVE_4_GIB, 64, 64, writes);
    for _ in 0..writes {
        stage.send_at(Picoseconds::ZERO, Side::Upstream, Tlp::new(Kind::MemoryWrite, ABOVE_4_GIB, 64));
    }
    stage.run();
    let tlps = gbps(writes * 88, stage.last_arrival);
    let one_answer = 1.0 - 8.0 / (8.0 * limit) - 16.0 / 6000.0;
    assert_close(tlps, wire * one_answer, 1e-3, "TLPs in virtual time");
    assert!(tlps > 62.0 && tlps < wire);
}

/// Writes without a gap are acknowledged by the first of each batch: a timer starts with it and runs for the limit.
#[test]
fn acknowledgements_come_at_the_limit() {
    let after_ps = 1_000_000;
    let acknowledge = AckRule { after: Picoseconds(after_ps), packets: u32::MAX };
    let mut stage = Stage::new(LinkSettings { acknowledge, ..bare(Generation::Gen1, 1) }, Answers::Longest);
    let writes = 1000;
    stage.write(ABOVE_4_GIB, 64, 64, writes);
    stage.run();
    let each_ps = 88 * 4000;
    let batch = after_ps / each_ps + 1;
    let answers = stage.link.carried(Side::Upstream);
    assert_eq!(answers.dllps, writes.div_ceil(batch));
    assert_eq!(answers.wire_bytes(), answers.dllps * u64::from(DLLP_BYTES));
    // One for every packet, without waiting.
    let acknowledge = AckRule { after: NEVER, packets: 1 };
    let mut stage = Stage::new(LinkSettings { acknowledge, ..bare(Generation::Gen1, 1) }, Answers::Longest);
    stage.write(ABOVE_4_GIB, 64, 64, writes);
    stage.run();
    assert_eq!(stage.link.carried(Side::Upstream).dllps, writes);
}

/// With room for n lines at the receiver, n lines take the round trip of their credits, if that is longer than n lines.
#[test]
fn credits_bound_the_rate() {
    let flight = Picoseconds::from_ns(500);
    let way_ps = 500_000;
    let (line_ps, update_ps) = (88 * 1000, 8 * 1000);
    // The least that may be advertised is room for the largest packet: two lines.
    for lines in [2, 4, 8, 20] {
        let mut settings = LinkSettings { flight, max_payload_bytes: 128, ..bare(Generation::Gen1, 4) };
        settings.update = UpdateRule { after: Picoseconds::ZERO, one_in: u32::MAX };
        settings.advertised[Side::Upstream as usize] = [Advertised::finite(lines, lines * 4); 3];
        let lines = u64::from(lines);
        let mut stage = Stage::new(settings, Answers::Longest);
        let writes = lines * 50;
        stage.write(ABOVE_4_GIB, 64, 64, writes);
        stage.run();
        let round_ps = line_ps + way_ps + update_ps + way_ps;
        // The last batch is there a line time after another, and needs no credits back.
        let expected = if round_ps > lines * line_ps {
            49 * round_ps + lines * line_ps + way_ps
        } else {
            writes * line_ps + way_ps
        };
        assert_eq!(stage.last_arrival, Picoseconds(expected), "room for {lines} lines");
    }
}

/// What the splitting gives, in packets: 4096 bytes from an address 8 before a page.
#[test]
fn a_transfer_over_a_page_is_one_packet_more() {
    let packets = |address| requests(address, 4096, 256, Cut::WhenFull).count();
    assert_eq!((packets(0), packets(4088)), (16, 17));
}
