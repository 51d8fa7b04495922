//! Data interrupts between hosts: a message crosses by stores into a window in the memory of the interrupt's host, and is taken whole or not at all.
//!
//! Windows are `host/window`'s, so nothing is fenced and the order of lines is recovered where they come to (`yard.rs`). What a link has lost is not
//! sent again: whoever sends next is told, and begins anew.

use beeline_fabric::{
    Call, InterruptKind, InterruptNumber, LocalInterrupt, MAX_MESSAGE_BYTES, NodeId, Place, Refusal, Value,
};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::HostId;

use crate::interrupt::Link;
use crate::member::{HostMember, adapter};
use crate::yard::WindowId;

/// An interrupt of a member, of which each trigger is a message.
pub struct DataInterrupt {
    local: LocalInterrupt,
    /// By which others connect to it.
    pub number: InterruptNumber,
    place: Place,
    /// The host whose messages are looked for first.
    next: usize,
}

/// A connection to a data interrupt.
pub struct DataConnected {
    link: Link,
    host: HostId,
    /// `None` once a link was down, until the next trigger takes another one.
    window: Option<WindowId>,
}

impl HostMember {
    /// Makes an interrupt that is triggered with messages of at most [`MAX_MESSAGE_BYTES`].
    ///
    /// # Errors
    /// As [`HostMember::create_interrupt`].
    pub fn create_data_interrupt(
        &mut self,
        number: Option<InterruptNumber>,
    ) -> Result<DataInterrupt, Refusal> {
        let create = Call::CreateInterrupt { number, kind: InterruptKind::Data };
        let Value::Interrupt(local, number, _, place) = self.call(create)? else {
            return Err(Refusal::System);
        };
        Ok(DataInterrupt { local, number, place, next: 0 })
    }

    /// Removes it; messages that are not taken are lost.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn remove_data_interrupt(&mut self, interrupt: DataInterrupt) -> Result<(), Refusal> {
        self.call(Call::RemoveInterrupt(interrupt.local)).map(drop)
    }

    /// Takes the next message, as soon as there is one, and serves others meanwhile. Messages of one host come in their order; hosts take turns.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: none has come until then.
    pub fn wait_for_message(
        &mut self,
        interrupt: &mut DataInterrupt,
        until: Picoseconds,
    ) -> Result<Vec<u8>, Refusal> {
        loop {
            let count = self.yards.len();
            for at in (0..count).map(|turn| (interrupt.next + turn) % count) {
                if let Some(message) = self.yards[at].as_mut().and_then(|yard| yard.receive(interrupt.place))
                {
                    interrupt.next = at + 1;
                    return Ok(message);
                }
            }
            if self.now() >= until {
                return Err(Refusal::Timeout);
            }
            self.step(until);
        }
    }

    /// Connects to a data interrupt, as soon as it is there.
    ///
    /// # Errors
    /// As the member refuses it. [`Refusal::Nospc`]: there is no window left to that host.
    pub fn connect_data_interrupt(
        &mut self,
        node: NodeId,
        number: InterruptNumber,
        timeout_nanos: Option<u64>,
    ) -> Result<DataConnected, Refusal> {
        let (adapter, has_data) = (adapter(), true);
        let link = self.link(Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos })?;
        let host = self.host_of(node).ok_or(Refusal::NoSuchNodeid)?;
        let mut connected = DataConnected { link, host, window: None };
        match self.begin(&mut connected) {
            Ok(()) => Ok(connected),
            Err(refusal) => {
                self.disconnect_data_interrupt(connected)?;
                Err(refusal)
            }
        }
    }

    fn begin(&mut self, connected: &mut DataConnected) -> Result<(), Refusal> {
        let losses = self.sessions.losses(connected.host).ok_or(Refusal::NoRemoteLinkAccess)?;
        let place = connected.link.trigger.place();
        let yard = self.yards[usize::from(connected.host.0)].as_mut().ok_or(Refusal::NoSuchNodeid)?;
        connected.window = Some(yard.give(place, losses)?);
        Ok(())
    }

    /// Triggers a data interrupt with a message. It does not wait for anything.
    ///
    /// # Errors
    /// As [`HostMember::trigger`]. [`Refusal::IllegalParameter`]: the message is too long. [`Refusal::Nospc`]: too many are not taken yet.
    /// [`Refusal::TransferFailed`]: a link was down, and messages that were not taken by then may be lost; this message is not sent, and the
    /// next trigger sends again.
    pub fn trigger_with(&mut self, connected: &mut DataConnected, message: &[u8]) -> Result<(), Refusal> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(Refusal::IllegalParameter);
        }
        let own = self.own_board();
        let there = self.member.trigger(connected.link.remote, &own);
        let checked = there.and_then(|_| connected.link.trigger.check());
        if checked == Err(Refusal::NotConnected)
            && let (Some(window), Some(yard)) =
                (connected.window.take(), &mut self.yards[usize::from(connected.host.0)])
        {
            // Nobody takes what is in it.
            yard.end(window);
        }
        checked?;
        let losses = self.sessions.losses(connected.host).ok_or(Refusal::NoRemoteLinkAccess)?;
        if connected.window.is_none() {
            self.begin(connected)?;
        }
        let yard = self.yards[usize::from(connected.host.0)].as_mut().ok_or(Refusal::NoSuchNodeid)?;
        let window = connected.window.ok_or(Refusal::NotConnected)?;
        let sent = yard.send(window, losses, message);
        if sent == Err(Refusal::TransferFailed) {
            yard.end(window);
            connected.window = None;
        }
        sent
    }

    /// Ends a connection. What was sent is still taken.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn disconnect_data_interrupt(&mut self, connected: DataConnected) -> Result<(), Refusal> {
        if let (Some(window), Some(yard)) = (connected.window, &mut self.yards[usize::from(connected.host.0)])
        {
            yard.let_go(window);
        }
        self.call(Call::DisconnectInterrupt(connected.link.remote)).map(drop)
    }
}
