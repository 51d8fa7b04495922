//! Triggering interrupts of other members, by loads and stores of this process.

use std::time::{Duration, Instant};

use beeline_fabric::{
    AdapterNumber, Call, InterruptNumber, MAX_MESSAGE_BYTES, NodeId, Refusal, until_linked,
};
use beeline_spec::header::lines_of;
use beeline_window::{SendError, Sent};

use super::each::Each;
use super::link::{Connected, DataLink, Link, connected};
use super::yard::Sender;
use crate::member::BarMember;

/// A connection to an interrupt of a node. It ends when this is dropped. All threads may trigger, at the same time too.
///
/// One of several interrupts that share a number ([`BarInterruptOptions`](crate::BarInterruptOptions)) reaches each of them, also those that
/// were made after this. Such a trigger loads a word for each segment or interrupt that members of the node may have.
#[derive(Debug)]
pub struct BarTrigger(To);

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most are of one interrupt, and are triggered without a load of where it is"
)]
enum To {
    One(Link),
    /// One of several interrupts of a number.
    Each(Each<Link>),
}

/// A connection to a data interrupt of a node, or to those of a group. It ends when this is dropped.
///
/// A message to a group reaches each of it, also those that were made after this, or none: where the window of one has no room, or there is no
/// window for one, it goes to nobody, so that who tries again sends nobody a message twice. Who is behind a link that is down is skipped. As
/// for a shared number, a message loads a word for each segment or interrupt that members may have, here of all nodes.
#[derive(Debug)]
pub struct BarDataTrigger(ToData);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "as of `To`")]
enum ToData {
    One(DataLink),
    Each(Each<DataLink>),
}

impl BarTrigger {
    /// Triggers the interrupt. What this thread stored before is seen by whoever takes it.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the interrupt is removed, or its member has ended; that is known after the bound of the heartbeat.
    /// [`Refusal::NoLinkAccess`] and [`Refusal::NoRemoteLinkAccess`]: a link is down; the first one, too, if memory is gone.
    #[inline]
    pub fn trigger(&self) -> Result<(), Refusal> {
        match &self.0 {
            To::One(link) => link.trigger(),
            To::Each(each) => each.trigger(),
        }
    }
}

impl BarDataTrigger {
    /// Triggers the interrupt with a message of at most [`MAX_MESSAGE_BYTES`].
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: the message is longer. [`Refusal::Nospc`]: too many are not taken yet; this one is not stored.
    /// Others as [`BarTrigger::trigger`] has them.
    #[inline]
    pub fn trigger(&self, message: &[u8]) -> Result<(), Refusal> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(Refusal::IllegalParameter);
        }
        match &self.0 {
            ToData::One(to) => {
                to.link.check()?;
                let mut sender = to.sender();
                // A message is no store of its own that something else would push out of the core: nobody is rung.
                let sent = to.link.shared.space.ordered(|| send(&mut sender, message));
                let sent = sent.ok_or(Refusal::NotConnected)?;
                to.link.check_memory()?;
                sent
            }
            ToData::Each(each) => send_to_each(each, message),
        }
    }
}

#[inline]
fn send(sender: &mut Sender, message: &[u8]) -> Result<(), Refusal> {
    match sender.try_send(message) {
        Ok(Sent::Sent) => Ok(()),
        Ok(Sent::Full) => Err(Refusal::Nospc),
        // It counts lines as free that were never sent.
        Err(SendError::Credits(_) | SendError::ReceiverGone) => Err(Refusal::NotConnected),
        Err(SendError::TooLong { .. }) => Err(Refusal::IllegalParameter),
    }
}

/// Sends a message to all, or to none if one of them has no room for it.
fn send_to_each(each: &Each<DataLink>, message: &[u8]) -> Result<(), Refusal> {
    let (all, mut refused) = each.all()?;
    let mut senders = Vec::with_capacity(all.len());
    for to in &all {
        match to.link.check() {
            // Locked in the order that all threads have, and until the message is sent: nobody else takes the room meanwhile.
            Ok(()) => senders.push(to.sender()),
            Err(Refusal::NotConnected) => {}
            Err(refusal) => refused = refusal,
        }
    }
    let lines = lines_of(message.len() as u32);
    // One that counts wrong is found by the send, and keeps nobody from the message.
    let is_full = |sender: &mut Sender| sender.refresh().is_ok_and(|free_lines| free_lines < lines);
    if senders.iter_mut().any(|sender| is_full(sender)) {
        return Err(Refusal::Nospc);
    }
    let send_all = || senders.iter_mut().filter_map(|sender| send(sender, message).ok()).count();
    let space = &each.shared.space;
    let reached = space.ordered(send_all).ok_or(Refusal::NotConnected)?;
    if !space.is_intact() {
        return Err(Refusal::NoLinkAccess);
    }
    if reached > 0 { Ok(()) } else { Err(refused) }
}

impl BarMember {
    /// Connects to an interrupt of a node, as soon as it is there; at most `timeout`, at zero at once or not at all. Of several of a number
    /// those that go meanwhile hinder nobody.
    ///
    /// # Errors
    /// [`Refusal::Timeout`], if there was a time; at a timeout of zero the reason.
    pub fn connect_interrupt(
        &self,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
        timeout: Option<Duration>,
    ) -> Result<BarTrigger, Refusal> {
        let link: Link = self.link((node, number, adapter), false, timeout)?;
        let each = Each::new(&self.shared, node, number, adapter);
        Ok(BarTrigger(if each.connect()? { To::Each(each) } else { To::One(link) }))
    }

    /// As [`BarMember::connect_interrupt`], to a data interrupt. With [`NodeId::GROUPS`] it is connected to each of the fabric that has the
    /// number and is one of several ([`BarInterruptOptions::is_group`](crate::BarInterruptOptions)), also to those that are made later.
    ///
    /// # Errors
    /// As [`BarMember::connect_interrupt`]; [`Refusal::Nospc`]: this member is connected to as many data interrupts of that one as there
    /// are windows for, 1 to 8 by the size of the memory; or so it is with one of the group.
    pub fn connect_data_interrupt(
        &self,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
        timeout: Option<Duration>,
    ) -> Result<BarDataTrigger, Refusal> {
        let to: DataLink = self.link((node, number, adapter), true, timeout)?;
        if node != NodeId::GROUPS {
            return Ok(BarDataTrigger(ToData::One(to)));
        }
        let each = Each::new(&self.shared, node, number, adapter);
        // Each of them has a window for this connection from here on.
        each.connect()?;
        Ok(BarDataTrigger(ToData::Each(each)))
    }

    /// Connects, and to another one of the number where the first goes before it can be triggered.
    fn link<L: Connected>(
        &self,
        (node, number, adapter): (NodeId, InterruptNumber, AdapterNumber),
        has_data: bool,
        timeout: Option<Duration>,
    ) -> Result<L, Refusal> {
        let connect = |timeout: Option<Duration>| {
            let timeout_nanos = timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
            connected(&self.shared, Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos })
        };
        let began = Instant::now();
        until_linked(timeout, || began.elapsed(), connect, |remote| L::of(Link::to(&self.shared, remote)?))
    }
}

#[cfg(test)]
mod tests {
    use beeline_mmio::OnLoss;

    use super::*;
    use crate::memory::{BarMemory, Source};
    use crate::space::{PUSHES, Space};
    use crate::{BarConfig, BarInterruptOptions};

    /// Two members of a BAR that combines stores.
    fn members(sysfs: &std::path::Path) -> [BarMember; 2] {
        [4, 8].map(|node| {
            let (members, on_loss) = (2, OnLoss::Fatal);
            let space = Space::of(Source::of_test_bar(sysfs, 4 << 20), members, on_loss).unwrap();
            let memory = BarMemory::File(sysfs.to_owned());
            let (slot, adapter, nodes) = (None, AdapterNumber::new(0).unwrap(), [4, 8].map(NodeId).to_vec());
            let node = NodeId(node);
            BarMember::join(space, BarConfig { memory, members, slot, node, adapter, nodes, on_loss })
                .unwrap()
        })
    }

    /// Its program had seen a memory that nobody used, and stood still until now.
    #[test]
    fn header_that_another_writes_into_a_device_later_ends_the_members() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let [owner, _user] = members(dir.path());
        owner.shared.space.segment.region().unwrap().word(0).store(0);
        Space::of(Source::of_test_bar(dir.path(), 4 << 20), 8, OnLoss::Fatal).unwrap();
        let lost = owner.wait_until(Some(Duration::from_secs(60)), || owner.lost()).unwrap();
        assert_eq!(lost, crate::Lost::Remade);
        assert_eq!(owner.create_interrupt(BarInterruptOptions::default()).unwrap_err(), Refusal::System);
    }

    /// As of a function that was reset, or whose memory is switched off: nothing faults, and all bits are alike.
    #[test]
    fn device_that_does_not_answer_is_memory_that_is_gone_and_no_other_member() {
        for bits in [0, u64::MAX] {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let [owner, _user] = members(dir.path());
            owner.shared.space.segment.region().unwrap().fill(0, 4 << 20, bits);
            let lost = owner.wait_until(Some(Duration::from_secs(60)), || owner.lost()).unwrap();
            assert_eq!(lost, crate::Lost::NoMemory);
            let refused = owner.create_interrupt(BarInterruptOptions::default()).unwrap_err();
            assert_eq!(refused, Refusal::NoLinkAccess);
        }
    }

    #[test]
    fn trigger_and_message_in_memory_of_a_device_are_pushed_out_of_the_core() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let [owner, user] = members(dir.path());
        let number = Some(InterruptNumber(3));
        let options = BarInterruptOptions { number, ..Default::default() };
        let (plain, data) =
            (owner.create_interrupt(options).unwrap(), owner.create_data_interrupt(options).unwrap());
        let to = (NodeId(4), InterruptNumber(3), AdapterNumber::new(0).unwrap());
        let trigger = user.connect_interrupt(to.0, to.1, to.2, None).unwrap();
        let data_trigger = user.connect_data_interrupt(to.0, to.1, to.2, None).unwrap();
        let pushes = |act: &dyn Fn()| {
            let before = PUSHES.get();
            act();
            PUSHES.get() - before
        };
        assert_eq!(pushes(&|| trigger.trigger().unwrap()), 1);
        assert_eq!(pushes(&|| data_trigger.trigger(b"pushed").unwrap()), 1);
        let of_group = BarInterruptOptions { is_group: true, ..options };
        let _group = [&owner, &user].map(|member| member.create_data_interrupt(of_group).unwrap());
        let group = user.connect_data_interrupt(NodeId::GROUPS, to.1, to.2, None).unwrap();
        assert_eq!(pushes(&|| group.trigger(b"to all").unwrap()), 1);
        plain.wait(None).unwrap();
        let mut message = [0; 8];
        assert_eq!(data.wait(&mut message, None), Ok(6));
        assert_eq!(&message[..6], b"pushed");
    }

    #[test]
    fn who_connects_has_another_of_the_number_where_the_first_goes_before_it_is_linked() {
        let number = InterruptNumber(5);
        let (node, adapter) = (NodeId(4), AdapterNumber::new(0).unwrap());
        for timeout in [Some(Duration::ZERO), Some(Duration::from_secs(1000)), None] {
            let (_dir, memory) = crate::test_members::memory(8 << 20);
            let join = || crate::test_members::member_of(&memory, None, 3);
            let [first, second, user] = [(); 3].map(|()| join());
            let options = BarInterruptOptions { number: Some(number), is_shared: true, ..Default::default() };
            let made = first.create_interrupt(options).unwrap();
            let mut first = Some((made, first));
            let mut taken = None;
            let connect = |timeout: Option<Duration>| {
                let timeout_nanos = timeout.map(|timeout| timeout.as_nanos() as u64);
                let has_data = false;
                connected(
                    &user.shared,
                    Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos },
                )
            };
            let link: Link = until_linked(
                timeout,
                || Duration::ZERO,
                connect,
                |remote| {
                    if let Some(first) = first.take() {
                        taken = Some(second.create_interrupt(options).unwrap());
                        drop(first);
                    }
                    Link::to(&user.shared, remote)
                },
            )
            .unwrap();
            link.trigger().unwrap();
            assert_eq!(taken.unwrap().wait(Some(Duration::from_secs(1000))), Ok(()));
        }
    }
}
