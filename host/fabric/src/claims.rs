//! The handshake of a member that connects and one that removes: each publishes, passes a barrier, and looks at the other's word. At
//! least one of the two sees the other (Dekker), so a segment is never both connected to and removed, and no packet is needed. Who
//! takes a segment from its users by force publishes and looks in the same way: whoever is connected then is rung, and keeps the entry.
//!
//! `claims_loom.rs` runs these functions.

use alloc::vec::Vec;

use beeline_contract_adapter::{PublishPort, ViewPort};

use crate::board::layout::{Claim, EntryState, Phase, entry_state};
use crate::ids::Slot;

/// Claims an entry that was seen as `seen`, for the `new` count of connections; `old` is what this member claims so far. `Err` with what
/// the entry is now if it is not that segment any more: then nothing has changed.
pub(crate) fn claim(
    board: &impl ViewPort,
    claims: &mut impl PublishPort,
    slot: Slot,
    seen: EntryState,
    (old, new): (Claim, Claim),
) -> Result<(), EntryState> {
    let word = u32::from(slot.0);
    claims.publish(word, new.word());
    // Pairs with the barriers in `close` and `force`, and in `OwnBoard::set_listening`.
    claims.barrier();
    let now = EntryState::of(board.load(entry_state(slot)));
    if now == seen {
        return Ok(());
    }
    claims.publish(word, old.word());
    Err(now)
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
    board.barrier();
    let is_free = !are_claimed(claims, slot, open.incarnation);
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
    board.barrier();
    let users = members.filter(|(_, claims)| are_claimed(core::iter::once(*claims), slot, before));
    users.map(|(member, _)| member).collect()
}

/// What an entry is after its segment: free, and for claims of its segment another one. No segment has the last incarnation.
pub(crate) fn freed(open: EntryState) -> EntryState {
    EntryState { incarnation: open.incarnation + 1, phase: Phase::Free, available: 0 }
}

/// Whether any of these claims is one of the entry's segment.
fn are_claimed<'a, V: ViewPort + 'a>(
    mut claims: impl Iterator<Item = &'a V>,
    slot: Slot,
    incarnation: u32,
) -> bool {
    claims.any(|claims| Claim::of(claims.load(u32::from(slot.0))).is_of(incarnation))
}
