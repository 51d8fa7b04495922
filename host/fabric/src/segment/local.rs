//! A segment of this member: its state, and what is told of it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::memory::Memory;
use super::users::{Seen, Users};
use super::waiters::Waiters;
use crate::access::Access;
use crate::board::layout::{EntryState, LAST_INCARNATION, Phase};
use crate::event::LocalEvent;
use crate::ids::{AdapterNumber, Name, SegmentId, Slot};
use crate::link::{LinkWord, Links};
use crate::refusal::Refusal;

#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) name: Name,
    /// Which segment of several holders it is; zero if this member alone holds it.
    pub(crate) group: u64,
    pub(crate) slot: Slot,
    /// What the board says, or would say of a private segment.
    pub(crate) entry: EntryState,
    pub(crate) memory: LocalMemory,
    pub(crate) is_private: bool,
    pub(crate) access: Arc<Access>,
    /// Its memory was passed to a member that may hold it, or may be held by any, and is not given back with the segment.
    pub(crate) is_lent: bool,
    pub(crate) has_callback: bool,
    /// The adapters that it is prepared for, and what the program has been told of their links.
    prepared: Vec<(AdapterNumber, ToldOfLink)>,
    /// Maps in this process.
    pub(crate) maps: u32,
    pub(crate) waiters: Waiters,
    pub(crate) users: Users,
}

/// What is behind a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalMemory {
    /// The program has registered nothing yet.
    Nothing,
    There {
        memory: Memory,
        bytes: u64,
        is_shareable: bool,
    },
}

impl LocalMemory {
    /// Where in the bank it is, and its size.
    pub(crate) fn bank(self) -> Option<(u64, u64)> {
        match self {
            LocalMemory::There { memory: Memory::Bank { offset }, bytes, .. } => Some((offset, bytes)),
            _ => None,
        }
    }

    /// Where it is, and its size. An empty segment has no bytes yet, and will have a memory of its own.
    pub(crate) fn place(self, slot: Slot) -> (Memory, u64) {
        match self {
            LocalMemory::Nothing => (Memory::Own { slot }, 0),
            LocalMemory::There { memory, bytes, .. } => (memory, bytes),
        }
    }
}

/// How the program believes that a link of this member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToldOfLink {
    /// Up, as often changed as it was then.
    Up(LinkWord),
    Down,
}

impl ToldOfLink {
    fn of(link: LinkWord) -> Self {
        if link.is_up { ToldOfLink::Up(link) } else { ToldOfLink::Down }
    }
}

impl Local {
    pub(crate) fn new(name: Name, slot: Slot, entry: EntryState, memory: LocalMemory) -> Self {
        Local {
            name,
            group: 0,
            slot,
            entry: EntryState { phase: Phase::Open, available: 0, ..entry },
            memory,
            is_private: false,
            access: Arc::default(),
            is_lent: false,
            has_callback: false,
            prepared: Vec::new(),
            maps: 0,
            waiters: Waiters::default(),
            users: Users::default(),
        }
    }

    pub(crate) fn id(&self) -> SegmentId {
        SegmentId(self.name.number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.memory == LocalMemory::Nothing
    }

    /// Prepares it for an adapter, whose link stands so.
    pub(crate) fn prepare(&mut self, adapter: AdapterNumber, link: LinkWord) -> Result<(), Refusal> {
        if self.is_empty() {
            return Err(Refusal::IllegalOperation);
        }
        if !self.has_prepared(adapter) {
            self.prepared.push((adapter, ToldOfLink::of(link)));
        }
        Ok(())
    }

    fn has_prepared(&self, adapter: AdapterNumber) -> bool {
        self.prepared.iter().any(|(prepared, _)| *prepared == adapter)
    }

    /// Whether it is prepared for any adapter.
    pub(crate) fn has_prepared_any(&self) -> bool {
        !self.prepared.is_empty()
    }

    /// The adapters of this number that it is prepared for, a bit for each; one at least.
    fn prepared_of(&self, adapter: AdapterNumber) -> Result<u16, Refusal> {
        let prepared = self.prepared.iter().fold(0, |bits, (prepared, _)| bits | prepared.bits());
        match (self.memory, prepared & adapter.bits()) {
            (LocalMemory::Nothing, _) => Err(Refusal::IllegalOperation),
            (LocalMemory::There { .. }, 0) => Err(Refusal::SegmentNotPrepared),
            (LocalMemory::There { .. }, prepared) => Ok(prepared),
        }
    }

    pub(crate) fn set_available(&mut self, adapter: AdapterNumber) -> Result<(), Refusal> {
        let prepared = self.prepared_of(adapter)?;
        let is_shareable = matches!(self.memory, LocalMemory::There { is_shareable: true, .. });
        if self.is_private || !is_shareable {
            return Err(Refusal::IllegalOperation);
        }
        self.entry.available |= prepared;
        Ok(())
    }

    pub(crate) fn set_unavailable(&mut self, adapter: AdapterNumber, is_forced: bool) -> Result<(), Refusal> {
        self.prepared_of(adapter)?;
        // Connections outlast the time in which it was available, and are ended by force then, too.
        if !is_forced && self.entry.available & adapter.bits() == 0 {
            return Err(Refusal::IllegalOperation);
        }
        if is_forced {
            // Claims of connections so far are of another incarnation from here on. The last one is that of the removal.
            let next = self.entry.incarnation.checked_add(1).filter(|next| *next != LAST_INCARNATION);
            self.entry.incarnation = next.ok_or(Refusal::MaxEntries)?;
        }
        self.entry.available &= !adapter.bits();
        Ok(())
    }

    /// The next event that the program has not been told of, given how the links stand and what members say now.
    pub(crate) fn next_event(
        &mut self,
        links: &Links,
        seen: impl Iterator<Item = Seen>,
    ) -> Option<LocalEvent> {
        self.next_of_links(links).or_else(|| self.users.next_event(self.entry.incarnation, seen))
    }

    fn next_of_links(&mut self, links: &Links) -> Option<LocalEvent> {
        self.prepared.iter_mut().find_map(|(adapter, told)| {
            let now = ToldOfLink::of(links.of(*adapter)?);
            let (next, event) = match (*told, now) {
                (before, now) if before == now => return None,
                // Down, or up anew.
                (ToldOfLink::Up(_), _) => (ToldOfLink::Down, LocalEvent::NotOperational(*adapter)),
                (ToldOfLink::Down, now) => (now, LocalEvent::Operational(*adapter)),
            };
            *told = next;
            Some(event)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::freed;

    fn segment() -> Local {
        Local::new(Name::segment(SegmentId(1)), Slot(0), EntryState::default(), LocalMemory::Nothing)
    }

    #[test]
    fn links_are_told_of_as_they_stand_for_what_is_prepared_for_them() {
        let (mut local, nobody) = (segment(), || core::iter::empty());
        local.memory =
            LocalMemory::There { memory: Memory::Bank { offset: 0 }, bytes: 64, is_shareable: true };
        let [zero, one] = [0, 1].map(|number| AdapterNumber::new(number).unwrap());
        let mut links = Links::up(&[zero, one]);
        links.set(one, false).unwrap();
        for adapter in [zero, one] {
            local.prepare(adapter, links.of(adapter).unwrap()).unwrap();
        }
        assert_eq!(local.next_event(&links, nobody()), None);
        // Down and up again since it was told.
        links.set(zero, false).unwrap();
        links.set(zero, true).unwrap();
        links.set(one, true).unwrap();
        let told: Vec<_> = core::iter::from_fn(|| local.next_event(&links, nobody())).collect();
        let expected =
            [LocalEvent::NotOperational(zero), LocalEvent::Operational(zero), LocalEvent::Operational(one)];
        assert_eq!(told, expected);
        links.set(zero, false).unwrap();
        // Once more prepared is as before.
        local.prepare(zero, links.of(zero).unwrap()).unwrap();
        assert_eq!(local.next_event(&links, nobody()), Some(LocalEvent::NotOperational(zero)));
        assert_eq!(local.next_event(&links, nobody()), None);
    }

    #[test]
    fn last_incarnation_is_that_of_the_removal_and_none_comes_again() {
        let mut local = segment();
        local.memory =
            LocalMemory::There { memory: Memory::Bank { offset: 0 }, bytes: 64, is_shareable: true };
        local.entry.incarnation = LAST_INCARNATION - 2;
        let adapter = AdapterNumber::new(0).unwrap();
        local.prepare(adapter, LinkWord { epoch: 1, is_up: true }).unwrap();
        local.set_available(adapter).unwrap();
        local.set_unavailable(adapter, true).unwrap();
        assert_eq!(local.entry.incarnation, LAST_INCARNATION - 1);
        local.set_available(adapter).unwrap();
        let before = local.entry;
        assert_eq!(local.set_unavailable(adapter, true), Err(Refusal::MaxEntries));
        assert_eq!(local.entry, before);
        assert_eq!(local.set_unavailable(adapter, false), Ok(()));
        assert_eq!(freed(local.entry).incarnation, LAST_INCARNATION);
    }
}
