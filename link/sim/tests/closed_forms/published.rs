//! What papers say of the bytes on a link, on ours. These follow from the sizes of packets alone: they check the sizes, and
//! prove nothing about machines.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::pcie::{AckRule, Answers, Class, Generation, Kind, Lanes, LinkSettings, Side, Tlp};

use crate::stage::Stage;

/// Gbit/s of payload of writes of `size` bytes that the device takes as fast as the wire brings them, without what ordered
/// sets and the data link layer take.
fn goodput_gbps(generation: Generation, lanes: u8, address: u64, size: u32) -> f64 {
    let mut settings = LinkSettings::new(generation, Lanes::new(lanes).expect("a width that exists"));
    settings.ordered_sets = false;
    settings.acknowledge = AckRule { packets: u32::MAX, ..settings.acknowledge };
    let mut stage = Stage::new(settings, Answers::Longest);
    let writes = 2000;
    for _ in 0..writes {
        let write = Tlp::new(Kind::MemoryWrite, address, size);
        stage.send_at(Picoseconds::ZERO, Side::Upstream, write);
    }
    stage.run();
    assert_eq!(stage.link.waiting(Side::Upstream, Class::Posted), 0);
    f64::from(writes * size * 8) * 1000.0 / stage.last_arrival.0 as f64
}

const ABOVE_4_GIB: u64 = 1 << 40;
const BELOW_4_GIB: u64 = 1 << 20;

/// Bounds that our tables of published figures derive by the formula payload / (payload + header + frame): of lines with
/// headers of 4 and of 3 double words, and of stores of 8 bytes that leave alone.
#[test]
fn goodput_is_that_of_the_formula() {
    for (generation, lanes, line_4dw, line_3dw, word_4dw) in [
        (Generation::Gen1, 4, 5.82, 6.10, 2.0),
        (Generation::Gen2, 4, 11.64, 12.19, 4.0),
        (Generation::Gen2, 8, 23.27, 24.38, 8.0),
        (Generation::Gen3, 4, 22.92, 24.01, 7.88),
        (Generation::Gen3, 8, 45.83, 48.01, 15.75),
        (Generation::Gen3, 16, 91.66, 96.02, 31.51),
        (Generation::Gen4, 8, 91.66, 96.02, 31.51),
        (Generation::Gen4, 16, 183.32, 192.05, 63.02),
        (Generation::Gen5, 8, 183.32, 192.05, 63.02),
        (Generation::Gen5, 16, 366.63, 384.09, 126.03),
    ] {
        for (address, size, expected) in
            [(ABOVE_4_GIB, 64, line_4dw), (BELOW_4_GIB, 64, line_3dw), (ABOVE_4_GIB, 8, word_4dw)]
        {
            let ours = goodput_gbps(generation, lanes, address, size);
            let what = format!("{generation:?} x{lanes}, {size} bytes at {address:#x}");
            assert!((ours - expected).abs() <= 0.006, "{what}: {ours:.3} and not {expected}");
        }
    }
}

/// Larsen and Lee: 72.7 % of the link for lines, 25 % for stores of 8 bytes (Gen1 x4, 8 Gbit/s).
#[test]
fn lines_use_the_link_better_than_words() {
    let share = |size| goodput_gbps(Generation::Gen1, 4, ABOVE_4_GIB, size) / 8.0;
    assert!((share(64) - 0.727).abs() < 5e-4);
    assert!((share(8) - 0.25).abs() < 5e-4);
}

/// Liew et al.: lines cost 20 % more bytes than completions of 128 bytes. Ours: 19.
#[test]
fn lines_cost_a_fifth_more_than_completions() {
    let encoding = Generation::Gen5.encoding();
    let bytes = |kind, length| {
        f64::from(Tlp::new(kind, ABOVE_4_GIB, length).wire_bytes(encoding)) / f64::from(length)
    };
    let more = bytes(Kind::MemoryWrite, 64) / bytes(Kind::CompletionWithData, 128) - 1.0;
    assert!((0.18..0.20).contains(&more), "{more}");
}

/// Gen5 x16 does not carry 400G in lines: frames of 1500 bytes need 394.8 Gbit/s. With headers of 3 double words neither.
#[test]
fn lines_do_not_fill_a_400g_wire_at_generation_5() {
    let long = goodput_gbps(Generation::Gen5, 16, ABOVE_4_GIB, 64);
    let short = goodput_gbps(Generation::Gen5, 16, BELOW_4_GIB, 64);
    assert_eq!((long.round(), short.round()), (367.0, 384.0));
    // Flits without frames: 1024 x 236/256 x 64/80 is 755.2, but for the last flit, which is not full.
    assert_eq!(goodput_gbps(Generation::Gen6, 16, ABOVE_4_GIB, 64).round(), 755.0);
}
