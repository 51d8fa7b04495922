//! Waiting for one of several things: interrupts, and events of segments and connections that have a callback.
//!
//! A look goes through all that is waited for; how such threads sleep is in `several.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use beeline_fabric::{LocalEvent, LocalSegment, Refusal, RemoteEvent, RemoteSegment};

use crate::interrupts::waited::{Waited, What};
use crate::interrupts::{DataInterrupt, Interrupt};
use crate::member::FabricMember;
use crate::shared::Shared;

/// Something that may happen, and that [`FabricMember::wait_any`] waits for.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A segment that was made with `has_callback`.
    Segment(LocalSegment),
    /// A connection that was made with `has_callback`.
    Connection(RemoteSegment),
    Interrupt(&'a Interrupt),
    DataInterrupt(&'a DataInterrupt),
}

/// What [`FabricMember::wait_any`] tells of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    ToSegment(LocalEvent),
    ToConnection(RemoteEvent),
    /// The interrupt was triggered, and this is taken.
    Triggered,
    /// There is a message, which [`DataInterrupt::wait`] takes.
    Message,
}

/// Has whoever waits in [`FabricMember::wait_until`] woken by an interrupt, until this is dropped.
#[derive(Debug)]
#[must_use = "nobody is woken once it is dropped"]
pub struct Watch {
    shared: Arc<Shared>,
    waited: Arc<Waited>,
}

impl Interrupt {
    /// Has whoever waits in [`FabricMember::wait_until`] woken by this interrupt.
    pub fn watch(&self) -> Watch {
        Watch::new(&self.own().shared, &self.own().waited)
    }

    /// Takes a trigger, if one has come.
    ///
    /// # Errors
    /// [`Refusal::Cancelled`]: it is removed.
    pub fn try_take(&self) -> Result<bool, Refusal> {
        self.own().check()?;
        let taken = self.own().waited.try_take(|what| match what {
            What::Counts(take) => take.take().then_some(()),
            What::Messages(_) => None,
        });
        taken.map(|taken| taken.is_some())
    }
}

impl DataInterrupt {
    /// As [`Interrupt::watch`].
    pub fn watch(&self) -> Watch {
        Watch::new(&self.own().shared, &self.own().waited)
    }

    /// Whether a message has come, which the next [`DataInterrupt::wait`] takes.
    ///
    /// # Errors
    /// As for [`Interrupt::try_take`].
    pub fn has_message(&self) -> Result<bool, Refusal> {
        self.own().check()?;
        let has_come = self.own().waited.try_take(|what| match what {
            What::Messages(inbox) => inbox.has_message().then_some(()),
            What::Counts(_) => None,
        });
        has_come.map(|has_come| has_come.is_some())
    }
}

impl Watch {
    fn new(shared: &Arc<Shared>, waited: &Arc<Waited>) -> Self {
        shared.several.watch(waited);
        Watch { shared: Arc::clone(shared), waited: Arc::clone(waited) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.shared.process.is_this() {
            return;
        }
        self.shared.several.unwatch(&self.waited);
    }
}

impl FabricMember {
    /// Waits until something has happened to one of `sources`, at most `timeout`; `None` is for ever, and at zero it looks once. Which
    /// one, and what. Where something has happened to several, the first of them is told.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: nothing has happened. [`Refusal::Cancelled`]: one of the interrupts is removed.
    pub fn wait_any(
        &self,
        sources: &[Source<'_>],
        timeout: Option<Duration>,
    ) -> Result<(usize, Happened), Refusal> {
        let _watches: Vec<_> = sources.iter().filter_map(Source::watch).collect();
        let look = || {
            sources.iter().enumerate().find_map(|(number, source)| {
                let happened = source.look(self).transpose()?;
                Some(happened.map(|happened| (number, happened)))
            })
        };
        self.wait_until(timeout, look)?
    }

    /// Waits until `look` finds something. It looks again whenever something may have happened to a segment or a connection that has a
    /// callback, or an interrupt is triggered of which there is a [`Watch`], and after [`FabricMember::look_again`].
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: it has found nothing in the time.
    pub fn wait_until<T>(
        &self,
        timeout: Option<Duration>,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, Refusal> {
        self.shared.check_process()?;
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut look = || {
            self.shared.look();
            look()
        };
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(Refusal::Timeout);
            }
            if self.shared.polls() {
                // Not the whole core: each look takes locks that others want.
                std::thread::yield_now();
                continue;
            }
            let rest = || {
                let wake_at = self.shared.lock().member.wake_at()?;
                Some(Duration::from_nanos(wake_at.0.saturating_sub(self.shared.now().0)))
            };
            if let Some(found) = self.shared.several.sleep(left, &mut look, rest) {
                return Ok(found);
            }
        }
    }

    /// Has all who wait in [`FabricMember::wait_until`] look again.
    pub fn look_again(&self) {
        if self.shared.process.is_this() {
            self.shared.several.wake_all();
        }
    }

    /// Gives a segment a callback after it was made: its events are told, and not waited for by calls.
    pub fn tell_segment(&self, local: LocalSegment) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.tell_segment(local));
        }
    }

    /// Gives a connection a callback, as [`FabricMember::tell_segment`] does.
    pub fn tell_connection(&self, remote: RemoteSegment) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.tell_connection(remote));
        }
    }

    /// The next event of a segment that was made with `has_callback`, if something has happened to it.
    pub fn next_event_of_segment(&self, local: LocalSegment) -> Option<LocalEvent> {
        self.shared.check_process().ok()?;
        self.shared.lock().member.next_of_local(local)
    }

    /// The next event of a connection that was made with `has_callback`, if something has happened to it.
    pub fn next_event_of_connection(&self, remote: RemoteSegment) -> Option<RemoteEvent> {
        self.shared.check_process().ok()?;
        self.shared.lock().member.next_of_remote(remote)
    }
}

impl Source<'_> {
    fn watch(&self) -> Option<Watch> {
        match self {
            Source::Segment(_) | Source::Connection(_) => None,
            Source::Interrupt(interrupt) => Some(interrupt.watch()),
            Source::DataInterrupt(interrupt) => Some(interrupt.watch()),
        }
    }

    fn look(&self, member: &FabricMember) -> Result<Option<Happened>, Refusal> {
        Ok(match self {
            Source::Segment(local) => member.next_event_of_segment(*local).map(Happened::ToSegment),
            Source::Connection(remote) => {
                member.next_event_of_connection(*remote).map(Happened::ToConnection)
            }
            Source::Interrupt(interrupt) => interrupt.try_take()?.then_some(Happened::Triggered),
            Source::DataInterrupt(interrupt) => interrupt.has_message()?.then_some(Happened::Message),
        })
    }
}
