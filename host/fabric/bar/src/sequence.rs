//! Sequences of a connection, without the member's lock.

use std::sync::Arc;

use beeline_fabric::{Call, ConnectionView, Refusal, RemoteSegment, SequenceStart, SequenceStatus, Value};

use crate::peer::Incumbent;
use crate::shared::Shared;
use crate::words::View;

/// The means to learn whether anything happened to a connection while a program stored: some loads. Any thread may use it.
///
/// That the other process has died is known when it has been silent for the bound of the heartbeat.
#[derive(Clone, Debug)]
pub struct BarSequence {
    shared: Arc<Shared>,
    remote: RemoteSegment,
    words: Words,
    /// Of holders of the same segment beside the first.
    others: Box<[Words]>,
    /// Whether several might hold the segment when this was made: it is there as long as one of them is.
    was_held: bool,
}

#[derive(Clone, Debug)]
struct Words {
    view: ConnectionView<View>,
    other: Incumbent,
}

impl BarSequence {
    pub(crate) fn new(shared: &Arc<Shared>, remote: RemoteSegment) -> Result<Self, Refusal> {
        shared.check()?;
        let (words, others, was_held) = shared.enter(|state, _| {
            let own = state.board.view();
            let first = state.member.view(remote, &own)?.ok_or(Refusal::NotConnected)?;
            let others = state.member.views_of_others(remote, &own);
            let mut words = |(pair, view)| {
                let other = state.peer_of(pair)?.incumbent(&shared.space)?;
                Some(Words { view, other })
            };
            let (first, others) = (words(first), others.into_iter().filter_map(words).collect::<Vec<_>>());
            let mut all = first.into_iter().chain(others);
            let first = all.next().ok_or(Refusal::NotConnected)?;
            Ok::<_, Refusal>((first, all.collect(), state.member.is_held(remote)))
        })?;
        Ok(BarSequence { shared: Arc::clone(shared), remote, words, others, was_held })
    }

    /// Begins a sequence, if the links are up. What is stored after this is in it.
    #[inline]
    pub fn start(&self) -> (SequenceStatus, Option<SequenceStart>) {
        let started = self.words.view.start();
        match started.0 {
            SequenceStatus::NotRetriable => self.start_with_others(),
            _ if self.is_alive(&self.words) => started,
            _ => self.start_with_others(),
        }
    }

    /// Makes every store so far visible, and says what happened to the connection since a sequence began.
    /// [`SequenceStatus::Ok`] means that those stores were there before the segment is taken away, if it ever is.
    ///
    /// A segment that several members hold is there as long as one of them has it; their links do not count.
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
        match self.words.view.check(start) {
            SequenceStatus::NotRetriable => self.check_with_others(start),
            status if self.is_alive(&self.words) => status,
            _ => self.check_with_others(start),
        }
    }

    /// Whether the segment and its member are there, whatever the links are.
    #[inline]
    pub fn is_there(&self) -> bool {
        let is_first_there = self.words.view.is_there() && self.is_alive(&self.words);
        is_first_there || self.is_held() && self.start_with_others().0 != SequenceStatus::NotRetriable
    }

    /// Whether what a view has loaded was the other member's. A child of fork is not the member.
    #[inline]
    fn is_alive(&self, words: &Words) -> bool {
        // The words of memory that is gone are zero, or what this process has stored since.
        words.other.is_there() && self.shared.space.is_intact() && self.shared.process.is_this()
    }

    /// Whether several may hold the segment: its entry says so from when it is shared on, also once it is removed.
    fn is_held(&self) -> bool {
        self.was_held || self.words.view.has_holders()
    }

    /// Another holder that is there.
    fn other(&self) -> Option<&Words> {
        self.others.iter().find(|words| words.view.is_there() && self.is_alive(words))
    }

    /// Asks the member, which takes its lock, where the first holder is gone: a holder may have come since.
    fn ask(&self, call: Call) -> Option<Value> {
        let is_to_ask = self.is_held() && self.shared.process.is_this();
        is_to_ask.then(|| self.shared.call(call).ok()).flatten()
    }

    #[cold]
    #[inline(never)]
    fn start_with_others(&self) -> (SequenceStatus, Option<SequenceStart>) {
        if let Some(words) = self.other() {
            return words.view.start();
        }
        match self.ask(Call::StartSequence(self.remote)) {
            Some(Value::Started(status, start)) => (status, start),
            _ => (SequenceStatus::NotRetriable, None),
        }
    }

    #[cold]
    #[inline(never)]
    fn check_with_others(&self, start: SequenceStart) -> SequenceStatus {
        if let Some(words) = self.other() {
            return words.view.check(start);
        }
        let check = || match self.ask(Call::CheckSequence(self.remote, start)) {
            Some(Value::Checked(status)) => status,
            _ => SequenceStatus::NotRetriable,
        };
        match check() {
            // The names have been looked at for it.
            SequenceStatus::Pending => check(),
            status => status,
        }
    }
}
