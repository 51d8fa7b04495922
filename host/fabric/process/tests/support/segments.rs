//! Calls that most tests make.

use std::sync::Arc;

use beeline_fabric::{AdapterNumber, Call, LocalSegment, NodeId, Refusal, RemoteSegment, SegmentId, Value};
use beeline_fabric_process::FabricMember;
use beeline_mmio::{MemoryOptions, SharedMemory};

fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// Makes a segment that others may connect to.
pub fn available(member: &FabricMember, id: u32, bytes: u64) -> LocalSegment {
    available_telling(member, id, bytes, false)
}

/// As [`available`], perhaps with a callback.
pub fn available_telling(member: &FabricMember, id: u32, bytes: u64, has_callback: bool) -> LocalSegment {
    let (is_auto, is_private, is_empty) = (false, false, false);
    let id = SegmentId(id);
    let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let Value::Local(local, _) = member.call(create).unwrap() else { panic!("no segment was made") };
    member.call(Call::Prepare(local, adapter())).unwrap();
    member.call(Call::SetAvailable(local, adapter())).unwrap();
    local
}

/// Makes a segment that has its memory alone.
pub fn create_own(member: &FabricMember, id: u32, bytes: usize) -> Result<LocalSegment, Refusal> {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, true, false);
    let id = SegmentId(id);
    let create = Call::CreateSegment { id, is_auto, bytes: 0, is_private, is_empty, has_callback };
    let Value::Local(local, _) = member.call(create)? else { panic!("no segment was made") };
    let memory = SharedMemory::create("beeline-test", bytes, MemoryOptions::default()).unwrap();
    member.register(local, Arc::new(memory))?;
    Ok(local)
}

/// Connects to a segment of a node, at once or not at all.
pub fn connect(member: &FabricMember, node: u16, id: u32) -> Result<RemoteSegment, Refusal> {
    connect_within(member, node, id, 0)
}

/// Connects to a segment of a node as soon as it is there and its member responds.
pub fn connect_within(
    member: &FabricMember,
    node: u16,
    id: u32,
    timeout_nanos: u64,
) -> Result<RemoteSegment, Refusal> {
    let (is_asynchronous, has_callback) = (false, false);
    let (node, id, timeout_nanos) = (NodeId(node), SegmentId(id), Some(timeout_nanos));
    let connect =
        Call::Connect { node, id, adapter: adapter(), timeout_nanos, is_asynchronous, has_callback };
    match member.call(connect)? {
        Value::Remote(remote, _) => Ok(remote),
        other => panic!("{other:?} is no connection"),
    }
}

/// Removes a segment as soon as nobody is connected to it. Where others connect over and over that is never, so nobody may after a while.
pub fn remove(member: &FabricMember, local: LocalSegment) {
    for attempt in 0.. {
        if attempt == 20 {
            let adapter = adapter();
            member.call(Call::SetUnavailable { local, adapter, is_forced: false }).unwrap();
        }
        match member.call(Call::RemoveSegment { local, is_forced: false }) {
            Ok(_) => return,
            Err(Refusal::Busy) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    }
}
