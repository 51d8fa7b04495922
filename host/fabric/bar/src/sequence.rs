//! Sequences of a connection, without the member's lock.

use std::sync::Arc;

use beeline_fabric::{ConnectionView, Refusal, RemoteSegment, SequenceStart, SequenceStatus};

use crate::peer::Incumbent;
use crate::shared::Shared;
use crate::words::View;

/// The means to learn whether anything happened to a connection while a program stored: some loads. Any thread may use it.
///
/// That the other process has died is known when it has been silent for the bound of the heartbeat.
#[derive(Clone, Debug)]
pub struct BarSequence {
    shared: Arc<Shared>,
    view: ConnectionView<View>,
    other: Incumbent,
}

impl BarSequence {
    pub(crate) fn new(shared: &Arc<Shared>, remote: RemoteSegment) -> Result<Self, Refusal> {
        shared.check()?;
        let (view, other) = shared.enter(|state, _| {
            let own = state.board.view();
            let (pair, view) = state.member.view(remote, &own)?.ok_or(Refusal::NotConnected)?;
            let peer = state.peer_of(pair).ok_or(Refusal::NotConnected)?;
            Ok::<_, Refusal>((view, peer.incumbent(&shared.space).ok_or(Refusal::NotConnected)?))
        })?;
        Ok(BarSequence { shared: Arc::clone(shared), view, other })
    }

    /// Begins a sequence, if the links are up. What is stored after this is in it.
    #[inline]
    pub fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        let started = self.view.start();
        if self.is_alive() { started } else { (SequenceStatus::NotRetriable, None) }
    }

    /// Makes every store so far visible, and says what happened to the connection since a sequence began.
    /// [`SequenceStatus::Ok`] means that those stores were there before the segment is taken away, if it ever is.
    #[inline]
    pub fn check(&self, start: SequenceStart) -> SequenceStatus {
        self.flush();
        self.check_unflushed(start)
    }

    /// Makes every store so far visible. Pairs with the barrier of who takes the segment away (`beeline_fabric`, `claims.rs`).
    #[inline]
    pub fn flush(&self) {
        if self.shared.space.barrier().is_err() {
            tracing::debug!("stores went to memory that is gone");
        }
    }

    /// Says what happened to the connection since a sequence began, without a barrier: a store that is still on its way may come after
    /// what is found here.
    #[inline]
    pub fn check_unflushed(&self, start: SequenceStart) -> SequenceStatus {
        let status = self.view.check(start);
        if self.is_alive() { status } else { SequenceStatus::NotRetriable }
    }

    /// Whether the segment and its member are there, whatever the links are.
    #[inline]
    pub fn is_there(&self) -> bool {
        self.view.is_there() && self.is_alive()
    }

    /// Whether what the view has loaded was the other member's. A child of fork is not the member.
    #[inline]
    fn is_alive(&self) -> bool {
        // The words of memory that is gone are zero, or what this process has stored since.
        self.other.is_there() && self.shared.space.is_intact() && self.shared.process.is_this()
    }
}
