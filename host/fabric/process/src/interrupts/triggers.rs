//! Triggering interrupts of other members, by loads and stores of this process.

use std::sync::{MutexGuard, PoisonError};

use beeline_fabric::{MAX_MESSAGE_BYTES, Refusal, ring};
use beeline_spec::header::lines_of;
use beeline_window::{SendError, Sent};

use super::each::Each;
use super::link::{DataLink, Link};
use crate::yard::Sender;

/// A connection to an interrupt of a node. It ends when this is dropped.
///
/// All threads may trigger, at the same time too. A trigger is some loads, and one store that is counted; it makes a system call only if
/// somebody sleeps for the interrupt. One of several interrupts that share a number ([`InterruptOptions`](crate::InterruptOptions)) reaches each
/// of them, also those that were made after this; it asks the registry of the node, which takes system calls, and connects to those that are
/// new. Who does not answer is skipped.
#[derive(Debug)]
pub struct Trigger(To);

#[derive(Debug)]
enum To {
    One(Link),
    /// One of several interrupts of a number.
    Each(Each<Link>),
}

/// A connection to a data interrupt of a node, or to those of a group. It ends when this is dropped.
///
/// A message to a group reaches each of it, also those that were made after this, or none: where the queue of one is full it goes to
/// nobody, so that who tries again sends nobody a message twice. As for a shared number, each message asks the registry, who does not
/// answer is skipped, and so is who is behind a link that is down.
#[derive(Debug)]
pub struct DataTrigger(ToData);

#[derive(Debug)]
enum ToData {
    One(DataLink),
    Each(Each<DataLink>),
}

impl Trigger {
    pub(crate) fn new(link: Link) -> Self {
        Trigger(To::One(link))
    }

    pub(crate) fn of_each(each: Each<Link>) -> Self {
        Trigger(To::Each(each))
    }

    /// Triggers the interrupt. What this thread stored before is seen by whoever takes it.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the interrupt is removed, or its process has ended; that is known some milliseconds later than it happens.
    /// [`Refusal::NoLinkAccess`] and [`Refusal::NoRemoteLinkAccess`]: a link is down.
    #[inline]
    pub fn trigger(&self) -> Result<(), Refusal> {
        match &self.0 {
            To::One(link) => link.trigger(),
            To::Each(each) => each.trigger(),
        }
    }
}

impl DataTrigger {
    pub(crate) fn new(link: DataLink) -> Self {
        DataTrigger(ToData::One(link))
    }

    pub(crate) fn of_each(each: Each<DataLink>) -> Self {
        DataTrigger(ToData::Each(each))
    }

    /// Triggers the interrupt with a message of at most [`MAX_MESSAGE_BYTES`].
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: the message is longer. [`Refusal::Nospc`]: too many are not taken yet; this one is not stored.
    /// Others as [`Trigger::trigger`] has them.
    #[inline]
    pub fn trigger(&self, message: &[u8]) -> Result<(), Refusal> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(Refusal::IllegalParameter);
        }
        match &self.0 {
            ToData::One(to) => {
                to.link.check()?;
                send(&mut to.sender(), message)?;
                ring(&to.link.bell);
                Ok(())
            }
            ToData::Each(each) => send_to_each(each, message),
        }
    }
}

impl DataLink {
    fn sender(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
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
    let all = each.all()?;
    let mut refused = Refusal::NotConnected;
    let mut those = Vec::with_capacity(all.len());
    for to in &all {
        match to.link.check() {
            // Locked in the order that all threads have, and until the message is sent: nobody else takes the room meanwhile.
            Ok(()) => those.push((to, to.sender())),
            Err(Refusal::NotConnected) => {}
            Err(refusal) => refused = refusal,
        }
    }
    let lines = lines_of(message.len() as u32);
    // One that counts wrong is found by the send, and keeps nobody from the message.
    let is_full = |sender: &mut Sender| sender.refresh().is_ok_and(|free_lines| free_lines < lines);
    if those.iter_mut().any(|(_, sender)| is_full(sender)) {
        return Err(Refusal::Nospc);
    }
    let mut reached = 0;
    for (to, mut sender) in those {
        if send(&mut sender, message).is_ok() {
            drop(sender);
            ring(&to.link.bell);
            reached += 1;
        }
    }
    if reached > 0 { Ok(()) } else { Err(refused) }
}
