//! Interrupts between hosts: counts that whoever triggers pushes behind its stores, and that the interrupt's member polls.
//!
//! Nothing sleeps here, and no platform file says what an interrupt of an adapter costs; so none is modelled. A count is pushed anew after a link
//! was down, as all that a member publishes.

use beeline_fabric::{
    Call, Candidate, InterruptKind, InterruptNumber, LocalInterrupt, NodeId, Refusal, RemoteInterrupt, Take,
    Trigger, Value,
};
use beeline_link_sim::des::Picoseconds;

use crate::member::{HostMember, adapter};
use crate::words::{Across, View};

/// How long one of several interrupts is waited for that is connected to at a trigger.
const PATIENCE_NANOS: u64 = 1_000_000;

/// An interrupt of a member.
pub struct Interrupt {
    local: LocalInterrupt,
    /// By which others connect to it.
    pub number: InterruptNumber,
    take: Take<View>,
}

/// How an interrupt is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptOptions {
    /// Its number; `None`: one that is free.
    pub number: Option<InterruptNumber>,
    /// Each trigger has its wait.
    pub is_counting: bool,
    /// Others may have the same number.
    pub is_shared: bool,
}

/// A connection to the interrupts that have a number.
pub struct Connected {
    node: NodeId,
    number: InterruptNumber,
    links: Vec<Link>,
}

pub(crate) struct Link {
    pub(crate) remote: RemoteInterrupt,
    pub(crate) trigger: Trigger<Across>,
}

impl HostMember {
    /// Makes an interrupt that is triggered without data.
    ///
    /// # Errors
    /// [`Refusal::IntnoUsed`]: the number is had by an interrupt that is alone, or this one is to be.
    pub fn create_interrupt(&mut self, options: InterruptOptions) -> Result<Interrupt, Refusal> {
        let InterruptOptions { number, is_counting, is_shared } = options;
        let kind = if is_counting { InterruptKind::Counting } else { InterruptKind::Plain };
        let call = match is_shared {
            true => Call::CreateSharedInterrupt { number, is_counting },
            false => Call::CreateInterrupt { number, kind },
        };
        let Value::Interrupt(local, number, _, place) = self.call(call)? else { return Err(Refusal::System) };
        Ok(Interrupt { local, number, take: Take::new(place, is_counting) })
    }

    /// Removes an interrupt: whoever is connected sees it when it triggers it.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn remove_interrupt(&mut self, interrupt: Interrupt) -> Result<(), Refusal> {
        self.call(Call::RemoveInterrupt(interrupt.local)).map(drop)
    }

    /// Takes one interrupt, as soon as it has come, and serves others meanwhile.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: none has come until then.
    pub fn wait_for_interrupt(
        &mut self,
        interrupt: &mut Interrupt,
        until: Picoseconds,
    ) -> Result<(), Refusal> {
        loop {
            for (pair, claimed) in self.consumers() {
                if !interrupt.take.has(pair) {
                    interrupt.take.admit(pair, claimed);
                }
            }
            interrupt.take.retain(|pair| self.consumers().any(|(it, _)| it == pair));
            if interrupt.take.take() {
                return Ok(());
            }
            if self.now() >= until {
                return Err(Refusal::Timeout);
            }
            self.step(until);
        }
    }

    /// Connects to the interrupts of a number, as soon as there is one.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn connect_interrupt(
        &mut self,
        node: NodeId,
        number: InterruptNumber,
        timeout_nanos: Option<u64>,
    ) -> Result<Connected, Refusal> {
        let (adapter, has_data) = (adapter(), false);
        let call = Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos };
        let links = vec![self.link(call)?];
        Ok(Connected { node, number, links })
    }

    /// Triggers each interrupt of the number that is reached, also those that were made since. What this core stored before is there when
    /// it is taken.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: all are removed, or their host is gone. [`Refusal::NoLinkAccess`] and
    /// [`Refusal::NoRemoteLinkAccess`]: a link is down.
    pub fn trigger(&mut self, connected: &mut Connected) -> Result<(), Refusal> {
        let own = self.own_board();
        let (links, ended) = std::mem::take(&mut connected.links)
            .into_iter()
            .partition(|link| self.member.trigger(link.remote, &own).is_ok());
        connected.links = links;
        // They are gone from the connection, whatever comes of it.
        let _ = self.let_go(ended);
        for at in self.names.shared(connected.node, connected.number) {
            if !connected.links.iter().any(|link| link.trigger.place().slot == at.slot) {
                connected.links.extend(self.link_to(connected, at));
            }
        }
        let mut outcome = Err(Refusal::NotConnected);
        for link in &connected.links {
            match link.trigger.check() {
                Ok(()) => {
                    link.trigger.raise();
                    outcome = Ok(());
                }
                Err(refusal) if outcome == Err(Refusal::NotConnected) => outcome = Err(refusal),
                Err(_) => {}
            }
        }
        outcome
    }

    /// Ends a connection to interrupts.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn disconnect_interrupt(&mut self, connected: Connected) -> Result<(), Refusal> {
        self.let_go(connected.links)
    }

    /// Disconnects all of them, and returns the first refusal.
    fn let_go(&mut self, links: Vec<Link>) -> Result<(), Refusal> {
        let outcomes: Vec<_> = links
            .into_iter()
            .map(|link| self.call(Call::DisconnectInterrupt(link.remote)).map(drop))
            .collect();
        outcomes.into_iter().collect()
    }

    fn link_to(&mut self, connected: &Connected, at: Candidate) -> Option<Link> {
        let (node, number, adapter, timeout_nanos) =
            (connected.node, connected.number, adapter(), PATIENCE_NANOS);
        self.link(Call::ConnectSharedInterrupt { node, number, adapter, at, timeout_nanos }).ok()
    }

    pub(crate) fn link(&mut self, call: Call) -> Result<Link, Refusal> {
        let Value::Trigger(remote) = self.call(call)? else { return Err(Refusal::System) };
        let own = self.own_board();
        let (_, trigger) = self.member.trigger(remote, &own)?;
        Ok(Link { remote, trigger })
    }
}

#[cfg(test)]
mod tests {
    use beeline_link_sim::machine::hosts::{HostId, Hosts};
    use beeline_platforms::Platform;

    use super::*;
    use crate::assembly::{Shape, hosts};
    use crate::programs::{Core, Program, run};
    use crate::wiring::{Wiring, node_of};

    const SHARED: InterruptOptions =
        InterruptOptions { number: Some(InterruptNumber(9)), is_counting: true, is_shared: true };

    fn serve_until(member: &mut HostMember, us: u64) {
        member.serve(Picoseconds::from_ns(us * 1_000), |_| false);
    }

    #[test]
    fn links_to_removed_interrupts_are_disconnected_by_a_trigger_and_all_others_at_the_end() {
        let settings = hosts(&Platform::named("vpx3-1259-gen2x4-linux").unwrap(), &Shape::Pair).unwrap();
        let mut hosts = Hosts::new(settings, 1).unwrap();
        let wiring = Wiring::new(&mut hosts, 2);
        let other = wiring.clone();
        let provider = move |core: Core| {
            let mut member = HostMember::new(&core, &wiring, 5);
            let mut made = [(); 3].map(|()| Some(member.create_interrupt(SHARED).unwrap()));
            serve_until(&mut member, 6_000);
            member.remove_interrupt(made[0].take().unwrap()).unwrap();
            serve_until(&mut member, 8_000);
        };
        let user = move |core: Core| {
            let mut member = HostMember::new(&core, &other, 5);
            serve_until(&mut member, 5_000);
            let node = node_of(HostId(0));
            let mut connected = member.connect_interrupt(node, InterruptNumber(9), None).unwrap();
            member.trigger(&mut connected).unwrap();
            let remotes = |connected: &Connected| -> Vec<_> {
                connected.links.iter().map(|link| link.remote).collect()
            };
            let before = remotes(&connected);
            serve_until(&mut member, 7_000);
            member.trigger(&mut connected).unwrap();
            let after = remotes(&connected);
            assert_eq!((before.len(), after.len()), (3, 2));
            let gone = *before.iter().find(|remote| !after.contains(remote)).unwrap();
            let mut disconnect = |remote| member.call(Call::DisconnectInterrupt(remote)).map(drop);
            assert_eq!(disconnect(gone), Err(Refusal::IllegalParameter), "it is disconnected");
            assert_eq!(disconnect(after[0]), Ok(()));
            assert_eq!(member.disconnect_interrupt(connected), Err(Refusal::IllegalParameter));
            let again = member.call(Call::DisconnectInterrupt(after[1])).map(drop);
            assert_eq!(
                again,
                Err(Refusal::IllegalParameter),
                "it is disconnected although another one was refused"
            );
        };
        let programs: Vec<Program<'_, ()>> =
            vec![(HostId(0), Box::new(provider)), (HostId(1), Box::new(user))];
        run(hosts, programs);
    }
}
