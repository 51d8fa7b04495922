//! Where nothing overlaps, a machine's times are sums of its parameters, and where one part is slower than all others, its
//! rate is that of this part. Computed here by hand, in nanoseconds.

use beeline_contract_link::{DmaMemory, Doorbell, Link};
use beeline_contract_memory::StorePort;
use beeline_link_sim::cpu::FenceAck;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, Further, MachineSettings, Next, Sim};
use beeline_link_sim::pcie::{Generation, Kind, Lanes, Side};

use crate::probe::{Probe, Reaction};
use crate::{assert_at_rest, bare_link, ns, once, patterned, run, settings};

/// A line, a doorbell, a read request of the device or of a core, on the wire of `bare_link`: 1 ns a byte. Headers of
/// requests have 16 bytes, those of answers 12, and 8 are around each.
const LINE_NS: u64 = 64 + 24;
const WORD_NS: u64 = 8 + 24;
const READ_NS: u64 = 24;
const fn answer_ns(bytes: u64) -> u64 {
    bytes + 20
}
/// Between the ends of the link.
const FLIGHT_NS: u64 = 100;
/// Root complex on the way out; and the device until its logic acts.
const ROOT_NS: u64 = 120;
const INGRESS_NS: u64 = 30;

fn machine(change: impl FnOnce(&mut MachineSettings)) -> Sim<Probe> {
    let mut settings = settings(1);
    change(&mut settings);
    Sim::new(Probe::with([]), settings, 1).expect("a machine that can be")
}

/// Nanoseconds at which the writes were taken.
fn taken_ns(sim: &Sim<Probe>) -> Vec<u64> {
    sim.with(|machine| machine.device().taken.iter().map(|write| write.at_ps / 1000).collect())
}

fn store_lines(sim: &Sim<Probe>, lines: u32) -> Vec<u64> {
    let mut window = sim.link(CoreId(0)).window(0).expect("a window");
    once(sim, || (0..lines).for_each(|line| window.store_line(line, &[7; 8])));
    assert_at_rest(sim);
    taken_ns(sim)
}

#[test]
fn a_line_takes_core_root_wire_and_device() {
    let sim = machine(|_| {});
    assert_eq!(store_lines(&sim, 1), [1 + ROOT_NS + LINE_NS + FLIGHT_NS + INGRESS_NS]);
    // Behind a hop it takes the second link and the hop as well; 88 bytes of half a nanosecond.
    let further = bare_link();
    let further = beeline_link_sim::pcie::LinkSettings { generation: Generation::Gen2, ..further };
    let sim = machine(|settings| settings.further.push(Further { latency: ns(150), link: further }));
    let second_ns = 150 + LINE_NS / 2 + FLIGHT_NS;
    assert_eq!(store_lines(&sim, 1), [1 + ROOT_NS + LINE_NS + FLIGHT_NS + second_ns + INGRESS_NS]);
}

/// From one line to the next, by what is slowest.
#[test]
fn the_slowest_part_sets_the_pace() {
    let interval = |change: fn(&mut MachineSettings)| {
        let sim = machine(|settings| {
            // A wire that is faster than all of them: 88 bytes of less than 32 ps.
            settings.link.generation = Generation::Gen4;
            settings.link.lanes = Lanes::new(16).expect("a width that exists");
            change(settings);
        });
        let times = store_lines(&sim, 400);
        assert_eq!(times.len(), 400);
        (times[399] - times[99]) as f64 / 300.0
    };
    assert_eq!(interval(|s| s.core.store = ns(11)), 11.0, "a core that stores slowly");
    assert_eq!(interval(|s| s.core.drain_interval = ns(13)), 13.0, "a core whose lines leave slowly");
    assert_eq!(
        interval(|s| s.core.busy = ns(170) - ns(1)),
        17.0,
        "ten buffers, each busy for 169 and filled for 1"
    );
    assert_eq!(interval(|s| s.root.write_interval = ns(23)), 23.0, "a slow root complex");
    assert_eq!(interval(|s| s.device.ingress_interval = ns(29)), 29.0, "a slow device");
    assert_eq!(interval(|s| s.link = bare_link()), LINE_NS as f64, "a slow wire");
}

/// Stores of 8 bytes are words on the wire when they are uncached, and lines when they are combined.
#[test]
fn bytes_on_the_wire_are_those_of_the_packets() {
    let sim = machine(|settings| settings.core.store_bytes = 8);
    store_lines(&sim, 10);
    let mut link = sim.link(CoreId(0));
    once(&sim, || (0..10).for_each(|word| assert!(link.write_register(8 * word, 1).unwrap())));
    let carried = sim.with(|machine| *machine.links()[0].carried(Side::Upstream));
    let writes = carried.tlps[Kind::MemoryWrite as usize];
    assert_eq!(
        (writes.packets, writes.useful_bytes, writes.wire_bytes),
        (20, 720, 10 * LINE_NS + 10 * WORD_NS)
    );
}

/// How long a fence behind a line lasts, the line included: without end 1 + fence, then what it waits for.
#[test]
fn a_fenced_line_takes_the_way_of_its_acknowledgement() {
    for (fence_ack, expected) in [
        (FenceAck::None, 1 + 2 + 20),
        (FenceAck::Uncore, 1 + 40 + 20),
        // Out through the root complex, and word of it back through it.
        (FenceAck::RootComplex, 1 + ROOT_NS + ROOT_NS + 20),
        (FenceAck::Device, 1 + ROOT_NS + LINE_NS + FLIGHT_NS + FLIGHT_NS + ROOT_NS + 20),
    ] {
        let sim = machine(|settings| settings.core.fence_ack = fence_ack);
        let mut window = sim.link(CoreId(0)).window(0).expect("a window");
        let mut ends = Vec::new();
        let mut line = 0;
        sim.end_turn(CoreId(0), Next::Again);
        run(&sim, |core| {
            ends.push(sim.with(|machine| machine.core_clock(core)).as_ns());
            if line == 5 {
                return Next::Never;
            }
            window.store_line(line, &[7; 8]);
            window.fence();
            line += 1;
            Next::Again
        });
        let each: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(each, [expected; 5], "{fence_ack:?}");
    }
}

/// A message of n lines and a fence: each further line is one more at the pace of what comes before the acknowledgement.
#[test]
fn a_fenced_message_takes_a_line_more_for_each() {
    for (fence_ack, each, last) in [
        // A line leaves every 2; its buffer is free 40 later.
        (FenceAck::Uncore, 2, 1 + 40 + 20),
        // The wire takes one every 88; the last leaves when the one before has.
        (FenceAck::RootComplex, LINE_NS, 1 + 2 * ROOT_NS + 20),
        (FenceAck::Device, LINE_NS, 1 + 2 * ROOT_NS + LINE_NS + 2 * FLIGHT_NS + 20),
    ] {
        for lines in 1..=8 {
            let sim = machine(|settings| settings.core.fence_ack = fence_ack);
            let mut window = sim.link(CoreId(0)).window(0).expect("a window");
            once(&sim, || {
                (0..lines).for_each(|line| window.store_line(line, &[7; 8]));
                window.fence();
            });
            let clock = sim.with(|machine| machine.core_clock(CoreId(0)));
            assert_eq!(clock, ns(each * u64::from(lines - 1) + last), "{fence_ack:?}, {lines} lines");
        }
    }
}

#[test]
fn an_uncached_load_goes_there_and_back() {
    let sim = machine(|_| {});
    let mut link = sim.link(CoreId(0));
    once(&sim, || assert!(link.start_read(0).unwrap().is_some()));
    let there = ROOT_NS + READ_NS + FLIGHT_NS;
    let back = 55 + answer_ns(8) + FLIGHT_NS;
    assert_eq!(sim.with(|machine| machine.core_clock(CoreId(0))), ns(there + back + 51));
    assert_eq!(sim.with(|machine| machine.device().loads.clone()), [(there * 1000, 0)]);
}

/// From a store to the logic that has a frame: in the stores themselves, behind a doorbell, behind a doorbell and a
/// descriptor. The frame's first bit leaves `transmit_latency` later.
#[test]
fn each_stage_is_a_round_trip() {
    let doorbell = ROOT_NS + WORD_NS + FLIGHT_NS + INGRESS_NS;
    let read = |bytes: u64| 50 + READ_NS + FLIGHT_NS + 250 + answer_ns(bytes) + FLIGHT_NS + 25;
    let stages: [(u64, Vec<Reaction>, u64); 3] = [
        (0, vec![], 1 + ROOT_NS + LINE_NS + FLIGHT_NS + INGRESS_NS),
        (1, vec![Reaction::Read { address: 0, bytes: 64 }], doorbell + read(64)),
        (
            2,
            vec![Reaction::Read { address: 0, bytes: 16 }, Reaction::Read { address: 64, bytes: 64 }],
            doorbell + read(16) + read(64),
        ),
    ];
    for (reads, reactions, expected) in stages {
        let sim = machine(|_| {});
        let memory = patterned(&sim, 4096);
        let mut link = sim.link(CoreId(0));
        let mut window = link.window(0).expect("a window");
        let mut bell = link.doorbell(64).expect("a register");
        sim.with(|machine| {
            let reads = reactions.into_iter().map(|reaction| match reaction {
                Reaction::Read { address, bytes } => {
                    Reaction::Read { address: memory.address() + address, bytes }
                }
                other => other,
            });
            machine.device().reactions.extend(reads);
            machine.device().reactions.push_back(Reaction::Transmit { bytes: 64 });
        });
        let mut began = Picoseconds::ZERO;
        sim.end_turn(CoreId(0), Next::Again);
        let first_bit = loop {
            match sim.advance(Picoseconds::NEVER).expect("a frame leaves") {
                beeline_link_sim::machine::Pause::Turn(core) => {
                    began = sim.with(|machine| machine.core_clock(core));
                    if reads == 0 {
                        window.store_line(0, &[7; 8])
                    } else {
                        bell.ring(1)
                    }
                    sim.end_turn(core, Next::Never);
                }
                beeline_link_sim::machine::Pause::Frame => {
                    break sim.with(|machine| machine.next_transmitted()).expect("it has left").starts_at;
                }
            }
        };
        assert_eq!(first_bit - began, ns(expected + 15), "{reads} reads");
    }
}

/// A write of the device is there for programs after its engine, the wire and the memory; a poll finds it, and a load of
/// the line costs a miss.
#[test]
fn a_device_write_is_seen_when_it_is_visible() {
    let sim = machine(|_| {});
    let mut memory = patterned(&sim, 4096);
    let mut link = sim.link(CoreId(0));
    let write = Reaction::Write { address: memory.address(), data: vec![5; 64] };
    sim.with(|machine| machine.device().reactions.push_back(write));
    let mut times = Vec::new();
    sim.end_turn(CoreId(0), Next::Again);
    run(&sim, |core| {
        times.push(sim.with(|machine| machine.core_clock(core)));
        match times.len() {
            1 => {
                link.write_register(0, 1).unwrap();
                Next::Poll
            }
            _ => {
                assert_eq!(memory.load(0), 0x0505_0505_0505_0505);
                times.push(sim.with(|machine| machine.core_clock(core)));
                Next::Never
            }
        }
    });
    let doorbell = ROOT_NS + WORD_NS + FLIGHT_NS + INGRESS_NS;
    let visible = doorbell + 35 + LINE_NS + FLIGHT_NS + 90;
    // Polls are 2 ns apart, from the end of the store at 10.
    assert_eq!(times[1] - times[0], ns(10 + (visible - 10).next_multiple_of(2)));
    assert_eq!(times[2] - times[1], ns(60));
}
