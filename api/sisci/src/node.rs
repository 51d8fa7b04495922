//! Numbers of nodes and times, as C gives them.

use beeline_fabric::{AdapterNumber, NodeId};
use beeline_ffi::{Out, Outcome};

use crate::constants::SCI_INFINITE_TIMEOUT;
use crate::edge::{Error, edge, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::session;

/// A time of C in milliseconds; `None` is for ever.
pub(crate) fn timeout_nanos(milliseconds: u32) -> Option<u64> {
    (milliseconds != SCI_INFINITE_TIMEOUT).then(|| u64::from(milliseconds) * 1_000_000)
}

/// # Errors
/// No node has the number.
pub(crate) fn node_id(number: u32) -> Outcome<NodeId> {
    let node = u16::try_from(number).ok().filter(|number| *number != 0).map(NodeId);
    node.ok_or_else(|| failure(errors::ILLEGAL_NODEID, format!("nodeId = {number}; no node has this number")))
}

pub(crate) fn local_node_id(adapter: u32, node: Out<'_, u32>, flags: u32, error: Error<'_>) {
    edge("SCIGetLocalNodeId", error, (), || {
        node.check("nodeId")?;
        Flags::NONE.check(flags)?;
        let config = session::config()?;
        let number = AdapterNumber::new(adapter).map_err(refused)?;
        if !config.adapters.contains(&number) {
            return Err(failure(
                errors::NO_SUCH_ADAPTERNO,
                format!("adapterNo = {adapter}; this node has none"),
            ));
        }
        node.put(config.node.0.into(), "nodeId")
    });
}
