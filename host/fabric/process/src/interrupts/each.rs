//! Triggering each of several interrupts that have one number.
//!
//! Who has one may come and go while a program is connected to the number, so each trigger asks the registry of the node: a system call or two.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_fabric::{
    AdapterNumber, Call, Candidate, FIRST_CONTACT_NANOS, InterruptNumber, NodeId, Refusal, Value,
};

use super::link::Link;
use crate::shared::Shared;

/// How long a trigger waits at most for all those that it connects to first. Who is stopped does not answer, and is skipped.
const PATIENCE: Duration = Duration::from_nanos(FIRST_CONTACT_NANOS);
/// How long a member is left alone that did not answer. Then it is connected to if it was reached meanwhile, and nobody waits for it again.
const REST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Each {
    shared: Arc<Shared>,
    node: NodeId,
    number: InterruptNumber,
    adapter: AdapterNumber,
    links: Mutex<Links>,
}

#[derive(Debug, Default)]
struct Links {
    connected: Vec<(Candidate, Arc<Link>)>,
    /// Members that did not answer, and when.
    silent: Vec<(Candidate, Instant)>,
}

/// One that this is not connected to.
struct Newcomer {
    at: Candidate,
    was_silent: bool,
}

impl Each {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
    ) -> Self {
        Each { shared: Arc::clone(shared), node, number, adapter, links: Mutex::default() }
    }

    /// Whether the number is one of several interrupts, to each of which this is connected then.
    pub(crate) fn connect(&self) -> Result<bool, Refusal> {
        self.on_each(|_| Ok(())).map(|count| count > 0)
    }

    /// Triggers each that is reached.
    pub(crate) fn trigger(&self) -> Result<(), Refusal> {
        match self.on_each(Link::trigger)? {
            0 => Err(Refusal::NotConnected),
            _ => Ok(()),
        }
    }

    /// Does something with each; with how many it was done. It fails with what is wrong with all of them.
    ///
    /// Those that are connected come first, and no lock is held while newcomers are reached: one of them that is stopped delays nobody
    /// but this thread, by [`PATIENCE`] and once.
    fn on_each(&self, act: impl Fn(&Link) -> Result<(), Refusal>) -> Result<usize, Refusal> {
        // A child of fork has the parent's locks as they were.
        self.shared.check_process()?;
        let there = self.shared.names.shared(self.node, self.number).map_err(|error| {
            tracing::warn!(%error, "the names of the fabric are not to be had");
            Refusal::System
        })?;
        let (connected, newcomers) = self.known(there);
        let (mut done, mut refused) = (0, Ok(0));
        let mut count = |outcome| match outcome {
            Ok(()) => done += 1,
            Err(Refusal::NotConnected) => {}
            Err(refusal) => refused = Err(refusal),
        };
        for link in connected {
            count(act(&link));
        }
        let until = Instant::now() + PATIENCE;
        for Newcomer { at, was_silent } in newcomers {
            let left = until.saturating_duration_since(Instant::now());
            match self.link(at, if was_silent { Duration::ZERO } else { left }) {
                Ok(link) => {
                    count(act(&link));
                    self.keep(at, link);
                }
                Err(Refusal::NodeNotResponding) => self.leave_alone(at),
                Err(refusal @ (Refusal::NoLinkAccess | Refusal::NoRemoteLinkAccess)) => count(Err(refusal)),
                // It is removed meanwhile.
                Err(_) => {}
            }
        }
        if done > 0 { Ok(done) } else { refused }
    }

    /// Of those that are there, the ones that this is connected to, and the ones to connect to now.
    fn known(&self, there: Vec<Candidate>) -> (Vec<Arc<Link>>, Vec<Newcomer>) {
        let mut links = self.links();
        links.connected.retain(|(at, link)| there.contains(at) && link.check() != Err(Refusal::NotConnected));
        links.silent.retain(|(at, _)| there.contains(at));
        let connected = links.connected.iter().map(|(_, link)| Arc::clone(link)).collect();
        let newcomers = there.into_iter().filter_map(|at| {
            if links.connected.iter().any(|(known, _)| *known == at) {
                return None;
            }
            let since = links.silent.iter().find(|(known, _)| *known == at).map(|(_, since)| since.elapsed());
            let rests = since.is_some_and(|since| since < REST);
            (!rests).then_some(Newcomer { at, was_silent: since.is_some() })
        });
        (connected, newcomers.collect())
    }

    /// Keeps a connection, unless another thread has made one meanwhile.
    fn keep(&self, at: Candidate, link: Link) {
        let link = Arc::new(link);
        let mut links = self.links();
        links.silent.retain(|(known, _)| *known != at);
        if !links.connected.iter().any(|(known, _)| *known == at) {
            links.connected.push((at, Arc::clone(&link)));
        }
    }

    fn leave_alone(&self, at: Candidate) {
        let mut links = self.links();
        links.silent.retain(|(known, _)| *known != at);
        links.silent.push((at, Instant::now()));
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self, at: Candidate, timeout: Duration) -> Result<Link, Refusal> {
        let (node, number, adapter) = (self.node, self.number, self.adapter);
        let timeout_nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let call = Call::ConnectSharedInterrupt { node, number, adapter, at, timeout_nanos };
        let Value::Trigger(remote) = self.shared.call(call)? else { return Err(Refusal::System) };
        self.shared.link(remote).map(|(link, _)| link).inspect_err(|_| {
            let _gone = self.shared.call(Call::DisconnectInterrupt(remote));
        })
    }
}
