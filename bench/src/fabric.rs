//! What benches of a fabric share: a member of each of two nodes, the owner's segment, and the user's connection to it.

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, Call, LocalSegment, NodeId, RemoteSegment, SegmentId, Value};
use beeline_fabric_process::{FabricConfig, FabricMember};
use beeline_session::with_causes;

use crate::BenchError;

/// The node whose resources are used.
pub(crate) const OWNER: NodeId = NodeId(4);
/// The node that uses them.
pub(crate) const USER: NodeId = NodeId(8);
/// The segment of each node.
const SEGMENT: SegmentId = SegmentId(7);

pub(crate) fn broken(error: &dyn std::error::Error) -> BenchError {
    BenchError::Fabric(with_causes(error))
}

/// The one adapter of each node.
pub(crate) fn adapter() -> Result<AdapterNumber, BenchError> {
    AdapterNumber::new(0).map_err(|error| broken(&error))
}

/// Joins as a member of one of the two nodes.
pub(crate) fn member(domain: DomainConfig, node: NodeId) -> Result<FabricMember, BenchError> {
    let (adapters, nodes) = (vec![adapter()?], vec![OWNER, USER]);
    FabricMember::open(FabricConfig { domain, node, adapters, nodes }).map_err(|error| broken(&error))
}

pub(crate) fn call(member: &FabricMember, call: Call) -> Result<Value, BenchError> {
    member.call(call).map_err(|error| broken(&error))
}

/// Makes the segment of the member's node, and makes it available.
pub(crate) fn make_segment(member: &FabricMember, bytes: usize) -> Result<LocalSegment, BenchError> {
    let (id, bytes) = (SEGMENT, bytes as u64);
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let Value::Local(local, _) = call(member, create)? else {
        return Err(BenchError::Fabric("no segment was made".to_owned()));
    };
    call(member, Call::Prepare(local, adapter()?))?;
    call(member, Call::SetAvailable(local, adapter()?))?;
    Ok(local)
}

/// Connects to the owner's segment.
pub(crate) fn connect(member: &FabricMember) -> Result<RemoteSegment, BenchError> {
    let (node, id, adapter, timeout_nanos) = (OWNER, SEGMENT, adapter()?, Some(0));
    let (is_asynchronous, has_callback) = (false, false);
    let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
    match call(member, connect)? {
        Value::Remote(remote, _) => Ok(remote),
        other => Err(BenchError::Fabric(format!("{other:?} is no connection"))),
    }
}
