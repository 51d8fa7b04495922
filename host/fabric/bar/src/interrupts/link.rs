//! One connection to one interrupt: what is loaded and stored to trigger it.

use std::sync::{Arc, MutexGuard, PoisonError};

use beeline_fabric::{Call, Refusal, RemoteInterrupt, Trigger as Words, Value};

use super::yard::{Sender, SharedSender};
use crate::peer::Incumbent;
use crate::shared::Shared;
use crate::words::OneMemory;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    remote: RemoteInterrupt,
    pub(super) words: Words<OneMemory>,
    pub(super) other: Incumbent,
}

/// A connection to an interrupt that is triggered with messages.
#[derive(Debug)]
pub(super) struct DataLink {
    pub(super) link: Link,
    sender: SharedSender,
}

/// What is connected to an interrupt.
pub(super) trait Connected: Sized {
    /// # Errors
    /// [`Refusal::Nospc`]: there is no window for its messages. [`Refusal::NotConnected`]: its member is gone.
    fn of(link: Link) -> Result<Self, Refusal>;

    fn link(&self) -> &Link;
}

impl Connected for Link {
    fn of(link: Link) -> Result<Self, Refusal> {
        Ok(link)
    }

    fn link(&self) -> &Link {
        self
    }
}

impl Connected for DataLink {
    fn of(link: Link) -> Result<Self, Refusal> {
        let sender = link.shared.enter(|state, _| {
            let peer = state.peers.get(link.other.slot).filter(|_| link.other.is_there());
            let peer = peer.ok_or(Refusal::NotConnected)?;
            let number = peer.number.ok_or(Refusal::NotConnected)?;
            peer.yard.sender(number, &link.words).ok_or(Refusal::Nospc)
        })?;
        Ok(DataLink { link, sender })
    }

    fn link(&self) -> &Link {
        &self.link
    }
}

impl DataLink {
    /// The end of its window, which no other thread sends through meanwhile.
    pub(super) fn sender(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects to an interrupt, by the call that does so.
pub(super) fn connected(shared: &Shared, connect: Call) -> Result<RemoteInterrupt, Refusal> {
    match shared.call(connect)? {
        Value::Trigger(remote) => Ok(remote),
        _ => Err(Refusal::System),
    }
}

impl Link {
    /// Connects to an interrupt, by the call that does so.
    pub(super) fn connect(shared: &Arc<Shared>, connect: Call) -> Result<Self, Refusal> {
        Link::to(shared, connected(shared, connect)?)
    }

    /// To what is connected to, until this is dropped.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: it has gone meanwhile, and is connected to no more.
    pub(super) fn to(shared: &Arc<Shared>, remote: RemoteInterrupt) -> Result<Self, Refusal> {
        shared.enter(|state, now| {
            let own = state.board.view();
            let made = state.member.trigger(remote, &own).and_then(|(pair, words)| {
                let peer = state.peer_of(pair).ok_or(Refusal::NotConnected)?;
                Ok((words, peer.incumbent(&shared.space).ok_or(Refusal::NotConnected)?))
            });
            match made {
                Ok((words, other)) => Ok(Link { shared: Arc::clone(shared), remote, words, other }),
                Err(refusal) => {
                    let _gone = state.member.call(Call::DisconnectInterrupt(remote), now);
                    Err(refusal)
                }
            }
        })
    }

    /// Triggers an interrupt that carries nothing.
    #[inline]
    pub(super) fn trigger(&self) -> Result<(), Refusal> {
        self.check()?;
        self.words.raise();
        self.check_memory()
    }

    #[inline]
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if !self.shared.process.is_this() {
            return Err(Refusal::System);
        }
        let found = self.words.check();
        self.check_memory()?;
        // Behind those loads: they may have been of another member's words.
        if self.other.is_there() { found } else { Err(Refusal::NotConnected) }
    }

    /// What is gone is zero, and takes no store.
    #[inline]
    pub(super) fn check_memory(&self) -> Result<(), Refusal> {
        if self.shared.space.is_intact() { Ok(()) } else { Err(Refusal::NoLinkAccess) }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.shared.process.is_this() {
            let disconnect = Call::DisconnectInterrupt(self.remote);
            let ended = self.shared.enter(|state, now| state.member.call(disconnect, now));
            if let Err(refusal) = ended {
                tracing::debug!(%refusal, "a trigger is dropped that is not connected");
            }
        }
    }
}
