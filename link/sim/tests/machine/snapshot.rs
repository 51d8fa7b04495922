//! What a seed gives, to the picosecond. A change of a number here is a change of every figure: it is one that was meant, or
//! it is an error. How many events it took is no part of it.

use std::hash::Hasher;

use beeline_link_sim::cpu::{FenceAck, Release};
use beeline_link_sim::des::stream;
use beeline_link_sim::machine::{Further, MachineSettings};
use beeline_link_sim::pcie::{Advertised, Generation, Lanes};
use rand::RngExt;
use siphasher::sip::SipHasher24;

use crate::conservation::{Step, Trace, play};
use crate::probe::Reaction;
use crate::{bare_link, ns, settings};

/// A machine of each sort of rule.
fn machine(number: u64) -> MachineSettings {
    let mut machine = settings(1 + (number % 3) as u16);
    machine.core.release = [Release::Fifo, Release::OldestRandom, Release::Random][(number % 3) as usize];
    machine.core.fence_ack =
        [FenceAck::None, FenceAck::Uncore, FenceAck::RootComplex, FenceAck::Device][(number % 4) as usize];
    machine.core.split_per_mille = [0, 300][(number % 2) as usize];
    machine.core.timeout = ns([0, 200][(number / 2 % 2) as usize]);
    machine.root.merges = number.is_multiple_of(2);
    machine.root.write_places = [64, 2, 5][(number % 3) as usize];
    machine.link.generation = Generation::ALL[(number % 6) as usize];
    machine.link.lanes = Lanes::new([4, 16][(number / 3 % 2) as usize]).expect("a width that exists");
    machine.link.ordered_sets = true;
    if number >= 3 {
        machine.link.advertised = [[Advertised::finite(4, 16); 3]; 2];
        machine.further.push(Further { latency: ns(150), link: bare_link() });
    }
    machine
}

fn steps(seed: u64, core: usize) -> Vec<Step> {
    let mut random = stream(seed, &format!("steps {core}"));
    let step = |_| match random.random_range(0..20) {
        0 => Step::Doorbell,
        1 => Step::Read,
        2 => Step::Fence,
        3 => Step::Work(random.random_range(0..200_000)),
        4 => Step::Interrupt,
        5 | 6 => Step::EndTurn,
        7..=9 => Step::Words(random.random_range(1..=255)),
        _ => Step::Line,
    };
    (0..400).map(step).collect()
}

fn reactions(seed: u64) -> Vec<Reaction> {
    let mut random = stream(seed, "reactions");
    let reaction = |_| {
        let address = random.random_range(16_384..24_000);
        match random.random_range(0..6) {
            0 => Reaction::Read { address: address - 16_384, bytes: random.random_range(1..4096) },
            1 => Reaction::Write { address, data: vec![7; random.random_range(1..1500)] },
            2 => Reaction::Transmit { bytes: random.random_range(60..1514) },
            3 => Reaction::Interrupt,
            _ => Reaction::Nothing,
        }
    };
    (0..200).map(reaction).collect()
}

fn digest(trace: &Trace) -> u64 {
    let mut hasher = SipHasher24::new();
    for write in &trace.taken {
        hasher.write_u64(write.at_ps);
        hasher.write_u64(write.offset_bytes);
        hasher.write(&write.data);
    }
    for read in &trace.completed {
        hasher.write_u64(read.at_ps);
        hasher.write_u64(read.asked_at_ps);
        hasher.write(read.data.as_deref().unwrap_or_default());
    }
    hasher.write_u64(trace.frames);
    hasher.finish()
}

#[test]
fn seeds_give_what_they_gave() {
    let found: Vec<u64> = (0..6)
        .map(|number| {
            let steps: Vec<_> = (0..3).map(|core| steps(number, core)).collect();
            let trace = play(machine(number), &steps, &reactions(number), 5 * number as u32, number);
            digest(&trace.expect("everything arrives"))
        })
        .collect();
    assert_eq!(found, SNAPSHOT);
}

const SNAPSHOT: [u64; 6] = [
    14_089_764_581_160_283_878,
    17_334_086_771_530_105_288,
    9_578_003_040_175_406_861,
    5_210_525_829_044_983_052,
    9_459_840_124_267_496_965,
    3_923_390_882_820_504_065,
];
