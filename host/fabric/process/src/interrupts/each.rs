//! Triggering each of several interrupts that have one number.
//!
//! Who has one may come and go while a program is connected to the number, so each trigger asks the registry of the node: a system call or two.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use beeline_fabric::{AdapterNumber, Call, Candidate, InterruptNumber, NodeId, Refusal, Value};

use super::link::Link;
use crate::shared::Shared;

/// How long a member is left alone that does not answer.
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
    connected: Vec<(Candidate, Link)>,
    /// Members that did not answer, and when.
    silent: Vec<(Candidate, Instant)>,
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

    /// Triggers each.
    pub(crate) fn trigger(&self) -> Result<(), Refusal> {
        match self.on_each(Link::trigger)? {
            0 => Err(Refusal::NotConnected),
            _ => Ok(()),
        }
    }

    /// Does something with each; with how many it was done. It fails with what is wrong with all of them.
    fn on_each(&self, act: impl Fn(&Link) -> Result<(), Refusal>) -> Result<usize, Refusal> {
        // A child of fork has the parent's locks as they were.
        self.shared.check_process()?;
        let there = self.shared.names.shared(self.node, self.number).map_err(|error| {
            tracing::warn!(%error, "the names of the fabric are not to be had");
            Refusal::System
        })?;
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.connected.retain(|(at, link)| there.contains(at) && link.check() != Err(Refusal::NotConnected));
        links.silent.retain(|(at, since)| there.contains(at) && since.elapsed() < REST);
        for at in there {
            let is_known = links.connected.iter().any(|(known, _)| *known == at)
                || links.silent.iter().any(|(known, _)| *known == at);
            if is_known {
                continue;
            }
            match self.link(at) {
                Ok(link) => links.connected.push((at, link)),
                Err(Refusal::NodeNotResponding) => links.silent.push((at, Instant::now())),
                // It is removed meanwhile; or a link is down, which is told below of the others.
                Err(_) => {}
            }
        }
        let (mut done, mut refused) = (0, Ok(0));
        for (_, link) in &links.connected {
            match act(link) {
                Ok(()) => done += 1,
                Err(Refusal::NotConnected) => {}
                Err(refusal) => refused = Err(refusal),
            }
        }
        if done > 0 { Ok(done) } else { refused }
    }

    fn link(&self, at: Candidate) -> Result<Link, Refusal> {
        let (node, number, adapter) = (self.node, self.number, self.adapter);
        let call = Call::ConnectSharedInterrupt { node, number, adapter, at };
        let Value::Trigger(remote) = self.shared.call(call)? else { return Err(Refusal::System) };
        self.shared.link(remote).map(|(link, _)| link).inspect_err(|_| {
            let _gone = self.shared.call(Call::DisconnectInterrupt(remote));
        })
    }
}
