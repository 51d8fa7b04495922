//! Nodes by their numbers and names.

use std::ops::RangeInclusive;

use beeline_fabric::{AdapterNumber, NodeId};

/// Numbers that nodes may have. Those above are of groups.
pub(super) const NODES: RangeInclusive<u16> = 1..=251;

/// A node of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedNode {
    pub node: NodeId,
    pub name: Option<String>,
    pub adapters: Vec<AdapterNumber>,
}

pub(super) fn node_id(number: u32) -> Option<NodeId> {
    u16::try_from(number).ok().filter(|node| NODES.contains(node)).map(NodeId)
}
