//! Segments with a memory of their own, which their member passes to members that are connected to them.

use beeline_contract_adapter::{Adapter, ViewPort};

use crate::board::layout::Claim;
use crate::ids::{LocalSegment, PairId, RemoteSegment, Slot};
use crate::member::Member;
use crate::segment::local::{Local, LocalMemory};
use crate::segment::memory::Memory;

/// What a member asks another one for: the own memory of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The entry of the other member's board.
    pub slot: Slot,
    /// Which of the segments that the entry has had.
    pub incarnation: u32,
}

impl<A: Adapter> Member<A> {
    /// What to ask the other member of a pair for, to have the memory of a connection, and how many bytes of it there have to be at least.
    /// `None` without a connection.
    pub fn borrowed(&self, remote: RemoteSegment) -> Option<(PairId, Lent, u64)> {
        let connection = self.remotes.get(&remote)?.connection().ok()?;
        let lent = Lent { slot: connection.slot, incarnation: connection.incarnation };
        Some((connection.pair, lent, connection.bytes))
    }

    /// The segment whose own memory is asked for, if the member of a pair may have it: one that other members can map, and that it is
    /// connected to.
    pub fn lends(&self, pair: PairId, lent: Lent) -> Option<LocalSegment> {
        let claims = &self.pairs.consumers.get(&pair)?.claims;
        let claim = Claim::of(claims.load(u32::from(lent.slot.0)));
        self.own_memory_of(lent).filter(|_| claim.is_of(lent.incarnation))
    }

    /// The segment of this member whose own memory is meant, if other members can map it.
    pub fn own_memory_of(&self, lent: Lent) -> Option<LocalSegment> {
        let is_shared = |local: &Local| match local.memory {
            LocalMemory::There { memory: Memory::Own { .. }, is_shareable, .. } => {
                is_shareable && !local.is_private
            }
            _ => false,
        };
        let is_it = |local: &Local| local.slot == lent.slot && local.entry.incarnation == lent.incarnation;
        let found = self.locals.iter().find(|(_, local)| is_it(local) && is_shared(local));
        found.map(|(handle, _)| *handle)
    }
}
