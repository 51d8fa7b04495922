//! Segments with a memory of their own, which their member passes to members that are connected to them.

use beeline_contract_adapter::{Adapter, ViewPort};

use crate::board::layout::Claim;
use crate::ids::{LocalSegment, PairId, RemoteSegment};
use crate::member::Member;
use crate::segment::holder::Lent;
use crate::segment::local::{Local, LocalMemory};
use crate::segment::memory::Memory;

/// Where the memory of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Borrowed {
    /// The pair with the member that has it.
    pub pair: PairId,
    /// What that is asked for.
    pub lent: Lent,
    /// How many bytes there are at least.
    pub bytes: u64,
    /// Only memory that a segment has alone is asked for.
    pub memory: Memory,
}

impl<A: Adapter> Member<A> {
    /// Where the memory of a connection is. `None` without a connection.
    pub fn borrowed(&self, remote: RemoteSegment) -> Option<Borrowed> {
        let connection = self.remotes.get(&remote)?.connection().ok()?;
        let lent = Lent { slot: connection.slot, incarnation: connection.incarnation };
        Some(Borrowed { pair: connection.pair, lent, bytes: connection.bytes, memory: connection.memory })
    }

    /// The segment whose memory is asked for, if the member of a pair may have it: one that other members can map, and that it is connected
    /// to or could hold together with this one.
    pub fn lends(&self, pair: PairId, lent: Lent) -> Option<(LocalSegment, Memory)> {
        let claims = &self.pairs.consumers.get(&pair)?.claims;
        let claim = Claim::of(claims.load(u32::from(lent.slot.0)));
        let (local, memory) = self.lent(lent)?;
        let is_held = self.locals.get(&local).is_some_and(|local| local.group != 0);
        (is_held || claim.is_of(lent.incarnation)).then_some((local, memory))
    }

    /// The segment of this member whose memory is meant, if others can map it and it is not in the bank that they have, or if they can
    /// hold it.
    pub fn lent(&self, lent: Lent) -> Option<(LocalSegment, Memory)> {
        let is_it = |local: &Local| local.slot == lent.slot && local.entry.incarnation == lent.incarnation;
        let (handle, local) = self.locals.iter().find(|(_, local)| is_it(local) && !local.is_private)?;
        match local.memory {
            LocalMemory::There { memory, is_shareable: true, .. } => {
                let is_own = matches!(memory, Memory::Own { .. });
                (is_own || local.group != 0).then_some((*handle, memory))
            }
            _ => None,
        }
    }
}
