//! Making interrupts, and connecting to them.

use std::sync::Arc;
use std::time::Duration;

use beeline_fabric::{
    AdapterNumber, Call, InterruptKind, InterruptNumber, NodeId, PairId, Refusal, RemoteInterrupt,
    Trigger as Words, Value,
};

use super::gear::Gear;
use super::triggers::{DataTrigger, Link, Trigger};
use super::{DataInterrupt, Interrupt, InterruptOptions, Own};
use crate::member::FabricMember;
use crate::pair::Pair;
use crate::shared::Shared;
use crate::words::Coherent;

impl FabricMember {
    /// Makes an interrupt that is triggered without data.
    ///
    /// # Errors
    /// [`Refusal::IntnoUsed`]: a living process of the node has the number. [`Refusal::MaxEntries`]: there is no room for another.
    pub fn create_interrupt(&self, options: InterruptOptions) -> Result<Interrupt, Refusal> {
        let kind = if options.is_counting { InterruptKind::Counting } else { InterruptKind::Plain };
        Ok(Interrupt::new(self.own_interrupt(kind, options)?))
    }

    /// Makes an interrupt that is triggered with messages.
    ///
    /// # Errors
    /// As [`FabricMember::create_interrupt`].
    pub fn create_data_interrupt(&self, options: InterruptOptions) -> Result<DataInterrupt, Refusal> {
        Ok(DataInterrupt::new(self.own_interrupt(InterruptKind::Data, options)?))
    }

    /// Connects to an interrupt of a node, as soon as it is there; at most `timeout`, at zero at once or not at all.
    ///
    /// # Errors
    /// [`Refusal::Timeout`], if there was a time; at a timeout of zero the reason. [`Refusal::NoSuchIntno`]: nobody of the node has it.
    /// [`Refusal::NodeNotResponding`]: nobody of the node lives, or its member does not answer. Those of links as
    /// [`Trigger::trigger`] has them.
    pub fn connect_interrupt(
        &self,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
        timeout: Option<Duration>,
    ) -> Result<Trigger, Refusal> {
        let (link, _) = self.shared.connect_interrupt(node, number, false, (adapter, timeout))?;
        Ok(Trigger::new(link))
    }

    /// As [`FabricMember::connect_interrupt`], to a data interrupt.
    ///
    /// # Errors
    /// As [`FabricMember::connect_interrupt`]; [`Refusal::Nospc`]: a limit on the size of files leaves no room for messages.
    pub fn connect_data_interrupt(
        &self,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
        timeout: Option<Duration>,
    ) -> Result<DataTrigger, Refusal> {
        let (link, gear) = self.shared.connect_interrupt(node, number, true, (adapter, timeout))?;
        let sender = gear.sender(&link.words)?;
        Ok(DataTrigger::new(link, sender))
    }

    fn own_interrupt(&self, kind: InterruptKind, options: InterruptOptions) -> Result<Own, Refusal> {
        let shared = Arc::clone(&self.shared);
        let call = Call::CreateInterrupt { number: options.number, kind };
        let Value::Interrupt(local, number, _, _) = shared.call(call)? else { return Err(Refusal::System) };
        let waited = shared.lock().interrupts.get(&local).cloned().ok_or(Refusal::System)?;
        Ok(Own { shared, local, number, waited, options })
    }
}

impl Shared {
    fn connect_interrupt(
        self: &Arc<Self>,
        node: NodeId,
        number: InterruptNumber,
        has_data: bool,
        (adapter, timeout): (AdapterNumber, Option<Duration>),
    ) -> Result<(Link, Arc<Gear>), Refusal> {
        let timeout_nanos = timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let call = Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos };
        let Value::Trigger(remote) = self.call(call)? else { return Err(Refusal::System) };
        self.link(remote).inspect_err(|_| {
            let _gone = self.call(Call::DisconnectInterrupt(remote));
        })
    }

    /// What a connection that is made is triggered with.
    fn link(self: &Arc<Self>, remote: RemoteInterrupt) -> Result<(Link, Arc<Gear>), Refusal> {
        let (words, (gear, peer)) = self.enter(|state, _| {
            let (pair, words): (PairId, Words<Coherent>) = state.member.trigger(remote, &self.board_view)?;
            let pair = state.pairs.get(&pair).ok_or(Refusal::NotConnected)?;
            let gear = pair.gear().cloned().ok_or(Refusal::System)?;
            Ok::<_, Refusal>((words, (gear, Pair::peer(pair).cloned())))
        })?;
        let bell = gear.bell(words.place(), peer.as_ref());
        Ok((Link { shared: Arc::clone(self), remote, words, peer, bell }, gear))
    }
}
