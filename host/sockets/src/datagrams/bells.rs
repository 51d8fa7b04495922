//! Whom senders of a socket of UDP ring.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::incoming::Incoming;
use super::socket::DatagramSocket;
use crate::lock::{is_any_held_here, locked};
use crate::sleepers::OwnBell;

impl DatagramSocket {
    /// Has every sender ring this bell when it has stored something; false where four others are rung already.
    pub(crate) fn add_bell(&self, bell: &Arc<OwnBell>) -> bool {
        let reader = self.lock_reader();
        let mut bells = locked(&self.bells);
        if bells.iter().flatten().any(|own| own.id() == bell.id()) {
            // Of a call that its thread has left by a jump.
            return true;
        }
        let Some(free) = bells.iter().position(Option::is_none) else { return false };
        bells[free] = Some(Arc::clone(bell));
        let rung = rung(&bells);
        for incoming in &reader.incoming {
            bell.join(incoming.live().slot().memory());
            incoming.live().slot().set_own_rung(rung);
        }
        true
    }

    /// Senders need not ring it any more.
    pub(crate) fn remove_bell(&self, bell: &OwnBell) {
        let reader = self.lock_reader();
        let mut bells = locked(&self.bells);
        let is_it = |own: &Option<Arc<OwnBell>>| own.as_ref().is_some_and(|own| own.id() == bell.id());
        let Some(at) = bells.iter().position(is_it) else { return };
        bells[at] = None;
        if !bell.is_of_this_process() {
            return;
        }
        let rung = rung(&bells);
        for incoming in &reader.incoming {
            incoming.live().slot().set_own_rung(rung);
            bell.leave(incoming.live().slot().memory());
        }
    }

    /// Has a sender that comes to the others ring whoever they ring. Under the reader's lock, before it may send.
    pub(crate) fn give_bells(&self, slot: &crate::memory::Slot) {
        let bells = locked(&self.bells);
        bells.iter().flatten().for_each(|bell| bell.join(slot.memory()));
        slot.set_own_rung(rung(&bells));
    }

    /// Takes the bells from a sender that goes.
    pub(crate) fn take_bells(&self, gone: &Incoming) {
        let slot = gone.live().slot();
        slot.set_own_rung(0);
        locked(&self.bells).iter().flatten().for_each(|bell| bell.leave(slot.memory()));
    }

    /// Whether a window has a datagram that no readiness of the kernel's tells of. No system call.
    pub(crate) fn has_news(&self) -> bool {
        self.may_have_news.load(Ordering::Acquire)
            && !is_any_held_here()
            && self.lock_reader().incoming.iter_mut().any(Incoming::has_begun)
    }

    /// A number that changes behind each arrival, while senders ring somebody.
    pub(crate) fn arrivals(&self) -> u64 {
        if is_any_held_here() {
            return 0;
        }
        let reader = self.lock_reader();
        let counts = reader.incoming.iter().map(|incoming| incoming.live().slot().arrivals().count());
        counts.fold(0, u64::wrapping_add)
    }
}

fn rung(bells: &[Option<Arc<OwnBell>>; 4]) -> u64 {
    let id = |(place, bell): (usize, &Option<Arc<OwnBell>>)| {
        bell.as_ref().map_or(0, |bell| u64::from(bell.id().0) << (16 * place))
    };
    bells.iter().enumerate().map(id).fold(0, |all, one| all | one)
}
