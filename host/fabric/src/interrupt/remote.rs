//! Triggering: what a thread does that is connected to an interrupt, without asking its member.

use beeline_contract_adapter::{Adapter, CountPort};

use super::Place;
use crate::board::layout::count_word;
use crate::refusal::Refusal;
use crate::sequence::{ConnectionView, Standing};

/// A connection to an interrupt, for threads that trigger it. Made by [`Member::trigger`](crate::Member::trigger), and of use until
/// the connection is ended: who raises the count after that may raise that of another interrupt of the same member.
#[derive(Clone, Debug)]
pub struct Trigger<A: Adapter> {
    pub(crate) view: ConnectionView<A::View>,
    /// What this member stores for the interrupt's.
    pub(crate) uses: A::Claims,
}

impl<A: Adapter> Trigger<A> {
    /// Where the interrupt is on its member's board.
    pub fn place(&self) -> Place {
        let connected = self.view.connected;
        Place { slot: connected.slot, incarnation: connected.incarnation }
    }

    /// Whether a trigger reaches the interrupt at this moment: four loads. Words do not tell that the other member has died.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: it is removed, or its member has left. [`Refusal::NoLinkAccess`] and
    /// [`Refusal::NoRemoteLinkAccess`]: a link is down.
    #[inline]
    pub fn check(&self) -> Result<(), Refusal> {
        match self.view.standing() {
            Standing::Gone => Err(Refusal::NotConnected),
            Standing::There(path) if !path.own.is_up => Err(Refusal::NoLinkAccess),
            Standing::There(path) if !path.theirs.is_up => Err(Refusal::NoRemoteLinkAccess),
            Standing::There(_) => Ok(()),
        }
    }

    /// Counts a trigger. After it the bell of the interrupt is rung ([`ring`](crate::ring)).
    ///
    /// A data interrupt is counted once, when its messages can come: the count is the sign for that.
    #[inline]
    pub fn raise(&self) {
        // Pairs with the loads of `Take` and `has_begun`.
        self.uses.raise(count_word(self.view.connected.slot));
    }
}
