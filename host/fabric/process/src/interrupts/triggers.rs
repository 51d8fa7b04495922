//! Triggering interrupts of other members, by loads and stores of this process.

use std::sync::PoisonError;

use beeline_fabric::{MAX_MESSAGE_BYTES, Refusal, ring};
use beeline_window::{SendError, Sent};

use super::each::Each;
use super::gear::SharedSender;
use super::link::Link;

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
    Each(Each),
}

/// A connection to a data interrupt of a node. It ends when this is dropped.
#[derive(Debug)]
pub struct DataTrigger {
    link: Link,
    sender: SharedSender,
}

impl Trigger {
    pub(crate) fn new(link: Link) -> Self {
        Trigger(To::One(link))
    }

    pub(crate) fn of_each(each: Each) -> Self {
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
    pub(crate) fn new(link: Link, sender: SharedSender) -> Self {
        DataTrigger { link, sender }
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
        self.link.check()?;
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        match sender.try_send(message) {
            Ok(Sent::Sent) => {}
            Ok(Sent::Full) => return Err(Refusal::Nospc),
            // It counts lines as free that were never sent.
            Err(SendError::Credits(_) | SendError::ReceiverGone) => return Err(Refusal::NotConnected),
            Err(SendError::TooLong { .. }) => return Err(Refusal::IllegalParameter),
        }
        drop(sender);
        ring(&self.link.bell);
        Ok(())
    }
}
