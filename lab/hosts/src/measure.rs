//! Latencies between hosts, by programs of members: one connects, maps and stores, the others poll their memory and store back.
//!
//! Nothing is added to what was run: a call, a store, a poll and the load of a line that came cost what the platform file says, where the program
//! makes them.

use beeline_experiments::LabError;
use beeline_fabric::{NodeId, Part, RemoteSegment, SegmentId};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts, Region};
use beeline_platforms::Platform;

use crate::assembly::{Shape, hosts};
use crate::between::{SEGMENT, START, connect_to, make_available, no_hosts, provide};
use crate::mapped::Mapped;
use crate::member::HostMember;
use crate::programs::{Core, Program, run};
use crate::wiring::{Wiring, node_of};

/// Messages that are timed. Without anything random all are alike.
const ROUNDS: u64 = 8;
/// From one to the next: nothing of the one before is under way then.
const PAUSE: Picoseconds = Picoseconds::from_ns(20_000);
/// A line for each flag.
const FLAG_BYTES: usize = 64;
/// The first group of the central switch.
const GROUP: SegmentId = SegmentId(0);
/// Nobody takes as long to join.
const JOINED_BY: Picoseconds = Picoseconds::from_ns(1_000_000_000);

/// What software costs where a program sends.
#[derive(Clone, Copy)]
struct Costs {
    message: Picoseconds,
}

/// ns from the call that stores a word through the map of a segment until the poll of the segment's host has found it.
///
/// # Errors
/// The platform joins no hosts.
pub fn store_latency_ns(platform: &Platform, seed: u64) -> Result<f64, LabError> {
    Ok(between_two(platform, seed)?.0)
}

/// ns there and back between programs of two members, each of which polls a segment of its own host and stores into the other's.
///
/// # Errors
/// The platform joins no hosts.
pub fn ping_pong_ns(platform: &Platform, seed: u64) -> Result<f64, LabError> {
    Ok(between_two(platform, seed)?.1)
}

/// ns of one way of a ping-pong of so many hosts: half of the time from the call that stores a word through the map of a group, which
/// all others hold, to the poll that finds the last of their answers. The others answer by a store into a segment of the first, a line
/// for each.
///
/// # Errors
/// The platform has no central switch, or one of fewer ports.
pub fn multicast_ns(platform: &Platform, hosts_of_group: u16, seed: u64) -> Result<f64, LabError> {
    let groups = vec![(0..hosts_of_group).collect()];
    let settings = hosts(platform, &Shape::Switch { hosts: hosts_of_group, devices: 0, groups })?;
    let mut hosts = Hosts::new(settings, seed).map_err(|error| no_hosts(&error))?;
    let wiring = Wiring::new(&mut hosts, hosts_of_group);
    let costs = costs(platform);
    let others = usize::from(hosts_of_group) - 1;
    let mut programs: Vec<Program<'_, Vec<Picoseconds>>> = Vec::new();
    for host in (0..hosts_of_group).map(HostId) {
        let wiring = wiring.clone();
        let program: Box<dyn FnOnce(Core) -> Vec<Picoseconds> + Send> = if host == HostId(0) {
            Box::new(move |core| send_to_group(&core, &wiring, others, costs, seed))
        } else {
            Box::new(move |core| answer_group(&core, &wiring, costs, seed))
        };
        programs.push((host, program));
    }
    let (results, _) = run(hosts, programs);
    Ok(mean_ns(&results[0]) / 2.0)
}

fn costs(platform: &Platform) -> Costs {
    Costs { message: Picoseconds(platform.core.message_ns.value.picoseconds()) }
}

fn mean_ns(times: &[Picoseconds]) -> f64 {
    times.iter().map(|time| time.0).sum::<u64>() as f64 / 1000.0 / times.len() as f64
}

/// One way, and there and back.
fn between_two(platform: &Platform, seed: u64) -> Result<(f64, f64), LabError> {
    let settings = hosts(platform, &Shape::Pair)?;
    let mut hosts = Hosts::new(settings, seed).map_err(|error| no_hosts(&error))?;
    let wiring = Wiring::new(&mut hosts, 2);
    let costs = costs(platform);
    let other = wiring.clone();
    let programs: Vec<Program<'_, Vec<Picoseconds>>> = vec![
        (
            HostId(0),
            Box::new(move |core| {
                let side = Side::new(&core, &wiring, HostId(1), seed);
                let mut begun = Vec::new();
                let mut ended = Vec::new();
                for round in 1..=ROUNDS {
                    core.sleep_until(START + PAUSE * round);
                    begun.push(core.now());
                    side.send(&core, costs, round);
                    side.await_word(&core, round);
                    ended.push(core.now());
                }
                begun.extend(ended);
                begun
            }),
        ),
        (
            HostId(1),
            Box::new(move |core| {
                let side = Side::new(&core, &other, HostId(0), seed);
                let found = (1..=ROUNDS).map(|round| {
                    side.await_word(&core, round);
                    let at = core.now();
                    side.send(&core, costs, round);
                    at
                });
                found.collect()
            }),
        ),
    ];
    let (results, _) = run(hosts, programs);
    let (begun, ended) = results[0].split_at(ROUNDS as usize);
    let spans = |ends: &[Picoseconds]| {
        let spans: Vec<_> = begun.iter().zip(ends).map(|(begun, end)| end.since(*begun)).collect();
        mean_ns(&spans)
    };
    Ok((spans(&results[1]), spans(ended)))
}

/// A side of a ping-pong: a segment of its own, and the other's mapped.
struct Side {
    own: (Region, usize),
    map: Mapped,
}

impl Side {
    fn new(core: &Core, wiring: &Wiring, other: HostId, seed: u64) -> Side {
        let mut member = HostMember::new(core, wiring, seed);
        let own = provide(&mut member, 2 * FLAG_BYTES);
        let map = use_of(&mut member, other, 0, 2 * FLAG_BYTES);
        // In a line of its own: this side is connected, and the other may send.
        map.store_word(FLAG_BYTES, 1);
        map.flush();
        member.serve(JOINED_BY, |_| core.load(own.0, own.1 + FLAG_BYTES) == 1);
        core.sleep_until(START);
        Side { own, map }
    }

    fn send(&self, core: &Core, costs: Costs, value: u64) {
        core.work(costs.message);
        self.map.store_word(0, value);
        self.map.flush();
    }

    fn await_word(&self, core: &Core, value: u64) {
        core.poll(|| (core.load(self.own.0, self.own.1) == value).then_some(()));
    }
}

/// A part of the segment of another host, as soon as it is there.
fn use_of(member: &mut HostMember, host: HostId, offset: usize, bytes: usize) -> Mapped {
    let remote = connect_to(member, node_of(host), SEGMENT);
    let part = Part { offset: offset as u64, bytes: bytes as u64 };
    let map = |member: &mut HostMember, remote: RemoteSegment| member.map(remote, part);
    map(member, remote).expect("what was just connected to can be mapped")
}

/// Sends to a group, and waits for the answers of so many others.
fn send_to_group(core: &Core, wiring: &Wiring, others: usize, costs: Costs, seed: u64) -> Vec<Picoseconds> {
    let mut member = HostMember::new(core, wiring, seed);
    let (region, at) = provide(&mut member, others * FLAG_BYTES);
    let answer = |other: usize| core.load(region, at + other * FLAG_BYTES);
    const READY: u64 = u64::MAX;
    member.serve(JOINED_BY, |_| (0..others).all(|other| answer(other) == READY));
    let remote = connect_to(&mut member, NodeId::GROUPS, GROUP);
    let part = Part { offset: 0, bytes: FLAG_BYTES as u64 };
    let map = member.map_group(remote, GROUP, part).expect("what was just connected to can be mapped");
    assert_eq!(map.holders(), others, "all others hold the group");
    let mut round_trips = Vec::new();
    for round in 1..=ROUNDS {
        core.sleep_until(START + PAUSE * round);
        let begun = core.now();
        core.work(costs.message);
        map.store_word(0, round);
        map.flush();
        for other in 0..others {
            core.poll(|| (answer(other) == round).then_some(()));
        }
        round_trips.push(core.now().since(begun));
    }
    round_trips
}

/// Answers what comes by a group.
fn answer_group(core: &Core, wiring: &Wiring, costs: Costs, seed: u64) -> Vec<Picoseconds> {
    let mut member = HostMember::new(core, wiring, seed);
    let held = member.join_group(GROUP, FLAG_BYTES as u64).expect("the switch has the group");
    make_available(&mut member, held.local);
    let part = Part { offset: 0, bytes: FLAG_BYTES as u64 };
    let own = member.map_local(held.local, part).expect("a segment can be mapped by its member");
    let flag = usize::from(core.host().0 - 1) * FLAG_BYTES;
    let map = use_of(&mut member, HostId(0), flag, FLAG_BYTES);
    map.store_word(0, u64::MAX);
    map.flush();
    // Others connect to it meanwhile.
    member.serve(START, |_| false);
    let rounds = (1..=ROUNDS).map(|round| {
        core.poll(|| (core.load(own.0, own.1) == round).then_some(()));
        let at = core.now();
        core.work(costs.message);
        map.store_word(0, round);
        map.flush();
        at
    });
    rounds.collect()
}
