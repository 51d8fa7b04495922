//! One connection to one interrupt: what is loaded and stored to trigger it.

use std::sync::Arc;

use beeline_domain::Peer;
use beeline_fabric::{Call, PairId, Refusal, RemoteInterrupt, Trigger as Words, ring};

use super::gear::{Gear, SharedSender};
use crate::bell::FlagBell;
use crate::pair::Pair;
use crate::shared::Shared;
use crate::words::Coherent;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) remote: RemoteInterrupt,
    pub(crate) words: Words<Coherent>,
    /// The other process; `None` if it is this one.
    pub(crate) peer: Option<Peer>,
    pub(crate) bell: FlagBell,
}

/// A connection to an interrupt that is triggered with messages.
#[derive(Debug)]
pub(crate) struct DataLink {
    pub(crate) link: Link,
    pub(crate) sender: SharedSender,
}

/// What is connected to an interrupt.
pub(crate) trait Connected: Sized {
    /// # Errors
    /// There is no room for what it is triggered with.
    fn of(link: Link, gear: &Gear) -> Result<Self, Refusal>;

    fn link(&self) -> &Link;
}

impl Connected for Link {
    fn of(link: Link, _gear: &Gear) -> Result<Self, Refusal> {
        Ok(link)
    }

    fn link(&self) -> &Link {
        self
    }
}

impl Connected for DataLink {
    fn of(link: Link, gear: &Gear) -> Result<Self, Refusal> {
        let sender = gear.sender(&link.words)?;
        Ok(DataLink { link, sender })
    }

    fn link(&self) -> &Link {
        &self.link
    }
}

impl Link {
    /// Triggers an interrupt that carries nothing.
    #[inline]
    pub(crate) fn trigger(&self) -> Result<(), Refusal> {
        self.check()?;
        self.words.raise();
        ring(&self.bell);
        Ok(())
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<(), Refusal> {
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

impl Shared {
    /// What a connection that is made is triggered with.
    pub(crate) fn link(self: &Arc<Self>, remote: RemoteInterrupt) -> Result<(Link, Arc<Gear>), Refusal> {
        let (words, (gear, peer)) = self.enter(|state, _| {
            let (pair, words): (PairId, Words<Coherent>) = state.member.trigger(remote, &self.board_view)?;
            let pair = state.pairs.get(&pair).ok_or(Refusal::NotConnected)?;
            if pair.other_user().is_some() {
                return Err(Refusal::ConnectionRefused);
            }
            let gear = pair.gear().cloned().ok_or(Refusal::System)?;
            Ok::<_, Refusal>((words, (gear, Pair::peer(pair).cloned())))
        })?;
        let bell = gear.bell(words.place(), peer.as_ref());
        Ok((Link { shared: Arc::clone(self), remote, words, peer, bell }, gear))
    }
}
