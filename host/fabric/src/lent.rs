//! Segments with a memory of their own, which their member passes to members that are connected to them.

use beeline_contract_adapter::{Adapter, ViewPort};

use crate::board::layout::Claim;
use crate::ids::{LocalSegment, Name, PairId, RemoteSegment};
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

    /// The segment whose memory is asked for, if the member of a pair may have it: one that other members can map, that lets it connect, and
    /// that it is connected to or could hold together with this one. Memory of the bank that was passed stays when the segment is removed.
    pub fn lends(&mut self, pair: PairId, lent: Lent) -> Option<(LocalSegment, Memory)> {
        let consumer = self.pairs.consumers.get(&pair)?;
        let claim = Claim::of(consumer.claims.load(u32::from(lent.slot.0)));
        let (local, _) = self.lent(lent)?;
        let local =
            self.locals.get(&local).filter(|local| local.access.lets(consumer.node, consumer.user))?;
        let is_held = local.group != 0;
        if is_held || claim.is_of(lent.incarnation) { self.lends_itself(lent) } else { None }
    }

    /// As [`Member::lends`], where this member itself is who asks.
    pub fn lends_itself(&mut self, lent: Lent) -> Option<(LocalSegment, Memory)> {
        let (local, memory) = self.lent(lent)?;
        if let Some(local) = self.locals.get_mut(&local) {
            local.is_lent = true;
        }
        Some((local, memory))
    }

    /// The name of a segment of this member that is in the bank, where it is there, and its size.
    pub fn in_bank(&self, local: LocalSegment) -> Option<(Name, (u64, u64))> {
        let local = self.locals.get(&local)?;
        Some((local.name, local.memory.bank()?))
    }

    /// Takes the memory of a segment out of the bank, where several hold it and have it mapped already: removing the segment does not give it
    /// back. Whether anybody is connected to the segment, and so may have mapped it before several held it.
    pub fn cede(&mut self, local: LocalSegment) -> bool {
        let Some(local) = self.locals.get_mut(&local) else { return false };
        local.is_lent = true;
        self.pairs.is_claimed(local.slot)
    }

    /// The segment of this member whose memory is meant, if others can map it and it is not in the bank that they have, or if they can
    /// hold it.
    pub fn lent(&self, lent: Lent) -> Option<(LocalSegment, Memory)> {
        let handle = self.locals_by_slot.get(&lent.slot)?;
        let is_it = |local: &&Local| local.entry.incarnation == lent.incarnation && !local.is_private;
        let local = self.locals.get(handle).filter(is_it)?;
        match local.memory {
            LocalMemory::There { memory, is_shareable: true, .. } => {
                let is_own = matches!(memory, Memory::Own { .. });
                (is_own || local.group != 0).then_some((*handle, memory))
            }
            _ => None,
        }
    }
}
