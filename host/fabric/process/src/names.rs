//! The names of nodes: each node's are in a registry of the domain.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_domain::{Domain, Entry, Holder, Kind, PutError, Registry, RegistryError};
use beeline_fabric::{
    Answer, Candidate, Found, InterruptNumber, MemberNumber, Name, NameKind, NameOp, NodeId, Slot,
};

use crate::error::OpenError;
use crate::foreign::Foreign;
use crate::users::OtherUsers;

/// The kind of an entry of a registry.
pub(crate) fn kind(of: NameKind) -> Kind {
    const SEGMENT: Kind = Kind::new(1).unwrap();
    const INTERRUPT: Kind = Kind::new(2).unwrap();
    const DATA_INTERRUPT: Kind = Kind::new(3).unwrap();
    const GROUP: Kind = Kind::new(4).unwrap();
    const SHARED_INTERRUPT: Kind = Kind::new(5).unwrap();
    const GROUP_INTERRUPT: Kind = Kind::new(6).unwrap();
    match of {
        NameKind::Segment => SEGMENT,
        NameKind::Interrupt => INTERRUPT,
        NameKind::DataInterrupt => DATA_INTERRUPT,
        NameKind::Group => GROUP,
        NameKind::SharedInterrupt => SHARED_INTERRUPT,
        NameKind::GroupInterrupt => GROUP_INTERRUPT,
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

/// The registries of nodes, and this member's place in its own node's. That of the groups of the fabric is one more, where this member has
/// a place from its first group on.
#[derive(Debug)]
pub(crate) struct Names {
    domain: Domain,
    /// The domains of other users that have nodes.
    foreign: BTreeMap<NodeId, Foreign>,
    node: NodeId,
    number: NonZeroU64,
    registries: Mutex<BTreeMap<NodeId, Registry>>,
    /// By whose names they are; nothing once the member has left.
    holders: Mutex<Option<BTreeMap<NodeId, Arc<Holder>>>>,
    /// Has who takes a place, which takes a while and is done once.
    joining: Mutex<()>,
    /// Names that could not be taken out when what they name went, because another process that writes there stood still. They hinder
    /// nobody but who wants the same number, who tries again.
    left: Mutex<Vec<(Name, Slot)>>,
}

impl Names {
    #[cfg(test)]
    fn join(domain: Domain, node: NodeId, member: NonZeroU64) -> Result<Self, OpenError> {
        Names::join_with(domain, node, member, &OtherUsers::default())
    }

    pub(crate) fn join_with(
        domain: Domain,
        node: NodeId,
        member: NonZeroU64,
        users: &OtherUsers,
    ) -> Result<Self, OpenError> {
        let foreign = users.nodes.iter().map(|of| Ok((of.node, Foreign::new(of)?)));
        let foreign = foreign.collect::<Result<_, OpenError>>()?;
        let holders = Mutex::new(Some(BTreeMap::new()));
        let (registries, joining, left) = (Mutex::default(), Mutex::default(), Mutex::default());
        let names = Names { domain, foreign, node, number: member, registries, holders, joining, left };
        names.holder(node)?;
        if !users.admitted.is_empty() {
            names.registry(node)?.let_others_read()?;
        }
        Ok(names)
    }

    /// Takes every name of this member out.
    pub(crate) fn leave(&self) {
        let holders = lock(&self.holders).take();
        drop(holders);
    }

    /// Does what a member wants of names. Asks the kernel, and may wait for another process that writes the registry. `has_open` says
    /// whether a holder still has the segment that this member has the memory of.
    pub(crate) fn carry_out(
        &self,
        op: NameOp,
        has_open: impl FnOnce(beeline_fabric::Holder) -> bool,
    ) -> Answer {
        let done = match op {
            NameOp::Put(name, slot) => {
                self.put_alone(name, slot, |holder, entry| holder.put(entry, |_| name.kind.is_of_several()))
            }
            NameOp::PutFirst(name, slot) => {
                self.put_alone(name, slot, |holder, entry| holder.put(entry, |_| false))
            }
            NameOp::PutBeside(name, slot, of) => {
                let asked = Candidate { member: of.member, slot: of.lent.slot };
                self.put_beside(name, slot, asked, || has_open(of))
            }
            NameOp::Remove(name, slot) => self.remove(name, slot),
            NameOp::Find(node, name) => self.find(node, name).map(Answer::Found),
        };
        done.unwrap_or_else(|error| failed(&error))
    }

    /// Puts a name beside those of others. Whoever lives and has the name has this member's memory if the one who was asked for it still has it.
    /// The decision is made while nobody else puts the name or takes it out.
    fn put_beside(
        &self,
        name: Name,
        slot: Slot,
        asked: Candidate,
        has_open: impl FnOnce() -> bool,
    ) -> Result<Answer, RegistryError> {
        let has_name = |all: &[beeline_domain::Found]| all.iter().any(|found| candidate(*found) == asked);
        self.put(name, slot, |holder, entry| {
            holder.put_beside(entry, |all| all.is_empty() || has_name(all) && has_open())
        })
    }

    /// Whether anybody of a node lives.
    pub(crate) fn is_alive(&self, node: NodeId) -> Result<bool, RegistryError> {
        match self.existing(node)? {
            Some(registry) => Ok(!registry.holders()?.is_empty()),
            None => Ok(false),
        }
    }

    /// Who has one of several interrupts of a number, of a node or of the fabric.
    pub(crate) fn several(
        &self,
        node: NodeId,
        number: InterruptNumber,
    ) -> Result<Vec<Candidate>, RegistryError> {
        let Some(registry) = self.existing(node)? else { return Ok(Vec::new()) };
        let name = Name::one_of_several(node, number);
        let found = registry.find(kind(name.kind), name.number)?;
        Ok(found.into_iter().map(candidate).collect())
    }

    /// Puts a name, and takes it out again where an interrupt of the other kind has the number, alone or one of several. Both have put
    /// theirs before they look: of two that come at the same time at least one sees the other, and perhaps neither gets the number.
    fn put_alone(
        &self,
        name: Name,
        slot: Slot,
        put: impl FnOnce(&Holder, Entry) -> Result<(), PutError>,
    ) -> Result<Answer, RegistryError> {
        let answer = self.put(name, slot, put)?;
        let other = match name.kind {
            NameKind::Interrupt => NameKind::SharedInterrupt,
            NameKind::SharedInterrupt => NameKind::Interrupt,
            NameKind::Segment | NameKind::Group | NameKind::DataInterrupt | NameKind::GroupInterrupt => {
                return Ok(answer);
            }
        };
        if answer != Answer::Done {
            return Ok(answer);
        }
        let found = self.registry(self.node).and_then(|registry| registry.find(kind(other), name.number));
        if found.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(Answer::Done);
        }
        self.remove(name, slot)?;
        found.map(|_| Answer::Taken)
    }

    fn put(
        &self,
        name: Name,
        slot: Slot,
        put: impl FnOnce(&Holder, Entry) -> Result<(), PutError>,
    ) -> Result<Answer, RegistryError> {
        let Some(holder) = self.holder(self.node_of(name))? else { return Ok(Answer::Failed) };
        self.take_out_left(name);
        match put(&holder, entry(name, slot)) {
            Ok(()) => Ok(Answer::Done),
            Err(PutError::Taken { .. }) => Ok(Answer::Taken),
            Err(PutError::Full) => Ok(Answer::Full),
            Err(PutError::Registry(error)) => Err(error),
        }
    }

    fn remove(&self, name: Name, slot: Slot) -> Result<Answer, RegistryError> {
        let Some(holder) = self.holder(self.node_of(name))? else { return Ok(Answer::Failed) };
        let removed = holder.remove(entry(name, slot)).map(|_| Answer::Done);
        removed.inspect_err(|_| lock(&self.left).push((name, slot)))
    }

    /// Takes out what was left of the number that is to be put.
    fn take_out_left(&self, of: Name) {
        let left: Vec<_> = lock(&self.left).extract_if(.., |(name, _)| *name == of).collect();
        for (name, slot) in left {
            let _again = self.remove(name, slot).inspect_err(|error| drop(failed(error)));
        }
    }

    /// Whose names a name of this member is among.
    fn node_of(&self, name: Name) -> NodeId {
        if name.kind.is_of_fabric() { NodeId::GROUPS } else { self.node }
    }

    fn find(&self, node: NodeId, name: Name) -> Result<Found, RegistryError> {
        let Some(registry) = self.existing(node)? else { return Ok(Found::default()) };
        let mut found = registry.find(kind(name.kind), name.number)?;
        if name.kind == NameKind::Interrupt {
            found.extend(registry.find(kind(NameKind::SharedInterrupt), name.number)?);
        }
        let candidates: Vec<_> = found.into_iter().map(candidate).collect();
        let is_node_alive = !candidates.is_empty() || !registry.holders()?.is_empty();
        Ok(Found { is_node_alive, candidates })
    }

    /// This member's place among the names of a node, which it takes if it has none; `None` once it has left.
    fn holder(&self, node: NodeId) -> Result<Option<Arc<Holder>>, RegistryError> {
        let known = || lock(&self.holders).as_ref().map(|holders| holders.get(&node).cloned());
        let Some(found) = known() else { return Ok(None) };
        if found.is_some() {
            return Ok(found);
        }
        let _alone = lock(&self.joining);
        if let Some(Some(found)) = known() {
            return Ok(Some(found));
        }
        let holder = Arc::new(self.registry(node)?.join(self.number)?);
        Ok(lock(&self.holders).as_mut().map(|holders| {
            holders.insert(node, Arc::clone(&holder));
            holder
        }))
    }

    /// The registry of a node, if anybody of it has ever joined: who looks for somebody makes nothing.
    fn existing(&self, node: NodeId) -> Result<Option<Registry>, RegistryError> {
        if self.foreign.contains_key(&node) {
            let Some(domain) = self.domain_of(node) else { return Ok(None) };
            return match self.registry_in(&domain, node) {
                // Nobody of it has joined.
                Err(RegistryError::Absent { .. }) => Ok(None),
                registry => registry.map(Some),
            };
        }
        let is_known = lock(&self.registries).contains_key(&node);
        let is_there = is_known || self.domain.registries()?.contains(&registry_name(node));
        if is_there { self.registry(node).map(Some) } else { Ok(None) }
    }

    /// The domain that members of a node have joined; nothing as long as another user has not opened it to this one.
    pub(crate) fn domain_of(&self, node: NodeId) -> Option<Domain> {
        let Some(foreign) = self.foreign.get(&node) else { return Some(self.domain.clone()) };
        let opened = foreign.domain();
        opened.inspect_err(|error| tracing::debug!(%error, node = node.0, "another user's node")).ok()
    }

    /// The registry of a node of this user, opened once, and made if it is not there.
    fn registry(&self, node: NodeId) -> Result<Registry, RegistryError> {
        self.registry_in(&self.domain, node)
    }

    fn registry_in(&self, domain: &Domain, node: NodeId) -> Result<Registry, RegistryError> {
        if let Some(registry) = lock(&self.registries).get(&node) {
            return Ok(registry.clone());
        }
        // Not under the lock: it makes a file. Whoever does so at the same time has the same registry.
        let registry = domain.registry(&registry_name(node))?;
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
    use std::io::Read;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};

    use beeline_domain::DomainConfig;
    use beeline_fabric::SegmentId;

    use super::*;

    /// A process that stands still while it writes any entry of a registry.
    fn standing_still(locks: &Path) -> Child {
        let lock = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB,8192,4096); \
                    print(); sys.stdout.flush(); sys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", lock])
            .arg(locks)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    fn file(folder: &Path, name: &str) -> Option<PathBuf> {
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find_map(|path| {
            if path.file_name().is_some_and(|found| found == name) { Some(path) } else { file(&path, name) }
        })
    }

    #[test]
    fn who_looks_for_a_node_that_nobody_has_joined_makes_no_registry_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "fabric".to_owned() };
        let domain = Domain::open(&config).unwrap();
        let names = Names::join(domain.clone(), NodeId(4), NonZeroU64::MIN).unwrap();
        let find = NameOp::Find(NodeId(8), Name::segment(SegmentId(7)));
        assert_eq!(names.carry_out(find, |_| false), Answer::Found(Found::default()));
        assert!(!names.is_alive(NodeId(8)).unwrap());
        assert_eq!(domain.registries().unwrap(), ["fabric.4"]);
        let other = Names::join(domain, NodeId(8), NonZeroU64::MIN).unwrap();
        assert!(names.is_alive(NodeId(8)).unwrap());
        other.leave();
        assert!(!names.is_alive(NodeId(8)).unwrap());
    }

    #[test]
    fn number_whose_removal_another_process_hindered_can_be_had_again() {
        let dir = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "fabric".to_owned() };
        let number = NonZeroU64::new(5).unwrap();
        let names = Names::join(Domain::open(&config).unwrap(), NodeId(4), number).unwrap();
        let name = Name::segment(SegmentId(7));
        assert_eq!(names.carry_out(NameOp::Put(name, Slot(1)), |_| false), Answer::Done);
        let mut other = standing_still(&file(dir.path(), "fabric.4.registry-locks").unwrap());
        assert_eq!(names.carry_out(NameOp::Remove(name, Slot(1)), |_| false), Answer::Failed);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(names.carry_out(NameOp::Put(name, Slot(2)), |_| false), Answer::Done);
        let Answer::Found(found) = names.carry_out(NameOp::Find(NodeId(4), name), |_| false) else {
            panic!("not found")
        };
        assert_eq!(found.candidates, [Candidate { member: MemberNumber(5), slot: Slot(2) }]);
        // It is in use again, once.
        assert_eq!(names.carry_out(NameOp::Put(name, Slot(3)), |_| false), Answer::Taken);
    }

    /// Of a holder that has left, or holds another memory by now, nobody knows whether its memory is that of those who have the name.
    #[test]
    fn name_is_put_beside_others_only_if_the_holder_that_was_asked_still_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "fabric".to_owned() };
        let domain = Domain::open(&config).unwrap();
        let join = |number| Names::join(domain.clone(), NodeId(4), NonZeroU64::new(number).unwrap()).unwrap();
        let (asked, other, joins) = (join(5), join(6), join(7));
        let name = Name::segment_of(NodeId::GROUPS, SegmentId(7));
        let of = Candidate { member: MemberNumber(5), slot: Slot(1) };
        let beside =
            |names: &Names, has_open: bool| names.put_beside(name, Slot(9), of, || has_open).unwrap();
        assert_eq!(asked.carry_out(NameOp::Put(name, Slot(1)), |_| false), Answer::Done);
        assert_eq!(beside(&joins, false), Answer::Taken);
        assert_eq!(beside(&other, true), Answer::Done);
        asked.leave();
        // Somebody has the name, and not the one who was asked, whatever its board said.
        assert_eq!(beside(&joins, true), Answer::Taken);
        other.leave();
        assert_eq!(beside(&joins, true), Answer::Done);
    }

    #[test]
    fn registry_of_a_node_is_found_by_its_name_alone() {
        assert_eq!(node_of(&registry_name(NodeId(65_535))), Some(NodeId(65_535)));
        for other in ["fabric.", "fabric.x", "fabric.04", "fabric.+4", "fabric.65536", "fabric.4.x", "names"]
        {
            assert_eq!(node_of(other), None, "{other}");
        }
    }
}
