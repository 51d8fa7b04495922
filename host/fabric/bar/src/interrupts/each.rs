//! Triggering each of several interrupts that have one number, of a node or of the fabric.
//!
//! They come and go while a program is connected to the number, so each trigger looks through the names of the members, and connects to those
//! that are new. Nobody is waited for: a connection takes loads and stores of this process alone.

use std::sync::{Arc, Mutex, PoisonError};

use beeline_fabric::{AdapterNumber, Call, Candidate, InterruptNumber, Name, NodeId, Refusal};

use super::link::{Connected, Link};
use crate::shared::Shared;

#[derive(Debug)]
pub(super) struct Each<L> {
    pub(super) shared: Arc<Shared>,
    node: NodeId,
    number: InterruptNumber,
    adapter: AdapterNumber,
    /// Those that this is connected to.
    links: Mutex<Vec<(Candidate, Arc<L>)>>,
}

impl<L: Connected> Each<L> {
    pub(super) fn new(
        shared: &Arc<Shared>,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
    ) -> Self {
        Each { shared: Arc::clone(shared), node, number, adapter, links: Mutex::default() }
    }

    /// Whether the number is one of several interrupts, to each of which this is connected then.
    pub(super) fn connect(&self) -> Result<bool, Refusal> {
        let (links, _) = self.all()?;
        Ok(!links.is_empty())
    }

    /// Those that are connected to, in an order that all threads have, and what is wrong with those that cannot be.
    ///
    /// # Errors
    /// [`Refusal::Nospc`]: there is no window for messages to one of them. Those of [`Shared::check`].
    pub(super) fn all(&self) -> Result<(Vec<Arc<L>>, Refusal), Refusal> {
        // First: a child of fork has the parent's locks as they were.
        self.shared.check()?;
        let name = Name::one_of_several(self.node, self.number);
        let there = self.shared.enter(|state, _| {
            self.shared.meet_newcomers(state);
            self.shared.find(state, self.node, name).candidates
        });
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|(at, link)| there.contains(at) && link.link().check() != Err(Refusal::NotConnected));
        let mut refused = Refusal::NotConnected;
        for at in there {
            if links.iter().any(|(known, _)| *known == at) {
                continue;
            }
            match self.link(at) {
                Ok(link) => links.push((at, Arc::new(link))),
                // It is removed meanwhile, or its member is gone.
                Err(Refusal::NoSuchIntno | Refusal::NodeNotResponding | Refusal::NotConnected) => {}
                Err(Refusal::Nospc) => return Err(Refusal::Nospc),
                Err(refusal) => refused = refusal,
            }
        }
        links.sort_unstable_by_key(|(at, _)| (at.member, at.slot));
        Ok((links.iter().map(|(_, link)| Arc::clone(link)).collect(), refused))
    }

    fn link(&self, at: Candidate) -> Result<L, Refusal> {
        let (node, number, adapter) = (self.node, self.number, self.adapter);
        // Its member is reached at once or not at all.
        let connect = Call::ConnectSharedInterrupt { node, number, adapter, at, timeout_nanos: 0 };
        L::of(Link::connect(&self.shared, connect)?)
    }
}

impl Each<Link> {
    /// Triggers each that is reached. It fails if none is.
    pub(super) fn trigger(&self) -> Result<(), Refusal> {
        let (links, mut refused) = self.all()?;
        let mut is_any_reached = false;
        for link in links {
            match link.trigger() {
                Ok(()) => is_any_reached = true,
                Err(Refusal::NotConnected) => {}
                Err(refusal) => refused = refusal,
            }
        }
        if is_any_reached { Ok(()) } else { Err(refused) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BarInterruptOptions;
    use crate::interrupts::link::DataLink;
    use crate::test_members::{member, memory};

    /// One has found them one after the other, in either order of their slots; the other has found all at once.
    #[test]
    fn all_are_in_the_same_order_for_whoever_has_found_them_in_another() {
        let (_dir, memory) = memory(8 << 20);
        let adapter = AdapterNumber::new(0).unwrap();
        let members = [0, 1].map(|slot| member(&memory, Some(slot)));
        let number = InterruptNumber(5);
        let options = BarInterruptOptions { number: Some(number), is_group: true, ..Default::default() };
        for order in [[0, 1], [1, 0]] {
            let each = || Each::<DataLink>::new(&members[0].shared, NodeId::GROUPS, number, adapter);
            let (by_one, at_once) = (each(), each());
            let _made = order.map(|at: usize| {
                let made = members[at].create_data_interrupt(options).unwrap();
                assert!(by_one.connect().unwrap());
                made
            });
            let windows = |each: &Each<DataLink>| {
                let all = each.all().unwrap().0;
                all.iter().map(|to| std::ptr::from_ref(&*to.sender()) as usize).collect::<Vec<_>>()
            };
            let found = windows(&by_one);
            assert_eq!((found.len(), &found), (2, &windows(&at_once)));
        }
    }
}
