//! Frames arrive unchanged and in order, whatever order their stores arrive in: by the rules of the machine's
//! write-combining buffers, by those of the adversary, and by both.

mod machine;

use beeline_driver::Choice;
use beeline_experiments::{NicShape, Station, model_nic};
use beeline_link_sim::cpu::{CoreSettings, Release};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, DeviceId, Next, Pause, Sim};
use beeline_spec::Interface;
use beeline_window::Sent;
use machine::{ns, settings_for};

const FRAMES: u64 = 400;
/// Longer than any frame takes.
const TIMEOUT: Picoseconds = ns(50_000);

/// A frame of its own: its size and all of its bytes follow from its number. `kpio` sends whole words.
fn frame(number: u64) -> Vec<u8> {
    let length = 64 + (number * 37 % 182) as usize * 8;
    (0..length).map(|at| (number as usize * 7 + at * 13 + at / 256) as u8).collect()
}

/// What came of the frames that one queue sent.
#[derive(Debug, PartialEq, Eq)]
enum Arrived {
    /// All messages, in order.
    All,
    /// This one never came, or another one in its place.
    Not(u64),
}

/// Sends frames and looks at each that leaves.
fn send(choice: Choice, change: impl FnOnce(&mut CoreSettings), seed: u64) -> Arrived {
    let mut shape = NicShape::for_cores(1);
    // A line that anything may pass can be late by more than there are buffers: one in ten each time is 64 times in a
    // row now and then, and 256 times never.
    shape.config.span_lines = 256;
    let mut machine = settings_for(choice.interface, &shape, 1);
    change(&mut machine.core);
    let nic = model_nic(&shape).expect("sizes of a NIC");
    let sim = Sim::new(nic, machine, seed).expect("a machine");
    let mut station = Station::new(sim.clone()).expect("the port comes up");
    let mut half = station.open(&choice, DeviceId(0), 0).expect("the queue opens");
    sim.with(|machine| machine.keep_frames());
    let core = CoreId(0);
    sim.end_turn(core, Next::Again);
    let (mut sent, mut left, mut last) = (0, 0, sim.with(|machine| machine.now()));
    while left < FRAMES {
        match sim.advance(Picoseconds::NEVER).expect("a core that polls goes on for ever") {
            Pause::Frame => {
                while let Some(transmitted) = sim.with(|machine| machine.next_transmitted()) {
                    if transmitted.frame != frame(left) {
                        return Arrived::Not(left);
                    }
                    (left, last) = (left + 1, transmitted.ends_at);
                }
            }
            Pause::Turn(_) => {
                if sim.with(|machine| machine.now()).since(last) > TIMEOUT {
                    return Arrived::Not(left);
                }
                // A queue that failed says so; what it did not send never comes.
                let taken = if sent < FRAMES { half.try_send(&frame(sent)) } else { Ok(Sent::Full) };
                let Ok(taken) = taken else { return Arrived::Not(left) };
                if taken == Sent::Full {
                    if half.progress().is_err() {
                        return Arrived::Not(left);
                    }
                    // Whoever holds stores back lets go of them only when it is asked to: no waiting for a change.
                    sim.work(core, ns(20));
                } else {
                    sent += 1;
                }
                sim.end_turn(core, Next::Again);
            }
        }
    }
    Arrived::All
}

#[test]
fn disorder_of_the_buffers_is_borne() {
    // Lines of the one are in order or damaged; those of the other go through no buffer.
    let others = [Interface::Kpio, Interface::Coherent];
    for interface in Interface::ALL.into_iter().filter(|interface| !others.contains(interface)) {
        for release in [Release::OldestRandom, Release::Random] {
            for (split_per_mille, timeout_ns) in [(0, 0), (300, 0), (0, 50), (1000, 50)] {
                for seed in 1..4 {
                    let choice = Choice::of(interface, 7);
                    let change = |core: &mut CoreSettings| {
                        core.release = release;
                        core.split_per_mille = split_per_mille;
                        core.timeout = ns(timeout_ns);
                    };
                    let what =
                        format!("{interface:?}, {release:?}, split {split_per_mille}, {timeout_ns} ns");
                    assert_eq!(send(choice, change, seed), Arrived::All, "{what}, seed {seed}");
                }
            }
        }
    }
}

/// The adversary uses up all that an interface declares to bear, so that what stands behind it must keep the order: one
/// buffer, which lets go of a part of a line by itself.
#[test]
fn the_adversary_is_borne_by_every_interface() {
    for interface in Interface::ALL {
        for seed in 1..6 {
            let choice = Choice { adversary: Some(seed), ..Choice::of(interface, 7) };
            let change = |core: &mut CoreSettings| {
                core.buffers = 1;
                core.timeout = ns(50);
            };
            assert_eq!(send(choice, change, seed), Arrived::All, "{interface:?}, seed {seed}");
        }
    }
}

/// `docs/interfaces.md`: `kpio` needs whole lines in order. It has them from buffers that keep their order, and loses
/// frames without them. An interface with entries fences behind each, whose bytes may come in any order.
#[test]
fn kpio_needs_lines_in_order() {
    let kpio = |change: fn(&mut CoreSettings)| send(Choice::of(Interface::Kpio, 7), change, 1);
    assert_eq!(kpio(|_| {}), Arrived::All);
    assert!(matches!(kpio(|core| core.release = Release::Random), Arrived::Not(_)));
    assert!(matches!(kpio(|core| core.release = Release::OldestRandom), Arrived::Not(_)));
}
