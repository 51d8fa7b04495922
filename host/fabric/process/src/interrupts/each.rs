//! Triggering each of several interrupts that have one number, of a node or of the fabric.
//!
//! Who has one may come and go while a program is connected to the number, so each trigger asks the registry: a system call or two.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_fabric::{
    AdapterNumber, Call, Candidate, FIRST_CONTACT_NANOS, InterruptNumber, NodeId, Refusal, Value,
};

use super::link::{Connected, Link};
use crate::shared::Shared;

/// How long a trigger waits at most for all those that it connects to first. Who is stopped does not answer, and is skipped.
const PATIENCE: Duration = Duration::from_nanos(FIRST_CONTACT_NANOS);
/// How long a member is left alone that did not answer. Then it is connected to if it was reached meanwhile, and nobody waits for it again.
const REST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Each<L> {
    shared: Arc<Shared>,
    node: NodeId,
    number: InterruptNumber,
    adapter: AdapterNumber,
    links: Mutex<Links<L>>,
}

#[derive(Debug)]
struct Links<L> {
    connected: Vec<(Candidate, Arc<L>)>,
    /// Members that did not answer, and when.
    silent: Vec<(Candidate, Instant)>,
}

/// One that this is not connected to.
struct Newcomer {
    at: Candidate,
    was_silent: bool,
}

/// What was done with each, counted.
struct Tally {
    done: usize,
    refused: Result<usize, Refusal>,
}

impl Tally {
    const NONE: Tally = Tally { done: 0, refused: Ok(0) };

    fn count(&mut self, outcome: Result<(), Refusal>) {
        match outcome {
            Ok(()) => self.done += 1,
            Err(Refusal::NotConnected) => {}
            Err(refusal) => self.refused = Err(refusal),
        }
    }

    /// With how many it was done. It fails with what is wrong with all of them.
    fn outcome(self) -> Result<usize, Refusal> {
        if self.done > 0 { Ok(self.done) } else { self.refused }
    }
}

impl<L: Connected> Each<L> {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
    ) -> Self {
        let links = Mutex::new(Links { connected: Vec::new(), silent: Vec::new() });
        Each { shared: Arc::clone(shared), node, number, adapter, links }
    }

    /// Whether the number is one of several interrupts, to each of which this is connected then.
    pub(crate) fn connect(&self) -> Result<bool, Refusal> {
        self.on_each(|_| Ok(())).map(|count| count > 0)
    }

    /// Does something with each that is reached; with how many it was done.
    ///
    /// Those that are connected come first, and no lock is held while newcomers are reached: one of them that is stopped delays nobody
    /// but this thread, by [`PATIENCE`] and once.
    pub(crate) fn on_each(&self, act: impl Fn(&L) -> Result<(), Refusal>) -> Result<usize, Refusal> {
        let (connected, newcomers) = self.known()?;
        let mut tally = Tally::NONE;
        for (_, link) in connected {
            tally.count(act(&link));
        }
        self.reach(newcomers, |found| tally.count(found.and_then(|(_, link)| act(&link))));
        tally.outcome()
    }

    /// Those that are reached, in an order that all threads have; with what is wrong if that are none.
    pub(crate) fn all(&self) -> Result<Vec<Arc<L>>, Refusal> {
        let (mut all, newcomers) = self.known()?;
        let mut tally = Tally::NONE;
        self.reach(newcomers, |found| tally.count(found.map(|found| all.push(found))));
        if all.is_empty() {
            tally.outcome()?;
        }
        all.sort_unstable_by_key(|(at, _)| (at.member, at.slot));
        Ok(all.into_iter().map(|(_, link)| link).collect())
    }

    /// Connects to newcomers, and tells which, or what is wrong with one.
    fn reach(&self, newcomers: Vec<Newcomer>, mut tell: impl FnMut(Result<(Candidate, Arc<L>), Refusal>)) {
        let until = Instant::now() + PATIENCE;
        for Newcomer { at, was_silent } in newcomers {
            let left = until.saturating_duration_since(Instant::now());
            match self.link(at, if was_silent { Duration::ZERO } else { left }) {
                Ok(link) => tell(Ok((at, self.keep(at, link)))),
                Err(Refusal::NodeNotResponding) => self.leave_alone(at),
                Err(refusal @ (Refusal::NoLinkAccess | Refusal::NoRemoteLinkAccess | Refusal::Nospc)) => {
                    tell(Err(refusal));
                }
                // It is removed meanwhile.
                Err(_) => {}
            }
        }
    }

    /// Of those that are there, the ones that this is connected to, and the ones to connect to now.
    fn known(&self) -> Result<(Vec<(Candidate, Arc<L>)>, Vec<Newcomer>), Refusal> {
        // A child of fork has the parent's locks as they were.
        self.shared.check_process()?;
        let there = self.shared.names.several(self.node, self.number).map_err(|error| {
            tracing::warn!(%error, "the names of the fabric are not to be had");
            Refusal::System
        })?;
        let mut links = self.links();
        links
            .connected
            .retain(|(at, link)| there.contains(at) && link.link().check() != Err(Refusal::NotConnected));
        links.silent.retain(|(at, _)| there.contains(at));
        let newcomers = there.into_iter().filter_map(|at| {
            if links.connected.iter().any(|(known, _)| *known == at) {
                return None;
            }
            let since = links.silent.iter().find(|(known, _)| *known == at).map(|(_, since)| since.elapsed());
            let rests = since.is_some_and(|since| since < REST);
            (!rests).then_some(Newcomer { at, was_silent: since.is_some() })
        });
        let newcomers = newcomers.collect();
        Ok((links.connected.clone(), newcomers))
    }

    /// Keeps a connection, or has the one that another thread has made meanwhile.
    fn keep(&self, at: Candidate, link: L) -> Arc<L> {
        let mut links = self.links();
        links.silent.retain(|(known, _)| *known != at);
        if let Some((_, kept)) = links.connected.iter().find(|(known, _)| *known == at) {
            let kept = Arc::clone(kept);
            drop(links);
            return kept;
        }
        let link = Arc::new(link);
        links.connected.push((at, Arc::clone(&link)));
        link
    }

    fn leave_alone(&self, at: Candidate) {
        let mut links = self.links();
        links.silent.retain(|(known, _)| *known != at);
        links.silent.push((at, Instant::now()));
    }

    fn links(&self) -> MutexGuard<'_, Links<L>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self, at: Candidate, timeout: Duration) -> Result<L, Refusal> {
        let (node, number, adapter) = (self.node, self.number, self.adapter);
        let timeout_nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let call = Call::ConnectSharedInterrupt { node, number, adapter, at, timeout_nanos };
        let Value::Trigger(remote) = self.shared.call(call)? else { return Err(Refusal::System) };
        let linked = self.shared.link(remote);
        let (link, gear): (Link, _) = linked.inspect_err(|_| {
            let _gone = self.shared.call(Call::DisconnectInterrupt(remote));
        })?;
        L::of(link, &gear)
    }
}

impl Each<Link> {
    /// Triggers each that is reached.
    pub(crate) fn trigger(&self) -> Result<(), Refusal> {
        match self.on_each(Link::trigger)? {
            0 => Err(Refusal::NotConnected),
            _ => Ok(()),
        }
    }
}
