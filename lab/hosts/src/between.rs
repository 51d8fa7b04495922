//! What programs of members do alike that are measured between hosts: a segment, and a connection to it.

use beeline_experiments::LabError;
use beeline_fabric::{AdapterNumber, Call, LocalSegment, NodeId, Part, RemoteSegment, SegmentId, Value};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::Region;

use crate::member::HostMember;

/// When all have joined, and polls and rounds begin: what was published before does not shift them.
pub(crate) const START: Picoseconds = Picoseconds::from_ns(10_000_000);
pub(crate) const SEGMENT: SegmentId = SegmentId(1);

pub(crate) fn no_hosts(error: &dyn std::fmt::Display) -> LabError {
    LabError::Traffic { what: error.to_string(), advice: "use another platform" }
}

/// A segment that others connect to.
pub(crate) fn provide(member: &mut HostMember, bytes: usize) -> (Region, usize) {
    let (local, memory) = create(member, bytes);
    make_available(member, local);
    memory
}

/// A segment that this host has mapped, and its memory.
pub(crate) fn create(member: &mut HostMember, bytes: usize) -> (LocalSegment, (Region, usize)) {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let bytes = bytes as u64;
    let create = Call::CreateSegment { id: SEGMENT, is_auto, bytes, is_private, is_empty, has_callback };
    let made = member.call(create);
    let Ok(Value::Local(local, _)) = made else { panic!("a segment of a new member: {made:?}") };
    let part = Part { offset: 0, bytes };
    (local, member.map_local(local, part).expect("a segment can be mapped by its member"))
}

pub(crate) fn make_available(member: &mut HostMember, local: LocalSegment) {
    let adapter = AdapterNumber::ANY;
    for call in [Call::Prepare(local, adapter), Call::SetAvailable(local, adapter)] {
        member.call(call).expect("a new segment can be made available");
    }
}

pub(crate) fn connect_to(member: &mut HostMember, node: NodeId, id: SegmentId) -> RemoteSegment {
    connect_by(member, node, id, AdapterNumber::new(0).expect("nodes have an adapter 0"))
}

pub(crate) fn connect_by(
    member: &mut HostMember,
    node: NodeId,
    id: SegmentId,
    adapter: AdapterNumber,
) -> RemoteSegment {
    let (is_asynchronous, has_callback, timeout_nanos) = (false, false, None);
    let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
    match member.call(connect) {
        Ok(Value::Remote(remote, _)) => remote,
        other => panic!("a connection without an end: {other:?}"),
    }
}
