//! Interrupts between hosts: counts that whoever triggers pushes behind its stores, and that the interrupt's member polls.
//!
//! Nothing sleeps here, and no platform file says what an interrupt of an adapter costs; so none is modelled. A count is pushed anew after a link
//! was down, as all that a member publishes.

use beeline_fabric::{
    Call, Candidate, InterruptKind, InterruptNumber, LocalInterrupt, NodeId, Refusal, RemoteInterrupt, Take,
    Trigger, Value,
};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::HostId;

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

struct Link {
    remote: RemoteInterrupt,
    peer: HostId,
    trigger: Trigger<Across>,
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
        for at in self.names.shared(connected.node, connected.number) {
            if !connected.links.iter().any(|link| link.trigger.place().slot == at.slot && link.is_there()) {
                connected.links.extend(self.link_to(connected, at));
            }
        }
        let mut outcome = Err(Refusal::NotConnected);
        for link in &connected.links {
            let is_there = self.sessions.is_there(link.peer);
            let checked = if is_there { link.trigger.check() } else { Err(Refusal::NotConnected) };
            match checked {
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
        let mut links = connected.links.into_iter();
        links.try_for_each(|link| self.call(Call::DisconnectInterrupt(link.remote)).map(drop))
    }

    fn link_to(&mut self, connected: &Connected, at: Candidate) -> Option<Link> {
        let (node, number, adapter, timeout_nanos) =
            (connected.node, connected.number, adapter(), PATIENCE_NANOS);
        self.link(Call::ConnectSharedInterrupt { node, number, adapter, at, timeout_nanos }).ok()
    }

    fn link(&mut self, call: Call) -> Result<Link, Refusal> {
        let Value::Trigger(remote) = self.call(call)? else { return Err(Refusal::System) };
        let own = self.own_board();
        let (pair, trigger) = self.member.trigger(remote, &own)?;
        let peer = self.provider(pair).ok_or(Refusal::NotConnected)?;
        Ok(Link { remote, peer, trigger })
    }
}

impl Link {
    fn is_there(&self) -> bool {
        self.trigger.check() != Err(Refusal::NotConnected)
    }
}
