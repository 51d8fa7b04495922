//! Which memory of devices is behind which segments.

use beeline_contract_adapter::{PublishPort, ViewPort};
use beeline_fabric::Slot;
use beeline_link_sim::machine::hosts::HostId;

use crate::session::Sessions;
use crate::wiring::ATTACHED;
use crate::words::{Published, View};

/// Where the memory of segments of devices is: a table of each host, which it pushes to every other one.
pub(crate) struct Attached {
    own: Published,
    own_words: View,
}

impl Attached {
    pub(crate) fn new(own: Published, own_words: View) -> Self {
        Attached { own, own_words }
    }

    pub(crate) fn words(&self) -> &Published {
        &self.own
    }

    pub(crate) fn free_entry(&self) -> Option<u32> {
        (0..ATTACHED).find(|at| self.own_words.load(at * 2) == 0)
    }

    pub(crate) fn put(&mut self, at: u32, slot: Slot, address: u64) {
        self.own.publish(at * 2 + 1, address);
        self.own.publish(at * 2, u64::from(slot.0) + 1);
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        for at in (0..ATTACHED)
            .filter(|at| self.own_words.load(at * 2) == u64::from(slot.0) + 1)
            .collect::<Vec<_>>()
        {
            self.own.publish(at * 2, 0);
        }
    }
}

/// The address that a host says that the memory of an entry of its board has. What it says is not checked.
pub(crate) fn address_of(sessions: &Sessions, provider: HostId, slot: Slot) -> Option<u64> {
    let here = sessions.wiring.of(sessions.core.host());
    let table = View::new(sessions.core.clone(), here.attached_of[usize::from(provider.0)]);
    let found = (0..ATTACHED).find(|at| table.load(at * 2) == u64::from(slot.0) + 1);
    found.map(|at| table.load(at * 2 + 1))
}
