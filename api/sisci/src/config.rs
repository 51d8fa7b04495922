//! Which node this process is of.

use beeline_domain::DomainConfig;
use beeline_fabric::{AdapterNumber, NodeId};
use beeline_fabric_process::FabricConfig;
use beeline_ffi::Outcome;

use crate::edge::{failure, refused};
use crate::errors;

/// The environment variable that names the node.
const NODE_VARIABLE: &str = "BEELINE_NODE";
/// The node of a process that is told none.
const DEFAULT_NODE: u16 = 4;
/// Nodes that there may be. The next number means groups of nodes.
const NODES: core::ops::RangeInclusive<u16> = 1..=251;

/// The fabric of this process, as the environment says.
pub(crate) fn read() -> Outcome<FabricConfig> {
    let node = match std::env::var_os(NODE_VARIABLE) {
        None => DEFAULT_NODE,
        Some(text) => text.to_str().and_then(number).ok_or_else(|| {
            let why = format!("{NODE_VARIABLE} is {}; nodes have numbers from 1 to 251", text.display());
            failure(errors::SYSTEM, why)
        })?,
    };
    Ok(FabricConfig {
        domain: DomainConfig::default(),
        node: NodeId(node),
        adapters: vec![AdapterNumber::new(0).map_err(refused)?],
        nodes: NODES.map(NodeId).collect(),
    })
}

fn number(text: &str) -> Option<u16> {
    text.trim().parse().ok().filter(|node| NODES.contains(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_a_number_from_1_to_251() {
        assert_eq!(["1", " 8\n", "251"].map(number), [Some(1), Some(8), Some(251)]);
        assert_eq!(["0", "252", "-4", "0x4", "", "4.0"].map(number), [None; 6]);
    }
}
