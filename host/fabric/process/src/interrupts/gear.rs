//! What this process triggers interrupts of one other member with.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use beeline_domain::Peer;
use beeline_fabric::{MemberNumber, Place, Refusal, Slot, Trigger};

use crate::bell::{Bells, FlagBell};
use crate::words::Coherent;
use crate::yard::{Sender, Yard};

#[derive(Debug)]
pub(crate) struct Gear {
    /// The member that has the interrupts.
    owner: MemberNumber,
    bells: Bells,
    yard: Yard,
    /// One for each entry, with its incarnation. It stays when nobody is connected any more: the other end goes on where it was.
    senders: Mutex<BTreeMap<Slot, (u32, SharedSender)>>,
}

/// A sender that all threads and connections of this process have for one interrupt.
pub(crate) type SharedSender = Arc<Mutex<Sender>>;

impl Gear {
    pub(crate) fn new(owner: MemberNumber, bells: Bells, yard: Yard) -> Self {
        Gear { owner, bells, yard, senders: Mutex::default() }
    }

    /// The bell of an interrupt. `peer` is the other process; `None` if it is this one.
    pub(crate) fn bell(&self, place: Place, peer: Option<&Peer>) -> FlagBell {
        let is_fenced = peer.is_none_or(Peer::needs_full_fence);
        FlagBell::of_triggerer(self.bells.flag(place.slot), self.bells.watchers(), is_fenced)
    }

    /// The sender of a data interrupt, which is connected to. Its window is made when the interrupt is connected to first.
    ///
    /// # Errors
    /// [`Refusal::Nospc`]: a limit on the size of files leaves no window for it.
    pub(crate) fn sender(&self, trigger: &Trigger<Coherent>) -> Result<SharedSender, Refusal> {
        let place = trigger.place();
        if !self.yard.has(place.slot) {
            return Err(Refusal::Nospc);
        }
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        match senders.get(&place.slot) {
            Some((incarnation, sender)) if *incarnation == place.incarnation => Ok(Arc::clone(sender)),
            _ => {
                let sender = Arc::new(Mutex::new(self.yard.sender(self.owner, place)));
                senders.insert(place.slot, (place.incarnation, Arc::clone(&sender)));
                // The window is blank: messages may come.
                trigger.raise();
                Ok(sender)
            }
        }
    }
}
