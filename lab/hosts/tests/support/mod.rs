//! Hosts and what their programs do.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use beeline_fabric::*;
use beeline_hosts::*;
use beeline_link_sim::cpu::Release;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts, HostsSettings};
use beeline_platforms::Platform;

pub const NODE_0: NodeId = NodeId(4);
pub const NODE_1: NodeId = NodeId(8);

/// No run of these tests is as long.
const END: Picoseconds = Picoseconds::from_ns(3_000_000_000);

pub fn settings() -> HostsSettings {
    hosts(&Platform::named("vpx3-1259-gen2x4-linux").unwrap(), &Shape::Pair).unwrap()
}

/// The same boards, with cores and root complexes that let write-combined stores leave in any order and in pieces.
pub fn disordered() -> HostsSettings {
    let mut settings = settings();
    settings.core.release = Release::Random;
    settings.core.split_per_mille = 300;
    settings.root.write_jitter = Picoseconds::from_ns(400);
    settings
}

/// Runs a program on each of two hosts.
pub fn two<T: Send>(
    first: impl FnOnce(Core, Wiring) -> T + Send,
    second: impl FnOnce(Core, Wiring) -> T + Send,
) -> (Vec<T>, Hosts) {
    two_of(settings(), |_| {}, first, second)
}

/// As [`two`], of other hosts, to which something happens.
pub fn two_of<T: Send>(
    settings: HostsSettings,
    happens: impl FnOnce(&mut Hosts),
    first: impl FnOnce(Core, Wiring) -> T + Send,
    second: impl FnOnce(Core, Wiring) -> T + Send,
) -> (Vec<T>, Hosts) {
    let mut hosts = Hosts::new(settings, 1).unwrap();
    let wiring = Wiring::new(&mut hosts, 2);
    happens(&mut hosts);
    let other = wiring.clone();
    run(
        hosts,
        vec![
            (HostId(0), Box::new(move |core| first(core, wiring))),
            (HostId(1), Box::new(move |core| second(core, other))),
        ],
    )
}

pub fn faults(hosts: &Hosts) -> u64 {
    hosts.faults(HostId(0)) + hosts.faults(HostId(1))
}

/// A member that has the other one's words.
pub fn joined(core: &Core, wiring: &Wiring) -> HostMember {
    let mut member = HostMember::new(core, wiring, 5);
    let other = if core.host() == HostId(0) { NODE_1 } else { NODE_0 };
    until(&mut member, |member| member.is_joined(other));
    member
}

/// Serves until something is so.
pub fn until(member: &mut HostMember, is_so: impl FnMut(&mut HostMember) -> bool) {
    let mut is_so = is_so;
    let mut was_so = false;
    member.serve(END, |member| {
        was_so = is_so(member);
        was_so
    });
    assert!(was_so, "it never comes");
}

/// Serves for so long.
pub fn rest(member: &mut HostMember, ns: u64) {
    let end = member.now() + Picoseconds::from_ns(ns);
    member.serve(end, |_| false);
}

pub fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

pub fn part(offset: u64, bytes: u64) -> Part {
    Part { offset, bytes }
}

pub fn create(id: u32, bytes: u64) -> Call {
    create_told(id, bytes, false)
}

/// A call that creates a segment, whose events are told as they come if it has a callback.
pub fn create_told(id: u32, bytes: u64, has_callback: bool) -> Call {
    let (is_auto, is_private, is_empty) = (false, false, false);
    Call::CreateSegment { id: SegmentId(id), is_auto, bytes, is_private, is_empty, has_callback }
}

pub fn remove(local: LocalSegment, is_forced: bool) -> Call {
    Call::RemoveSegment { local, is_forced }
}

pub fn unmap_local(local: LocalSegment) -> Call {
    Call::UnmapLocal(local)
}

pub fn unmap_remote(remote: RemoteSegment) -> Call {
    Call::UnmapRemote(remote)
}

pub fn disconnect(remote: RemoteSegment) -> Call {
    Call::Disconnect(remote)
}

/// A call that connects once.
pub fn connect(node: NodeId, id: u32, timeout_nanos: Option<u64>) -> Call {
    connect_by(adapter(), node, id, timeout_nanos)
}

fn connect_by(adapter: AdapterNumber, node: NodeId, id: u32, timeout_nanos: Option<u64>) -> Call {
    let (id, is_asynchronous, has_callback) = (SegmentId(id), false, false);
    Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback }
}

/// A segment that others connect to.
pub fn available(member: &mut HostMember, id: u32, bytes: u64) -> LocalSegment {
    available_by(adapter(), member, create(id, bytes))
}

/// A segment that others connect to by an adapter, or by each of them.
pub fn available_by(adapter: AdapterNumber, member: &mut HostMember, create: Call) -> LocalSegment {
    let Value::Local(local, _) = member.call(create).unwrap() else { panic!("no segment") };
    member.call(Call::Prepare(local, adapter)).unwrap();
    member.call(Call::SetAvailable(local, adapter)).unwrap();
    local
}

/// Connects as soon as it can.
pub fn connected(member: &mut HostMember, node: NodeId, id: u32) -> RemoteSegment {
    connected_by(adapter(), member, node, id)
}

/// As [`connected`], by an adapter or by any of them.
pub fn connected_by(adapter: AdapterNumber, member: &mut HostMember, node: NodeId, id: u32) -> RemoteSegment {
    match member.call(connect_by(adapter, node, id, None)) {
        Ok(Value::Remote(remote, _)) => remote,
        other => panic!("{other:?}"),
    }
}

/// Stores a block, and again until a sequence finds that nothing of it was lost, with a pause before each time. Returns how often it was
/// stored in vain.
pub fn store_block(member: &mut HostMember, map: &Mapped, offset: usize, block: &[u8], pause_ns: u64) -> u32 {
    let mut in_vain = 0;
    loop {
        rest(member, pause_ns);
        let (SequenceStatus::Ok, Some(start)) = map.start() else { continue };
        map.copy_in(offset, block);
        match map.check(&start) {
            SequenceStatus::Ok => return in_vain,
            SequenceStatus::Retriable | SequenceStatus::Pending => in_vain += 1,
            SequenceStatus::NotRetriable => panic!("the connection has ended"),
        }
    }
}

/// Bytes of which no two lines are alike.
pub fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    (0..bytes as u64)
        .map(|at| {
            (at.wrapping_mul(0x9e37_79b9) ^ (seed.wrapping_mul(0x85eb_ca6b) >> 3)) as u8 ^ (at >> 8) as u8
        })
        .collect()
}

pub type HostProgram<'a, T> = Box<dyn FnOnce(Core, Wiring) -> T + Send + 'a>;

/// Runs a program on each host, to which something happens.
pub fn each<T: Send>(
    settings: HostsSettings,
    happens: impl FnOnce(&mut Hosts),
    programs: Vec<HostProgram<'_, T>>,
) -> (Vec<T>, Hosts) {
    each_beside(settings, &[], happens, programs)
}

/// As [`each`], with devices of so many bytes, whose programs come last.
pub fn each_beside<T: Send>(
    settings: HostsSettings,
    devices: &[usize],
    happens: impl FnOnce(&mut Hosts),
    programs: Vec<HostProgram<'_, T>>,
) -> (Vec<T>, Hosts) {
    let mut hosts = Hosts::new(settings, 1).unwrap();
    let wiring = Wiring::with_devices(&mut hosts, (programs.len() - devices.len()) as u16, devices);
    happens(&mut hosts);
    let programs = (0..).zip(programs).map(|(host, program)| {
        let wiring = wiring.clone();
        let program: Program<'_, T> = (HostId(host), Box::new(move |core| program(core, wiring)));
        program
    });
    run(hosts, programs.collect())
}

/// A member that has the words of all others.
pub fn among(core: &Core, wiring: &Wiring, count: u16) -> HostMember {
    let mut member = HostMember::new(core, wiring, 5);
    let others: Vec<_> = (0..count).map(HostId).filter(|host| *host != core.host()).map(node_of).collect();
    until(&mut member, |member| others.iter().all(|node| member.is_joined(*node)));
    member
}

/// Serves until so many hosts have come here.
pub fn meet(member: &mut HostMember, met: &AtomicU32, count: u32) {
    met.fetch_add(1, Relaxed);
    until(member, |_| met.load(Relaxed) >= count);
}
