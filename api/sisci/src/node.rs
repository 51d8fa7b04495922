//! Nodes and adapters, as C gives their numbers.

use core::ffi::{CStr, c_char};

use beeline_fabric::{AdapterNumber, NodeId};
use beeline_fabric_process::NamedNode;
use beeline_ffi::{Handle, Out, Outcome, Text};

use crate::constants::{SCI_FLAG_BROADCAST, SCI_INFINITE_TIMEOUT};
use crate::edge::{Error, edge, edge_without_code, failure, refused};
use crate::errors;
use crate::flags::{Flags, check_broadcast};
use crate::handles::Object;
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::session;

/// `DIS_MAX_NSCIS`
const ADAPTERS: usize = 16;

/// `dis_nodeId_list_t`
pub(crate) type NodeIds = [u32; ADAPTERS];

/// The kind of every adapter here: memory of a host.
pub(crate) const SHARED_MEMORY: u32 = 1;

/// A time of C in milliseconds; `None` is for ever.
pub(crate) fn timeout_nanos(milliseconds: u32) -> Option<u64> {
    (milliseconds != SCI_INFINITE_TIMEOUT).then(|| u64::from(milliseconds) * 1_000_000)
}

/// # Errors
/// No node has the number.
pub(crate) fn node_id(number: u32) -> Outcome<NodeId> {
    match node_or_groups(number)? {
        NodeId::GROUPS => Err(failure(
            errors::NO_SUCH_NODEID,
            format!("nodeId = {number}; groups have this number, and no node"),
        )),
        node => Ok(node),
    }
}

/// As [`node_id`], where the number of groups is one, too, and is asked for by a flag.
pub(crate) fn node_or_group(number: u32, flags: u32) -> Outcome<NodeId> {
    let node = node_or_groups(number)?;
    let is_group = node == NodeId::GROUPS;
    check_broadcast(flags, is_group)?;
    if is_group && flags & SCI_FLAG_BROADCAST == 0 {
        let why = format!("nodeId = {number}; groups are connected to with SCI_FLAG_BROADCAST");
        return Err(failure(errors::NO_SUCH_NODEID, why));
    }
    Ok(node)
}

fn node_or_groups(number: u32) -> Outcome<NodeId> {
    let node = u16::try_from(number).ok().filter(|number| *number != 0).map(NodeId);
    node.ok_or_else(|| failure(errors::ILLEGAL_NODEID, format!("nodeId = {number}; no node has this number")))
}

pub(crate) fn local_node_id(adapter: u32, node: Out<'_, u32>, flags: u32, error: Error<'_>) {
    edge("SCIGetLocalNodeId", error, (), || {
        let config = session::config()?;
        node.check("nodeId")?;
        Flags::NONE.check(flags)?;
        let number = AdapterNumber::new(adapter).map_err(refused)?;
        if !config.fabric.adapters.contains(&number) {
            return Err(failure(
                errors::NO_SUCH_ADAPTERNO,
                format!("adapterNo = {adapter}; this node has none"),
            ));
        }
        node.put(config.fabric.node.0.into(), "nodeId")
    });
}

pub(crate) fn probe(
    descriptor: Handle<Descriptor>,
    adapter: u32,
    node: u32,
    flags: u32,
    error: Error<'_>,
) -> i32 {
    edge("SCIProbeNode", error, 0, || {
        let session = DESCRIPTORS.with(descriptor, |descriptor| Ok(descriptor.session().clone()))?;
        Flags::NONE.check(flags)?;
        let adapter = session.adapter(adapter)?;
        session.member().probe(node_id(node)?, adapter).map_err(refused)?;
        Ok(1)
    })
}

/// The node of a name in the configuration.
fn named(name: Text<'_>, flags: u32) -> Outcome<NamedNode> {
    let config = session::config()?;
    Flags::NONE.check(flags)?;
    let name = name.read("adaptername")?;
    let own = || NamedNode { node: config.fabric.node, name: None, adapters: config.fabric.adapters.clone() };
    let named = config.named.iter().find(|node| node.name.as_deref() == Some(name)).cloned();
    named.or_else(|| is_this_host(name).then(own)).ok_or_else(|| {
        failure(errors::NO_SUCH_NODEID, format!("no node is named {name:?} in the configuration"))
    })
}

/// Whether a name is that of the host, whole or up to its first dot.
fn is_this_host(name: &str) -> bool {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim_end();
    !host.is_empty() && (name == host || host.split_once('.').is_some_and(|(first, _)| name == first))
}

/// The number of a node, once for each of its adapters, and 0 behind the last.
fn each_adapter(node: &NamedNode) -> NodeIds {
    let mut numbers = [0; ADAPTERS];
    for (place, _) in numbers.iter_mut().zip(&node.adapters) {
        *place = node.node.0.into();
    }
    numbers
}

pub(crate) fn by_name(
    name: Text<'_>,
    nodes: Out<'_, NodeIds>,
    kind: Out<'_, u32>,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIGetNodeIdByAdapterName", error, (), || {
        let node = named(name, flags)?;
        nodes.put(each_adapter(&node), "nodeId")?;
        kind.put_if_wanted(SHARED_MEMORY);
        Ok(())
    });
}

pub(crate) fn info_by_name(
    name: Text<'_>,
    adapter: Out<'_, u32>,
    nodes: Out<'_, NodeIds>,
    kind: Out<'_, u32>,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIGetNodeInfoByAdapterName", error, (), || {
        let node = named(name, flags)?;
        nodes.put(each_adapter(&node), "nodeId")?;
        // One number: who passes the address of an `unsigned int` has room for no more.
        if let Some(first) = node.adapters.first() {
            adapter.put_if_wanted(first.number());
        }
        kind.put_if_wanted(SHARED_MEMORY);
        Ok(())
    });
}

fn name_of(kind: u32, name: &'static CStr) -> *const c_char {
    let unknown = c"unknown";
    let named = if kind == SHARED_MEMORY { name } else { unknown };
    edge_without_code("SCIGetAdapterTypeString", unknown.as_ptr(), || Ok(named.as_ptr()))
}

pub(crate) fn kind_text(kind: u32) -> *const c_char {
    name_of(kind, c"shared memory of one host")
}

pub(crate) fn family_text(kind: u32) -> *const c_char {
    name_of(kind, c"beeline")
}
