//! Triggering interrupts of other members, by loads and stores of this process.

use std::sync::{Arc, PoisonError};

use beeline_domain::Peer;
use beeline_fabric::{Call, MAX_MESSAGE_BYTES, Refusal, RemoteInterrupt, Trigger as Words, ring};
use beeline_window::{SendError, Sent};

use super::gear::SharedSender;
use crate::bell::FlagBell;
use crate::shared::Shared;
use crate::words::Coherent;

/// A connection to an interrupt of a node. It ends when this is dropped.
///
/// All threads may trigger, at the same time too. A trigger is some loads, and one store that is counted; it makes a system call only if
/// somebody sleeps for the interrupt.
#[derive(Debug)]
pub struct Trigger(Link);

/// A connection to a data interrupt of a node. It ends when this is dropped.
#[derive(Debug)]
pub struct DataTrigger {
    link: Link,
    sender: SharedSender,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) remote: RemoteInterrupt,
    pub(crate) words: Words<Coherent>,
    /// The other process; `None` if it is this one.
    pub(crate) peer: Option<Peer>,
    pub(crate) bell: FlagBell,
}

impl Trigger {
    pub(crate) fn new(link: Link) -> Self {
        Trigger(link)
    }

    /// Triggers the interrupt. What this thread stored before is seen by whoever takes it.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the interrupt is removed, or its process has ended; that is known some milliseconds later than it happens.
    /// [`Refusal::NoLinkAccess`] and [`Refusal::NoRemoteLinkAccess`]: a link is down.
    #[inline]
    pub fn trigger(&self) -> Result<(), Refusal> {
        self.0.check()?;
        self.0.words.raise();
        ring(&self.0.bell);
        Ok(())
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

impl Link {
    #[inline]
    fn check(&self) -> Result<(), Refusal> {
        // A child of fork has none of it mapped.
        if !self.shared.process.is_this() {
            return Err(Refusal::System);
        }
        if !self.peer.as_ref().is_none_or(Peer::is_alive) {
            return Err(Refusal::NotConnected);
        }
        self.words.check()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Err(refusal) = self.shared.call(Call::DisconnectInterrupt(self.remote)) {
            tracing::debug!(%refusal, "a trigger is dropped where it is not connected");
        }
    }
}
