//! Making interrupts, and connecting to them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_fabric::{
    AdapterNumber, Call, InterruptKind, InterruptNumber, NodeId, Refusal, Value, until_linked,
};

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

    /// Connects to an interrupt of a node, as soon as it is there; at most `timeout`, at zero at once or not at all. Of several of a number
    /// those that go meanwhile hinder nobody.
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
    /// Connects to an interrupt, and to another one of its number where the first goes before it can be triggered.
    fn connect_interrupt(
        self: &Arc<Self>,
        node: NodeId,
        number: InterruptNumber,
        has_data: bool,
        (adapter, timeout): (AdapterNumber, Option<Duration>),
    ) -> Result<(Link, Arc<Gear>), Refusal> {
        let connect = |timeout: Option<Duration>| {
            let timeout_nanos = timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
            let call = Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos };
            let Value::Trigger(remote) = self.call(call)? else { return Err(Refusal::System) };
            Ok(remote)
        };
        let began = Instant::now();
        until_linked(
            timeout,
            || began.elapsed(),
            connect,
            |remote| {
                self.link(remote).inspect_err(|_| {
                    let _gone = self.call(Call::DisconnectInterrupt(remote));
                })
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sole_node::{NODE, adapter, member};

    const NUMBER: InterruptNumber = InterruptNumber(5);

    fn interrupt(member: &FabricMember) -> Interrupt {
        let options = InterruptOptions { number: Some(NUMBER), is_shared: true, ..Default::default() };
        member.create_interrupt(options).unwrap()
    }

    #[test]
    fn who_connects_has_another_of_the_number_where_the_first_goes_before_it_is_linked() {
        let dir = tempfile::tempdir().unwrap();
        for timeout in [Some(Duration::ZERO), Some(Duration::from_secs(1000)), None] {
            let [first, second, user] = [(); 3].map(|()| member(dir.path()));
            let mut first = Some((interrupt(&first), first));
            let mut taken = None;
            let connect = |timeout: Option<Duration>| {
                let timeout_nanos = timeout.map(|timeout| timeout.as_nanos() as u64);
                let (node, number, has_data, adapter) = (NODE, NUMBER, false, adapter());
                match user.shared.call(Call::ConnectInterrupt {
                    node,
                    number,
                    has_data,
                    adapter,
                    timeout_nanos,
                })? {
                    Value::Trigger(remote) => Ok(remote),
                    other => panic!("{other:?} is no connection"),
                }
            };
            let (link, _) = until_linked(
                timeout,
                || Duration::ZERO,
                connect,
                |remote| {
                    if let Some(first) = first.take() {
                        taken = Some(interrupt(&second));
                        drop(first);
                    }
                    user.shared.link(remote)
                },
            )
            .unwrap();
            link.trigger().unwrap();
            assert_eq!(taken.unwrap().wait(Some(Duration::from_secs(1000))), Ok(()));
        }
    }
}
