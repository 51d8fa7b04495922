//! What a member has, for who looks at a fabric and takes no part in it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use beeline_contract_adapter::{Adapter, ViewPort};

use crate::board::layout::{Claim, Phase};
use crate::board::{read_entry, read_link};
use crate::ids::{AdapterNumber, LocalSegment, Name, NameKind, NodeId, SegmentId, Slot};
use crate::member::Member;
use crate::segment::local::Local;
use crate::segment::remote::Stage;

/// A member as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberReport {
    pub node: NodeId,
    pub links: Vec<LinkReport>,
    /// Members that have connected to this one's segments, and may have disconnected since.
    pub consumers: u32,
    /// Connections of this member to segments and interrupts.
    pub connections: u32,
    /// Segments of this member, private ones among them.
    pub segments: u32,
}

/// An adapter as its member sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReport {
    pub adapter: AdapterNumber,
    pub is_up: bool,
    /// How often it has changed; 1 if it never has.
    pub epoch: u64,
}

/// A segment as its member sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// No other segment of the member has it, and later ones have larger ones.
    pub number: u64,
    pub id: SegmentId,
    pub bytes: u64,
    pub stage: SegmentStage,
    pub holding: Holding,
    /// The number of its memory, which all who hold it say; 0 if this member alone holds it.
    pub memory: u64,
    /// A bit for each adapter by which it may be connected to.
    pub available: u16,
    /// Connections of all members together.
    pub connections: u32,
    /// Maps in its member's own process.
    pub maps: u32,
}

/// How far a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentStage {
    /// It has no memory yet.
    Empty,
    NotPrepared,
    Prepared,
    /// Others may connect to it.
    Available,
}

/// Who may have a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Nobody connects to it, and its id names nothing.
    Private,
    /// Its member, which others connect to.
    Alone,
    /// Its member, and others of the node that attach it.
    Shared,
    /// Members of any nodes: its id is that of a group.
    Group,
}

/// A segment or an interrupt, as the board of its member says it to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryReport {
    pub name: Name,
    pub bytes: u64,
    /// The number of its memory, which all who hold it say; 0 if its member alone has it.
    pub memory: u64,
    /// A bit for each adapter by which it may be connected to.
    pub available: u16,
    slot: Slot,
    incarnation: u32,
}

impl EntryReport {
    /// What an entry of a board is; `None` if it is nothing.
    pub fn of(board: &impl ViewPort, slot: Slot) -> Option<Self> {
        let entry = read_entry(board, slot).filter(|entry| entry.state.phase != Phase::Free)?;
        let (available, incarnation) = (entry.state.available, entry.state.incarnation);
        Some(EntryReport {
            name: entry.name?,
            bytes: entry.bytes,
            memory: entry.group,
            available,
            slot,
            incarnation,
        })
    }

    /// The connections to it of a member that publishes these claims.
    pub fn connections(&self, claims: &impl ViewPort) -> u32 {
        let claim = Claim::of(claims.load(u32::from(self.slot.0)));
        if claim.incarnation == self.incarnation { claim.count } else { 0 }
    }
}

impl LinkReport {
    /// The adapters that a board is of.
    pub fn all_of(board: &impl ViewPort) -> Vec<Self> {
        let of = |number| {
            let adapter = AdapterNumber::new(number).ok()?;
            let link = read_link(board, adapter);
            (link.epoch != 0).then_some(LinkReport { adapter, is_up: link.is_up, epoch: link.epoch })
        };
        (0..16).filter_map(of).collect()
    }
}

impl<A: Adapter> Member<A> {
    /// Says what this member has, as it stands.
    pub fn report(&self) -> MemberReport {
        let links = self.links.all().filter_map(|(number, link)| {
            let adapter = AdapterNumber::new(number).ok()?;
            Some(LinkReport { adapter, is_up: link.is_up, epoch: link.epoch })
        });
        let is_connected = |stage: &Stage| matches!(stage, Stage::Connected(_));
        MemberReport {
            node: self.config.node,
            links: links.collect(),
            consumers: self.pairs.consumers.len() as u32,
            connections: self.remotes.values().filter(|remote| is_connected(&remote.stage)).count() as u32,
            segments: self.locals.len() as u32,
        }
    }

    /// The segments of this member with a number beyond `after`, in the order of their numbers. Of each, every consumer's claim is loaded.
    pub fn segments_after(&self, after: u64) -> impl Iterator<Item = SegmentReport> {
        // A handle's number is not more than the last one, so there is always a next.
        let from = LocalSegment(after.saturating_add(1));
        self.locals.range(from..).map(|(handle, local)| {
            let seen = self.pairs.seen(Arc::clone(&local.access), local.slot, local.entry.incarnation);
            SegmentReport {
                number: handle.0,
                id: local.id(),
                bytes: local.memory.place(local.slot).1,
                stage: stage_of(local),
                holding: holding_of(local),
                memory: local.group,
                available: local.entry.available,
                connections: if local.is_private { 0 } else { seen.map(|seen| seen.count).sum() },
                maps: local.maps,
            }
        })
    }

    /// The segment that others find under a name.
    pub fn segment_of(&self, name: Name) -> Option<LocalSegment> {
        let is_it = |local: &Local| local.name == name && !local.is_private;
        self.locals.iter().find(|(_, local)| is_it(local)).map(|(handle, _)| *handle)
    }
}

fn holding_of(local: &Local) -> Holding {
    match (local.is_private, local.name.kind, local.group) {
        (true, ..) => Holding::Private,
        (_, NameKind::Group, _) => Holding::Group,
        (.., 0) => Holding::Alone,
        _ => Holding::Shared,
    }
}

fn stage_of(local: &Local) -> SegmentStage {
    match (local.is_empty(), local.entry.available, local.has_prepared_any()) {
        (true, ..) => SegmentStage::Empty,
        (_, 0, false) => SegmentStage::NotPrepared,
        (_, 0, true) => SegmentStage::Prepared,
        _ => SegmentStage::Available,
    }
}
