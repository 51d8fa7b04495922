//! Memory that everybody shares: what gets through is the least of the link's rate and of memory's, in closed form, and all
//! who use it together get no more than its rate.

use beeline_link_contract::{DmaMemory, Link};
use beeline_link_sim::device::Rate;
use beeline_link_sim::machine::{CoreId, Next, Sim};
use proptest::prelude::*;

use crate::probe::{Probe, Reaction};
use crate::{assert_at_rest, ns, once, patterned, run, settings};

// One of them more or less at an end of what is counted is half a percent.
const TRANSFERS: usize = 400;
/// Transfers under way: enough for any latency here.
const CHAINS: usize = 32;

/// What a device does over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Reads,
    Writes,
    Both,
}

/// Bytes of headers and frames around `bytes` of payload in packets of 256: of a completion, and of a write.
fn around(bytes: u64, of_each: u64) -> u64 {
    bytes + of_each * bytes.div_ceil(256)
}

/// Nanoseconds of a transfer on the link, a byte each: the slower of its directions.
fn link_ns(traffic: Traffic, bytes: u64) -> u64 {
    let requests = 24 * bytes.div_ceil(512);
    let (answers, writes) = (around(bytes, 20), around(bytes, 24));
    match traffic {
        Traffic::Reads => answers.max(requests),
        Traffic::Writes => writes,
        Traffic::Both => answers.max(writes + requests),
    }
}

/// When each of the transfers was done, in nanoseconds. Of writes only the last: a read behind them says so.
fn done_ns(memory_gbps: f64, traffic: Traffic, bytes: usize, transfers: usize) -> Vec<f64> {
    let mut machine = settings(1);
    machine.root.memory_rate = Rate::from_gbps(memory_gbps);
    let sim = Sim::new(Probe::with([]), machine, 1).expect("a machine that can be");
    let address = patterned(&sim, 4096).address();
    let reaction = |_| match traffic {
        Traffic::Reads => Reaction::Read { address, bytes: bytes as u32 },
        Traffic::Writes => Reaction::Write { address, data: vec![5; bytes] },
        Traffic::Both => Reaction::WriteAndRead { address, data: vec![5; bytes] },
    };
    let doorbells = if traffic == Traffic::Writes { transfers + 1 } else { CHAINS };
    let last = (traffic == Traffic::Writes).then_some(Reaction::Read { address, bytes: 64 });
    sim.with(|machine| machine.device().reactions.extend((0..transfers).map(reaction).chain(last)));
    let mut link = sim.link(CoreId(0));
    once(&sim, || (0..doorbells).for_each(|_| assert!(link.write_register(0, 1).expect("a register"))));
    assert_at_rest(&sim);
    sim.with(|machine| {
        let totals = machine.totals();
        let moved = (transfers * bytes) as u64;
        let read = if traffic == Traffic::Writes { 64 } else { moved };
        let written = if traffic == Traffic::Reads { 0 } else { moved };
        assert_eq!((totals.memory_read_bytes, totals.memory_written_bytes), (read, written));
        machine.device().completed.iter().map(|read| read.at_ps as f64 / 1000.0).collect()
    })
}

/// Nanoseconds of a transfer in a long run.
fn interval_ns(memory_gbps: f64, traffic: Traffic, bytes: usize) -> f64 {
    if traffic == Traffic::Writes {
        let [half, whole] =
            [TRANSFERS / 2, TRANSFERS].map(|count| done_ns(memory_gbps, traffic, bytes, count)[0]);
        return (whole - half) / (TRANSFERS / 2) as f64;
    }
    let done = done_ns(memory_gbps, traffic, bytes, TRANSFERS);
    (done[TRANSFERS - 1] - done[TRANSFERS / 2 - 1]) / (TRANSFERS / 2) as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_gets_through_is_the_least_of_link_and_memory(
        traffic in prop::sample::select(vec![Traffic::Reads, Traffic::Writes, Traffic::Both]),
        memory_gbps in 1u64..32,
        lines in 2u64..16,
    ) {
        let bytes = lines * 64;
        let uses = if traffic == Traffic::Both { 2 } else { 1 };
        let memory_ns = (uses * bytes * 8) as f64 / memory_gbps as f64;
        let expected = memory_ns.max(link_ns(traffic, bytes) as f64);
        let found = interval_ns(memory_gbps as f64, traffic, bytes as usize);
        prop_assert!((found / expected - 1.0).abs() < 0.01, "{found} ns, and {expected} expected");
    }
}

/// A limit that nothing reaches changes nothing, to the picosecond.
#[test]
fn memory_that_is_never_full_adds_no_time() {
    for traffic in [Traffic::Reads, Traffic::Writes, Traffic::Both] {
        assert_eq!(done_ns(0.0, traffic, 64, 1), done_ns(1000.0, traffic, 64, 1), "{traffic:?}");
    }
}

/// A core that loads what a device wrote fills lines from the same memory: alone it takes what memory takes, beside a device
/// that reads both take longer.
#[test]
fn cores_fill_lines_from_the_same_memory() {
    let load_ns = |memory_gbps: f64, reads: usize| {
        let mut machine = settings(1);
        machine.root.memory_rate = Rate::from_gbps(memory_gbps);
        machine.core.cached_line = ns(0);
        let sim = Sim::new(Probe::with([]), machine, 1).expect("a machine that can be");
        let mut memory = patterned(&sim, 4096);
        let address = memory.address();
        let write = Reaction::Write { address, data: vec![5; 4096] };
        let read = Reaction::Read { address, bytes: 4096 };
        sim.with(|machine| machine.device().reactions.extend([vec![write], vec![read; reads]].concat()));
        let mut link = sim.link(CoreId(0));
        once(&sim, || assert!(link.write_register(0, 1).expect("a register")));
        let (mut took_ns, mut turns) = (0, 0);
        sim.end_turn(CoreId(0), Next::Again);
        run(&sim, |core| {
            turns += 1;
            let clock = || sim.with(|machine| machine.core_clock(core));
            let before = clock();
            if turns == 1 {
                (0..reads).for_each(|_| assert!(link.write_register(0, 1).expect("a register")));
                // Then their requests are there, and not all of the answers.
                return Next::At(before + ns(800));
            }
            memory.copy_out(0, &mut [0; 4096]);
            took_ns = (clock() - before).0 / 1000;
            Next::Never
        });
        took_ns
    };
    // 64 lines of 60 ns; memory of 4 Gbit/s has 128 ns for each.
    assert_eq!(load_ns(0.0, 0), 64 * 60);
    assert_eq!(load_ns(100.0, 0), 64 * 60);
    assert_eq!(load_ns(4.0, 0), 64 * 128);
    assert_eq!(load_ns(0.0, 4), 64 * 60);
    assert!(load_ns(4.0, 4) > 64 * 128);
}
