//! Making interrupts, and connecting to them.

use std::sync::Arc;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, Call, InterruptKind, InterruptNumber, NodeId, Refusal, Value};

use super::each::Each;
use super::gear::Gear;
use super::link::{DataLink, Link};
use super::triggers::{DataTrigger, Trigger};
use super::{DataInterrupt, Interrupt, InterruptOptions, Own};
use crate::member::FabricMember;
use crate::shared::Shared;

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
        let each = Each::new(&self.shared, node, number, adapter);
        Ok(if each.connect()? { Trigger::of_each(each) } else { Trigger::new(link) })
    }

    /// As [`FabricMember::connect_interrupt`], to a data interrupt. With [`NodeId::GROUPS`] it is connected to each of the fabric that has
    /// the number and is one of several ([`InterruptOptions::is_group`]), also to those that are made later.
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
        if node == NodeId::GROUPS {
            return Ok(DataTrigger::of_each(Each::new(&self.shared, node, number, adapter)));
        }
        Ok(DataTrigger::new(DataLink { link, sender }))
    }

    fn own_interrupt(&self, kind: InterruptKind, options: InterruptOptions) -> Result<Own, Refusal> {
        let shared = Arc::clone(&self.shared);
        let number = options.number;
        let call = match kind {
            InterruptKind::Plain | InterruptKind::Counting if options.is_shared => {
                Call::CreateSharedInterrupt { number, is_counting: options.is_counting }
            }
            InterruptKind::Data if options.is_group => Call::CreateGroupInterrupt { number },
            kind => Call::CreateInterrupt { number, kind },
        };
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
}
