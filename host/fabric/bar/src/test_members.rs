//! A memory, and members of it, for tests of the parts.

use std::fs::File;

use beeline_fabric::{AdapterNumber, NodeId};
use beeline_mmio::OnLoss;

use crate::{BarConfig, BarMember, BarMemory};

/// A file that nobody has used, as long as the folder is there.
pub(crate) fn memory(bytes: u64) -> (tempfile::TempDir, BarMemory) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("bar");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    (dir, BarMemory::File(path))
}

/// One of two members, of node 4.
pub(crate) fn member(memory: &BarMemory, slot: Option<usize>) -> BarMember {
    member_of(memory, slot, 2)
}

/// One of so many members, of node 4.
pub(crate) fn member_of(memory: &BarMemory, slot: Option<usize>, members: usize) -> BarMember {
    let (node, adapter, memory) = (NodeId(4), AdapterNumber::new(0).unwrap(), memory.clone());
    let (nodes, on_loss) = (vec![node], OnLoss::Fatal);
    BarMember::open(BarConfig { memory, members, slot, node, adapter, nodes, on_loss }).unwrap()
}
