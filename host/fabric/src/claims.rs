//! The handshake of a member that connects and one that removes: each publishes, passes a barrier, and looks at the other's word. At
//! least one of the two sees the other (Dekker), so a segment is never both connected to and removed, and no packet is needed. Who
//! takes a segment from its users by force publishes and looks in the same way: whoever is connected then is rung, and keeps the entry.
//!
//! Where a barrier is not confirmed, nobody knows what the other side sees: then nothing is claimed, nothing is free, and everybody is told.
//!
//! `claims_loom.rs` runs these functions over memory, `claims_states.rs` over links.

use alloc::vec::Vec;

use beeline_contract_adapter::{PublishPort, ViewPort};

use crate::board::layout::{Claim, EntryState, Phase, entry_state};
use crate::ids::Slot;

/// Why an entry is not claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unclaimed {
    /// It is not any more what it was.
    Changed,
    /// Its member may not have the claim.
    Unconfirmed,
}

/// Claims an entry that was seen as `seen`, for the `new` count of connections; `old` is what this member claims so far. On `Err` that
/// is what it claims.
pub(crate) fn claim(
    board: &impl ViewPort,
    claims: &mut impl PublishPort,
    slot: Slot,
    seen: EntryState,
    (old, new): (Claim, Claim),
) -> Result<(), Unclaimed> {
    let word = u32::from(slot.0);
    claims.publish(word, new.word());
    // Pairs with the barriers in `close` and `force`, and in `OwnBoard::set_listening`.
    let found = match claims.barrier() {
        Ok(()) if EntryState::of(board.load(entry_state(slot))) == seen => return Ok(()),
        Ok(()) => Unclaimed::Changed,
        Err(_) => Unclaimed::Unconfirmed,
    };
    claims.publish(word, old.word());
    Err(found)
}

/// Makes an entry of the own board free, or leaves it `open` if somebody claims it. Whether it is free.
pub(crate) fn close<'a, V: ViewPort + 'a>(
    board: &mut impl PublishPort,
    claims: impl Iterator<Item = &'a V>,
    slot: Slot,
    open: EntryState,
) -> bool {
    board.publish(entry_state(slot), EntryState { phase: Phase::Closing, ..open }.word());
    // Pairs with the barrier in `claim`.
    let is_known = board.barrier().is_ok();
    let is_free = is_known && !are_claimed(claims, slot, open.incarnation);
    let state = if is_free { freed(open) } else { open };
    board.publish(entry_state(slot), state.word());
    is_free
}

/// Takes an entry of the own board, that was of the incarnation `before`, from its users: it is `after` from here on. Which of the
/// members, told with what each claims, have to learn of it. Claims that are loaded after this are those of everybody who has not been
/// refused.
pub(crate) fn force<'a, K, V: ViewPort + 'a>(
    board: &mut impl PublishPort,
    members: impl Iterator<Item = (K, &'a V)>,
    slot: Slot,
    (before, after): (u32, EntryState),
) -> Vec<K> {
    board.publish(entry_state(slot), after.word());
    // Pairs with the barrier in `claim`.
    let is_known = board.barrier().is_ok();
    let users =
        members.filter(|(_, claims)| !is_known || are_claimed(core::iter::once(*claims), slot, before));
    users.map(|(member, _)| member).collect()
}

/// What an entry is after its segment: free, and for claims of its segment another one. No segment has the last incarnation.
pub(crate) fn freed(open: EntryState) -> EntryState {
    EntryState { incarnation: open.incarnation + 1, phase: Phase::Free, available: 0, notices: 0 }
}

/// Whether any of these claims is one of the entry's segment.
fn are_claimed<'a, V: ViewPort + 'a>(
    mut claims: impl Iterator<Item = &'a V>,
    slot: Slot,
    incarnation: u32,
) -> bool {
    claims.any(|claims| Claim::of(claims.load(u32::from(slot.0))).is_of(incarnation))
}

#[cfg(test)]
mod tests {
    use core::cell::RefCell;

    use beeline_contract_adapter::Unconfirmed;

    use super::*;

    const OPEN: EntryState = EntryState { incarnation: 3, phase: Phase::Open, available: 1, notices: 0 };
    const SLOT: Slot = Slot(0);

    /// A word whose other side does not answer.
    struct Unreachable(RefCell<u64>);

    impl PublishPort for Unreachable {
        fn publish(&mut self, _word: u32, value: u64) {
            *self.0.borrow_mut() = value;
        }

        fn barrier(&mut self) -> Result<(), Unconfirmed> {
            Err(Unconfirmed)
        }
    }

    impl ViewPort for Unreachable {
        fn load(&self, _word: u32) -> u64 {
            *self.0.borrow()
        }
    }

    fn word(value: u64) -> Unreachable {
        Unreachable(RefCell::new(value))
    }

    #[test]
    fn claim_that_is_not_confirmed_is_taken_back() {
        let (board, mut claims) = (word(OPEN.word()), word(0));
        let (old, new) = (Claim::default(), Claim { incarnation: 3, count: 1, ..Claim::default() });
        assert_eq!(claim(&board, &mut claims, SLOT, OPEN, (old, new)), Err(Unclaimed::Unconfirmed));
        assert_eq!(claims.load(0), old.word());
    }

    #[test]
    fn removal_that_is_not_confirmed_leaves_the_segment() {
        let (mut board, claims) = (word(OPEN.word()), word(0));
        assert!(!close(&mut board, core::iter::once(&claims), SLOT, OPEN));
        assert_eq!(board.load(0), OPEN.word());
    }

    #[test]
    fn everybody_is_rung_when_force_is_not_confirmed() {
        let (mut board, claims) = (word(OPEN.word()), word(0));
        let rung = force(&mut board, core::iter::once(('a', &claims)), SLOT, (3, freed(OPEN)));
        assert_eq!((rung, board.load(0)), (alloc::vec!['a'], freed(OPEN).word()));
    }
}
