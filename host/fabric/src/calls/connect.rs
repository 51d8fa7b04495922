//! Connecting: a name is found, its member reached, its board read, and the segment claimed; over and over until the time is over.

use alloc::vec;
use alloc::vec::Vec;

use beeline_contract_adapter::Adapter;

use super::Outcome;
use crate::call::{Done, Value};
use crate::ids::{
    AdapterNumber, MemberNumber, Name, NameKind, Nanos, NodeId, PairId, RemoteInterrupt, RemoteSegment, Slot,
    Ticket,
};
use crate::member::{Asked, Member};
use crate::pairs::{Claimed, Provider};
use crate::refusal::Refusal;
use crate::segment::remote::{Aim, Attempt, Connection, Remote, Stage, Step};
use crate::sequence::Standing;
use crate::told::Told;
use crate::want::{Answer, Candidate, Found, NameOp, Want};

/// How long an attempt rests before the next. A program that tries by itself asks as often; each attempt costs it, and nobody else.
const REST_NANOS: u64 = 1_000_000;

/// How many members one attempt has reached at once.
const REACHED_AT_ONCE: usize = 8;

/// How long a call without a time of its own waits at most for members that it contacts first. One that is stopped does not answer.
pub const FIRST_CONTACT_NANOS: u64 = 500_000_000;

impl<A: Adapter> Member<A> {
    pub(super) fn connect(
        &mut self,
        node: NodeId,
        name: Name,
        adapter: AdapterNumber,
        (timeout_nanos, is_asynchronous, has_callback): (Option<u64>, bool, bool),
        now: Nanos,
    ) -> Outcome {
        self.has_adapter(adapter)?;
        if !self.config.nodes.contains(&node) && !name.kind.is_of_fabric() {
            return Err(Refusal::NoSuchNodeid);
        }
        let handle = RemoteSegment(self.number());
        let ticket = (!is_asynchronous).then(|| Ticket(self.number()));
        let is_once = timeout_nanos == Some(0);
        let timeout_nanos = if is_once { Some(FIRST_CONTACT_NANOS) } else { timeout_nanos };
        let until = timeout_nanos.map(|nanos| now.after(nanos));
        let attempt = Attempt { ticket, until, is_once, aim: Aim::Connection, step: Step::Finding };
        let mut remote = Remote::new(node, name, adapter, attempt);
        remote.has_callback = has_callback;
        self.remotes.insert(handle, remote);
        self.note_remote(handle);
        self.try_again(handle, now);
        Ok(ticket.map_or(Done::Now(Value::Remote(handle, 0)), Done::Wait))
    }

    /// Connects to one of several interrupts of a number, in one attempt.
    pub(super) fn connect_shared(
        &mut self,
        node: NodeId,
        name: Name,
        adapter: AdapterNumber,
        (at, timeout_nanos): (Candidate, u64),
        now: Nanos,
    ) -> Outcome {
        self.has_adapter(adapter)?;
        if !self.is_own_up(adapter) {
            return Err(Refusal::NoLinkAccess);
        }
        let (handle, ticket) = (RemoteSegment(self.number()), Ticket(self.number()));
        let step = Step::Trying { candidates: vec![at], reason: name.missing() };
        let until = Some(now.after(timeout_nanos));
        let attempt = Attempt { ticket: Some(ticket), until, is_once: true, aim: Aim::Connection, step };
        self.remotes.insert(handle, Remote::new(node, name, adapter, attempt));
        self.note_remote(handle);
        self.try_candidates(handle, now);
        Ok(Done::Wait(ticket))
    }

    /// Begins an attempt, or rests if it cannot succeed.
    pub(crate) fn try_again(&mut self, handle: RemoteSegment, now: Nanos) {
        let Some(remote) = self.remotes.get(&handle) else { return };
        let (node, name) = (remote.node, remote.name);
        let is_connecting =
            matches!(&remote.stage, Stage::Connecting(attempt) if attempt.aim == Aim::Connection);
        if is_connecting && !self.is_own_up(remote.adapter) {
            self.failed(handle, Refusal::NoLinkAccess, now);
            return;
        }
        if let Some(Remote { stage: Stage::Connecting(attempt), .. }) = self.remotes.get_mut(&handle) {
            attempt.step = Step::Finding;
            self.ask(Asked::Connect(handle), NameOp::Find(node, name));
        }
    }

    /// Goes on with an attempt whose name was to be found.
    pub(crate) fn name_found(&mut self, handle: RemoteSegment, answer: Answer, now: Nanos) {
        let Some(Remote { stage: Stage::Connecting(attempt), name, .. }) = self.remotes.get_mut(&handle)
        else {
            return;
        };
        match answer {
            Answer::Found(Found { is_node_alive, mut candidates }) => {
                if let Aim::Holder { among } = attempt.aim {
                    candidates.retain(|it| among.has(it.member));
                    // Of those that are reached the largest number is asked first.
                    candidates.sort_unstable_by_key(|it| it.member);
                }
                let reason = if is_node_alive { name.missing() } else { Refusal::NodeNotResponding };
                attempt.step = Step::Trying { candidates, reason };
                self.try_candidates(handle, now);
            }
            _ => self.failed(handle, Refusal::System, now),
        }
    }

    /// Asks each candidate in turn, as far as they are reached.
    pub(crate) fn try_candidates(&mut self, handle: RemoteSegment, now: Nanos) {
        loop {
            let Some(remote) = self.remotes.get(&handle) else { return };
            let Stage::Connecting(Attempt { step: Step::Trying { candidates, reason }, aim, .. }) =
                &remote.stage
            else {
                return;
            };
            let (node, name, adapter, reason) = (remote.node, remote.name, remote.adapter, *reason);
            let aim = *aim;
            let candidates = candidates.clone();
            if candidates.is_empty() {
                self.failed(handle, reason, now);
                return;
            }
            // Until one of them is reached.
            let Some((Candidate { member, slot }, pair)) = self.reached_of(node, &candidates) else { return };
            if aim != Aim::Connection {
                match self.look_for_holder(pair, (member, slot), name) {
                    Ok(holder) => {
                        self.holder_found(handle, holder);
                        return;
                    }
                    Err(refusal) => self.next_candidate(handle, member, refusal),
                }
                continue;
            }
            let is_open = self.pairs.ports(pair).is_some();
            let (paths, links) = (self.links.paths(adapter), &self.links);
            let claimed = match self.pairs.ports_mut(pair).filter(|_| is_open) {
                Some(ports) => ports.connect(slot, name, paths, links),
                None => Err(Refusal::NodeNotResponding),
            };
            match claimed {
                Ok(claimed) => {
                    self.connected(handle, pair, slot, claimed);
                    return;
                }
                Err(refusal) => self.next_candidate(handle, member, refusal),
            }
        }
    }

    /// The last candidate that is reached, with its pair. If there is none, some at once are begun to be reached: one that is
    /// stopped delays nobody who is connected to another.
    fn reached_of(&mut self, node: NodeId, candidates: &[Candidate]) -> Option<(Candidate, PairId)> {
        let mut unreached = Vec::new();
        let mut being_reached = 0;
        for candidate in candidates.iter().rev() {
            let Some(pair) = self.pairs.provider_of(candidate.member) else {
                unreached.push(candidate.member);
                continue;
            };
            if self.pairs.providers.get(&pair).is_some_and(|provider| provider.ports.is_some()) {
                return Some((*candidate, pair));
            }
            being_reached += 1;
        }
        for member in unreached.into_iter().take(REACHED_AT_ONCE.saturating_sub(being_reached)) {
            if self.pairs.provider_of(member).is_none() {
                self.begin_to_reach(node, member);
            }
        }
        None
    }

    /// Wants a member reached. What holds together is found under a number that no node has, so its members say where they are.
    pub(super) fn begin_to_reach(&mut self, node: NodeId, member: MemberNumber) {
        let node = if node == NodeId::GROUPS { member.node() } else { node };
        let pair = PairId(self.number());
        self.pairs.providers.insert(pair, Provider { node, member, ports: None });
        self.wants.push_back(Want::Reach { pair, node, member });
    }

    /// Leaves the candidates that are of a member which is gone. Whether there were any.
    pub(crate) fn leave_member(&mut self, handle: RemoteSegment, member: MemberNumber) -> bool {
        let count = || match &self.remotes.get(&handle)?.stage {
            Stage::Connecting(Attempt { step: Step::Trying { candidates, .. }, .. }) => {
                Some(candidates.iter().filter(|candidate| candidate.member == member).count())
            }
            _ => None,
        };
        let count = count().unwrap_or(0);
        (0..count).for_each(|_| self.next_candidate(handle, member, Refusal::NodeNotResponding));
        count != 0
    }

    /// Leaves the candidate that was asked, the last of its member. That a name is an old one is the reason only if there is no better.
    fn next_candidate(&mut self, handle: RemoteSegment, member: MemberNumber, refusal: Refusal) {
        if let Some(Remote { stage: Stage::Connecting(attempt), name, .. }) = self.remotes.get_mut(&handle)
            && let Step::Trying { candidates, reason } = &mut attempt.step
        {
            if let Some(last) = candidates.iter().rposition(|candidate| candidate.member == member) {
                candidates.remove(last);
            }
            if refusal != name.missing() {
                *reason = refusal;
            }
        }
    }

    fn connected(&mut self, handle: RemoteSegment, pair: PairId, slot: Slot, claimed: Claimed) {
        let connection = claimed.connection(pair, slot);
        let Connection { bytes, group, .. } = connection;
        if claimed.is_listening {
            self.ring([pair]);
        }
        let Some(remote) = self.remotes.get_mut(&handle) else { return };
        let was = core::mem::replace(&mut remote.stage, Stage::Connected(connection));
        let (ticket, candidates) = match was {
            Stage::Connecting(Attempt { ticket, step: Step::Trying { candidates, .. }, .. }) => {
                (ticket, candidates)
            }
            _ => (None, Vec::new()),
        };
        if let Some(ticket) = ticket {
            let value = match remote.name.kind {
                NameKind::Segment | NameKind::Group => Value::Remote(handle, bytes),
                NameKind::Interrupt
                | NameKind::SharedInterrupt
                | NameKind::DataInterrupt
                | NameKind::GroupInterrupt => Value::Trigger(RemoteInterrupt(handle.0)),
            };
            self.told.push_back(Told::Outcome(ticket, Ok(value)));
            let standing = self.standing(handle);
            if let Some(remote) = self.remotes.get_mut(&handle) {
                remote.set_told_connected(standing.unwrap_or(Standing::Gone));
            }
        }
        self.note_remote(handle);
        if group != 0 {
            self.held.insert(handle);
            self.claim_of(handle, candidates);
        }
        self.tell_of_remote(handle);
    }

    /// An attempt has failed: it is refused, or tried again later.
    pub(crate) fn failed(&mut self, handle: RemoteSegment, reason: Refusal, now: Nanos) {
        let Some(Remote { stage: Stage::Connecting(attempt), .. }) = self.remotes.get_mut(&handle) else {
            return;
        };
        let is_over = attempt.until.is_some_and(|until| until <= now);
        // This member can have no further connection, whatever the other ones do.
        let is_final = attempt.is_once || reason == Refusal::MaxEntries;
        if !is_final && !is_over {
            let again = now.after(REST_NANOS);
            let until = attempt.until.map_or(again, |until| until.min(again));
            attempt.step = Step::Resting { until, reason };
            return;
        }
        self.refuse(handle, if is_final { reason } else { reason.in_time() });
    }

    /// Ends an attempt.
    pub(crate) fn refuse(&mut self, handle: RemoteSegment, refusal: Refusal) {
        let Some(remote) = self.remotes.get_mut(&handle) else { return };
        let Stage::Connecting(attempt) = &remote.stage else { return };
        match attempt.ticket {
            Some(ticket) => {
                self.remotes.remove(&handle);
                self.note_remote(handle);
                self.told.push_back(Told::Outcome(ticket, Err(refusal)));
            }
            None => {
                remote.stage = Stage::NotMade(refusal);
                self.note_remote(handle);
                self.tell_of_remote(handle);
            }
        }
    }
}
