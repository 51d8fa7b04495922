//! Memory that everybody shares: what gets through is the least of the link's rate and of memory's, in closed form, and all
//! who use it together get no more than its rate.

use beeline_contract_link::{DmaMemory, Link};
use beeline_link_sim::device::Rate;
use beeline_link_sim::machine::{CoreId, MachineSettings, Next, Sim};
use beeline_link_sim::pcie::{Advertised, Class, Side};
use proptest::prelude::*;

use crate::probe::{Probe, Reaction};
use crate::{assert_at_rest, ns, once, patterned, run, settings};

// Counted is the second half. Reads and writes that take turns do not end it where they began it: less than two thirds of
// a transfer of 200, of every combination that is tried.
const TRANSFERS: usize = 400;
/// Transfers under way: enough for any latency here.
const CHAINS: usize = 32;

/// An address that is no memory.
const NOWHERE: u64 = 1 << 60;
/// Bytes of a packet of the largest payload.
const PACKET_BYTES: usize = 256;

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

/// When each of the transfers was done, in nanoseconds. Of writes only the last: a read behind them says so, of what is no
/// memory, so that it waits for them and not for a turn of its own.
fn done_ns(memory_gbps: f64, traffic: Traffic, bytes: usize, transfers: usize) -> Vec<f64> {
    let change = |machine: &mut MachineSettings| machine.root.memory_rate = Rate::from_gbps(memory_gbps);
    done_with_ns(change, traffic, bytes, transfers)
}

/// The same of a machine that is changed otherwise.
fn done_with_ns(
    change: impl Fn(&mut MachineSettings),
    traffic: Traffic,
    bytes: usize,
    transfers: usize,
) -> Vec<f64> {
    let mut machine = settings(1);
    change(&mut machine);
    let sim = Sim::new(Probe::with([]), machine, 1).expect("a machine that can be");
    let address = patterned(&sim, 4096).address();
    let reaction = |_| match traffic {
        Traffic::Reads => Reaction::Read { address, bytes: bytes as u32 },
        Traffic::Writes => Reaction::Write { address, data: vec![5; bytes] },
        Traffic::Both => Reaction::WriteAndRead { address, data: vec![5; bytes] },
    };
    let doorbells = if traffic == Traffic::Writes { transfers + 1 } else { CHAINS };
    let last = (traffic == Traffic::Writes).then_some(Reaction::Read { address: NOWHERE, bytes: 64 });
    sim.with(|machine| machine.device().reactions.extend((0..transfers).map(reaction).chain(last)));
    let mut link = sim.link(CoreId(0));
    once(&sim, || (0..doorbells).for_each(|_| assert!(link.write_register(0, 1).expect("a register"))));
    assert_at_rest(&sim);
    sim.with(|machine| {
        let totals = machine.totals();
        let moved = (transfers * bytes) as u64;
        let read = if traffic == Traffic::Writes { 0 } else { moved };
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
        prop_assert!((found / expected - 1.0).abs() < 0.003, "{found} ns, and {expected} expected");
    }
}

/// Nanoseconds of a write of a packet in a long run, when the root complex has room for so many of them.
fn write_ns(memory_gbps: f64, packets: u32, visible_ns: u64) -> f64 {
    let change = |machine: &mut MachineSettings| {
        let posted = &mut machine.link.advertised[Side::Upstream as usize][Class::Posted as usize];
        *posted = Advertised::finite(packets, packets * PACKET_BYTES as u32 / 16);
        machine.root.write_visible = ns(visible_ns);
        machine.root.memory_rate = Rate::from_gbps(memory_gbps);
    };
    let [half, whole] =
        [TRANSFERS / 2, TRANSFERS].map(|count| done_with_ns(change, Traffic::Writes, PACKET_BYTES, count)[0]);
    (whole - half) / (TRANSFERS / 2) as f64
}

/// A write holds its credits until it is seen, wherever it waits. So what gets through is the least of memory's rate and of
/// what room for so many packets lets through while memory is never full, and with one packet the time in which a write
/// is seen counts in full.
#[test]
fn writes_that_wait_for_memory_hold_their_credits() {
    for packets in [1, 2, 4, 16] {
        let unlimited = write_ns(0.0, packets, 90);
        for memory_gbps in [8, 4, 2, 1] {
            let memory_ns = (PACKET_BYTES * 8) as f64 / f64::from(memory_gbps);
            let found = write_ns(memory_gbps.into(), packets, 90);
            let expected = memory_ns.max(unlimited);
            assert!(
                (found - expected).abs() < 0.5,
                "{packets} at {memory_gbps} Gbit/s: {found}, not {expected} ns"
            );
        }
    }
    // The wire is the limit of many, the way there and back of one. Acknowledgements take a nanosecond here and there.
    assert!((write_ns(0.0, 16, 90) - link_ns(Traffic::Writes, PACKET_BYTES as u64) as f64).abs() < 0.5);
    let longer = write_ns(0.0, 1, 290) - write_ns(0.0, 1, 90);
    assert!((longer - 200.0).abs() < 2.0, "{longer} ns");
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
