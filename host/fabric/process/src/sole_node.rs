//! Members and segments of a fabric that has one node, for tests that look inside.

use std::path::Path;

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, Call, LocalSegment, NodeId, SegmentId, Value};

use crate::member::{FabricConfig, FabricMember};

pub(crate) const NODE: NodeId = NodeId(4);

pub(crate) fn adapter() -> AdapterNumber {
    AdapterNumber::new(0).unwrap()
}

/// A member of the node, of the fabric in a folder.
pub(crate) fn member(root: &Path) -> FabricMember {
    let domain = DomainConfig { root: Some(root.to_owned()), name: "fabric".to_owned() };
    let adapters = vec![adapter()];
    FabricMember::open(FabricConfig { domain, node: NODE, adapters, nodes: vec![NODE] }).unwrap()
}

pub(crate) fn segment(member: &FabricMember, id: SegmentId, bytes: u64) -> LocalSegment {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let Ok(Value::Local(local, _)) = member.call(create) else { panic!("no segment was made") };
    local
}

pub(crate) fn make_available(member: &FabricMember, local: LocalSegment) {
    member.call(Call::Prepare(local, adapter())).unwrap();
    member.call(Call::SetAvailable(local, adapter())).unwrap();
}
