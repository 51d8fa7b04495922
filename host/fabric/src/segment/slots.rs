//! Entries of this member's board that are free, and those that are not free yet.

use alloc::vec::Vec;

use crate::board::layout::{CLAIM_WORDS, EntryState, LAST_INCARNATION};
use crate::ids::Slot;

#[derive(Debug)]
pub(crate) struct Slots {
    /// Free, with what their words say.
    free: Vec<(Slot, EntryState)>,
    /// Without a segment, but with claims of one that was removed by force: who has the claim may have its memory mapped.
    lingering: Vec<Lingering>,
    used: u32,
    /// Entries that the board has.
    count: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Slots { free: Vec::new(), lingering: Vec::new(), used: 0, count: CLAIM_WORDS }
    }
}

/// An entry whose segment is gone and whose users are not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lingering {
    pub(crate) slot: Slot,
    pub(crate) state: EntryState,
    /// Where in the bank its memory was, to be given back once more.
    pub(crate) bank: Option<(u64, u64)>,
}

impl Slots {
    /// There are no more than so many.
    pub(crate) fn limit(&mut self, count: u32) {
        self.count = self.count.min(count);
    }

    /// Entries whose segment is gone and whose users are not.
    pub(crate) fn lingering(&self) -> impl Iterator<Item = &Lingering> {
        self.lingering.iter()
    }

    /// An entry for a segment, and what its word says; `None` if all are used.
    pub(crate) fn take(&mut self) -> Option<(Slot, EntryState)> {
        if let Some(free) = self.free.pop() {
            return Some(free);
        }
        if self.used == self.count {
            return None;
        }
        self.used += 1;
        let slot = Slot((self.used - 1) as u16);
        Some((slot, EntryState { incarnation: 1, ..EntryState::default() }))
    }

    pub(crate) fn give_back(&mut self, slot: Slot, state: EntryState) {
        if state.incarnation != LAST_INCARNATION {
            self.free.push((slot, state));
        }
    }

    pub(crate) fn linger(&mut self, lingering: Lingering) {
        self.lingering.push(lingering);
    }

    /// Frees those entries whose claims are gone, and tells which they were.
    pub(crate) fn settle(&mut self, mut is_claimed: impl FnMut(Slot) -> bool) -> Vec<Lingering> {
        let (stay, quiet) = self.lingering.drain(..).partition::<Vec<_>, _>(|it| is_claimed(it.slot));
        self.lingering = stay;
        for lingering in &quiet {
            self.give_back(lingering.slot, lingering.state);
        }
        quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_used_again_when_nobody_claims_it_any_more() {
        let mut slots = Slots::default();
        let (slot, state) = slots.take().unwrap();
        slots.linger(Lingering { slot, state, bank: None });
        assert_eq!(slots.take().unwrap().0, Slot(1));
        assert!(slots.settle(|_| true).is_empty());
        assert_eq!(slots.take().unwrap().0, Slot(2));
        assert_eq!(slots.settle(|_| false).len(), 1);
        assert_eq!(slots.take().unwrap().0, slot);
    }

    #[test]
    fn board_of_fewer_entries_has_no_others() {
        let mut slots = Slots::default();
        slots.limit(2);
        slots.limit(3);
        assert_eq!(
            [slots.take(), slots.take()].map(|taken| taken.map(|(slot, _)| slot)),
            [Some(Slot(0)), Some(Slot(1))]
        );
        assert_eq!(slots.take(), None);
    }

    #[test]
    fn entries_and_incarnations_end() {
        let mut slots = Slots::default();
        let taken = core::iter::from_fn(|| slots.take()).count();
        assert_eq!(taken as u32, CLAIM_WORDS);
        slots.give_back(Slot(3), EntryState { incarnation: LAST_INCARNATION, ..EntryState::default() });
        assert_eq!(slots.take(), None);
        slots.give_back(Slot(3), EntryState { incarnation: 9, ..EntryState::default() });
        assert_eq!(slots.take().map(|(slot, state)| (slot, state.incarnation)), Some((Slot(3), 9)));
    }
}
