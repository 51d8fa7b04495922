//! The names of nodes: each node's are in a registry of the domain.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_domain::{Domain, Entry, Holder, Kind, PutError, Registry, RegistryError};
use beeline_fabric::{Answer, Candidate, Found, MemberNumber, Name, NameKind, NameOp, NodeId, Slot};

/// The kind of an entry of a registry.
pub(crate) fn kind(of: NameKind) -> Kind {
    const SEGMENT: Kind = Kind::new(1).unwrap();
    const INTERRUPT: Kind = Kind::new(2).unwrap();
    const DATA_INTERRUPT: Kind = Kind::new(3).unwrap();
    match of {
        NameKind::Segment => SEGMENT,
        NameKind::Interrupt => INTERRUPT,
        NameKind::DataInterrupt => DATA_INTERRUPT,
    }
}

const REGISTRY_PREFIX: &str = "fabric.";

/// The name under which a member is offered to others.
pub(crate) fn offer_name(node: NodeId, member: MemberNumber) -> String {
    format!("fabric.{}.{:016x}", node.0, member.0)
}

/// The registry of a node's names.
pub(crate) fn registry_name(node: NodeId) -> String {
    format!("{REGISTRY_PREFIX}{}", node.0)
}

/// The node whose names are in a registry, if it is one of a fabric.
pub(crate) fn node_of(registry: &str) -> Option<NodeId> {
    let node = NodeId(registry.strip_prefix(REGISTRY_PREFIX)?.parse().ok()?);
    // A number is written in one way.
    (registry_name(node) == registry).then_some(node)
}

/// The registries of nodes, and this member's place in its own node's.
#[derive(Debug)]
pub(crate) struct Names {
    domain: Domain,
    registries: Mutex<BTreeMap<NodeId, Registry>>,
    /// Nothing once the member has left.
    holder: Mutex<Option<Arc<Holder>>>,
}

impl Names {
    pub(crate) fn join(domain: Domain, node: NodeId, member: NonZeroU64) -> Result<Self, RegistryError> {
        let names = Names { domain, registries: Mutex::default(), holder: Mutex::default() };
        let holder = names.registry(node)?.join(member)?;
        *lock(&names.holder) = Some(Arc::new(holder));
        Ok(names)
    }

    /// Takes every name of this member out.
    pub(crate) fn leave(&self) {
        let holder = lock(&self.holder).take();
        drop(holder);
    }

    /// Does what a member wants of names. Asks the kernel, and may wait for another process that writes the registry.
    pub(crate) fn carry_out(&self, op: NameOp) -> Answer {
        match op {
            NameOp::Put(name, slot) => self.put(entry(name, slot)),
            NameOp::Remove(name, slot) => self.remove(entry(name, slot)),
            NameOp::Find(node, name) => {
                self.find(node, name).map_or_else(|error| failed(&error), Answer::Found)
            }
        }
    }

    /// Whether anybody of a node lives.
    pub(crate) fn is_alive(&self, node: NodeId) -> Result<bool, RegistryError> {
        Ok(!self.registry(node)?.holders()?.is_empty())
    }

    fn put(&self, entry: Entry) -> Answer {
        let Some(holder) = self.holder() else { return Answer::Failed };
        match holder.put(entry, |_| false) {
            Ok(()) => Answer::Done,
            Err(PutError::Taken { .. }) => Answer::Taken,
            Err(PutError::Full) => Answer::Full,
            Err(PutError::Registry(error)) => failed(&error),
        }
    }

    fn remove(&self, entry: Entry) -> Answer {
        let Some(holder) = self.holder() else { return Answer::Failed };
        holder.remove(entry).map_or_else(|error| failed(&error), |_| Answer::Done)
    }

    fn find(&self, node: NodeId, name: Name) -> Result<Found, RegistryError> {
        let registry = self.registry(node)?;
        let found = registry.find(kind(name.kind), name.number)?;
        let candidates: Vec<_> = found.into_iter().map(candidate).collect();
        let is_node_alive = !candidates.is_empty() || !registry.holders()?.is_empty();
        Ok(Found { is_node_alive, candidates })
    }

    fn holder(&self) -> Option<Arc<Holder>> {
        lock(&self.holder).clone()
    }

    /// The registry of a node, opened once.
    fn registry(&self, node: NodeId) -> Result<Registry, RegistryError> {
        if let Some(registry) = lock(&self.registries).get(&node) {
            return Ok(registry.clone());
        }
        // Not under the lock: it makes a file. Whoever does so at the same time has the same registry.
        let registry = self.domain.registry(&registry_name(node))?;
        lock(&self.registries).insert(node, registry.clone());
        Ok(registry)
    }
}

fn entry(name: Name, slot: Slot) -> Entry {
    Entry { kind: kind(name.kind), id: name.number, slot: slot.0 }
}

fn candidate(found: beeline_domain::Found) -> Candidate {
    Candidate { member: MemberNumber(found.number.get()), slot: Slot(found.entry.slot) }
}

fn failed(error: &RegistryError) -> Answer {
    tracing::warn!(%error, "the names of the fabric are not to be had");
    Answer::Failed
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_of_a_node_is_found_by_its_name_alone() {
        assert_eq!(node_of(&registry_name(NodeId(65_535))), Some(NodeId(65_535)));
        for other in ["fabric.", "fabric.x", "fabric.04", "fabric.+4", "fabric.65536", "fabric.4.x", "names"]
        {
            assert_eq!(node_of(other), None, "{other}");
        }
    }
}
