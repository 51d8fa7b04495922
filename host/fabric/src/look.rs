//! Looking: what others publish becomes events, and time goes on.

use alloc::sync::Arc;
use alloc::vec::Vec;

use beeline_contract_adapter::Adapter;

use crate::call::Value;
use crate::event::{LocalEvent, RemoteEvent};
use crate::ids::{AskId, LocalSegment, Nanos, PairId, RemoteSegment};
use crate::member::{Asked, Member};
use crate::pairs::Ports;
use crate::refusal::Refusal;
use crate::segment::remote::{Attempt, Remote, Stage, Step};
use crate::segment::waiters::Waiters;
use crate::told::Told;
use crate::want::{Answer, Reached, Want};

impl<A: Adapter> Member<A> {
    /// Looks at what other members publish: after a ring, when [`Member::wake_at`] has come, and before the program waits.
    pub fn look(&mut self, now: Nanos) {
        debug_assert!(self.has_noted_all(), "a call has changed what it did not note");
        self.now = now;
        self.settle();
        self.tell();
        self.expire(now);
        for handle in self.resting(now) {
            self.try_again(handle, now);
        }
        self.look_for_holders(now);
    }

    /// Takes the answer of an operation on names, at the time `now`.
    pub fn answered(&mut self, ask: AskId, answer: Answer, now: Nanos) {
        match self.asked.remove(&ask) {
            Some(Asked::Create { ticket, local, first_of_auto }) => {
                self.name_put(ticket, local, first_of_auto, &answer);
            }
            Some(Asked::CreateInterrupt { ticket, interrupt, first_of_auto }) => {
                self.interrupt_named(ticket, interrupt, first_of_auto, &answer);
            }
            Some(Asked::Connect(remote)) => self.name_found(remote, answer, now),
            Some(Asked::Holders(remote)) => self.holders_found(remote, answer, now),
            None => {}
        }
    }

    /// Takes what came of an attempt to reach a member, at the time `now`.
    pub fn reached(&mut self, pair: PairId, reached: Reached<A::View, A::Claims>, now: Nanos) {
        let Some(provider) = self.pairs.providers.get_mut(&pair) else { return };
        provider.ports = match reached {
            Reached::Provider { board, claims } => {
                let ports = Ports::new(board, claims, provider.node);
                self.wants.extend(ports.is_none().then_some(Want::Close(pair)));
                ports
            }
            Reached::NotResponding => None,
        };
        if provider.ports.is_none() {
            self.gone(pair, now);
            return;
        }
        for handle in self.attempts(|_| true) {
            self.try_candidates(handle, now);
        }
        self.claim_reached();
    }

    /// Takes that the other member of a pair is not heard any more, at the time `now`. Its process may only stand still, and its stores
    /// still come: memory of the bank that it claims is not used again.
    pub fn silent(&mut self, pair: PairId, now: Nanos) {
        if let Some(consumer) = self.pairs.consumers.get(&pair) {
            let locals = self.locals.values().filter_map(|local| Some((local.slot, local.memory.bank()?.0)));
            let lingering = self.slots.lingering().filter_map(|it| Some((it.slot, it.bank?.0)));
            let claimed = locals.chain(lingering).filter(|(slot, _)| consumer.claims_any(*slot));
            claimed.for_each(|(_, offset)| self.bank.keep(offset));
        }
        self.gone(pair, now);
    }

    /// As [`Member::silent`], when another member has cleared what this one claims: all memory of the bank that it may have had is not
    /// used again.
    pub fn replaced(&mut self, pair: PairId, now: Nanos) {
        if self.pairs.consumers.contains_key(&pair) {
            let locals = self.locals.values().filter(|local| !local.is_private);
            let locals = locals.filter_map(|local| Some(local.memory.bank()?.0));
            let lingering = self.slots.lingering().filter_map(|it| Some(it.bank?.0));
            locals.chain(lingering).for_each(|offset| self.bank.keep(offset));
        }
        self.gone(pair, now);
    }

    /// Takes that the other member of a pair is gone, at the time `now`.
    pub fn gone(&mut self, pair: PairId, now: Nanos) {
        self.note_last_claims(pair);
        self.note_groups_of(pair);
        if let Some(provider) = self.pairs.providers.remove(&pair) {
            self.holder_gone(provider.member);
            // Attempts that wait for it ask the next.
            for handle in self.attempts(|_| true) {
                if self.leave_member(handle, provider.member) {
                    self.try_candidates(handle, now);
                }
            }
        }
        self.look(now);
    }

    /// Keeps of a member that goes what it said last of each segment of this one: it may have disconnected since the last look.
    fn note_last_claims(&mut self, pair: PairId) {
        let Some(consumer) = self.pairs.consumers.remove(&pair) else { return };
        for local in self
            .locals
            .values_mut()
            .filter(|local| !local.is_private && local.access.lets(consumer.node, consumer.user))
        {
            let incarnation = local.entry.incarnation;
            local.users.gone(incarnation, consumer.seen(pair, local.slot, incarnation));
        }
    }

    /// Keeps of connections to a member that goes whether others hold what they are to, which its board says.
    fn note_groups_of(&mut self, pair: PairId) {
        let of_pair = |remote: &Remote| remote.connection().is_ok_and(|it| it.pair == pair);
        let of_pair = self.remotes.iter().filter(|(_, remote)| of_pair(remote)).map(|(handle, _)| *handle);
        for handle in of_pair.collect::<Vec<_>>() {
            self.standing_of_first(handle);
        }
    }

    /// Leaves the fabric: connections to this member are lost.
    pub fn leave(&mut self) {
        self.board.close();
        let consumers: Vec<_> = self.pairs.consumers.keys().copied().collect();
        self.ring(consumers);
    }

    /// Ends every attempt to connect that a call waits for: the call is refused with [`Refusal::Cancelled`].
    pub fn cancel_attempts(&mut self) {
        for handle in self.attempts(|attempt| attempt.ticket.is_some()) {
            self.refuse(handle, Refusal::Cancelled);
        }
    }

    /// Tells programs what they have not been told, as far as they ask for it.
    pub(crate) fn tell(&mut self) {
        self.listen();
        let locals: Vec<_> = self.index.waiting_locals().collect();
        for handle in locals {
            self.tell_of_local(handle);
        }
        let remotes: Vec<_> = self.index.waiting_remotes().collect();
        for handle in remotes {
            self.tell_of_remote(handle);
        }
    }

    /// The next event of a segment or a connection that has a callback, each in turn; `None` if nothing has happened that the program
    /// has not been told. It is found when it is asked for, so nothing piles up where nobody asks.
    pub fn next_callback(&mut self) -> Option<Told> {
        // Behind the one that was told last, to the end, and from the first one to that one.
        let last = self.last_callback;
        self.callback_between(last, u64::MAX).or_else(|| self.callback_between(0, last))
    }

    /// The next event of something that has a callback and a number above `last`, up to `end`.
    fn callback_between(&mut self, mut last: u64, end: u64) -> Option<Told> {
        while let Some(number) = self.index.next_callback(last).filter(|number| *number <= end) {
            last = number;
            let of_local = self.callback_of_local(LocalSegment(number));
            if let Some(told) = of_local.or_else(|| self.callback_of_remote(RemoteSegment(number))) {
                self.last_callback = number;
                return Some(told);
            }
        }
        None
    }

    fn callback_of_local(&mut self, handle: LocalSegment) -> Option<Told> {
        self.next_of_local(handle).map(|event| Told::OfLocal(handle, event))
    }

    fn callback_of_remote(&mut self, handle: RemoteSegment) -> Option<Told> {
        self.next_of_remote(handle).map(|event| Told::OfRemote(handle, event))
    }

    /// Gives a segment a callback: its events are told as they come, and not waited for.
    pub fn tell_segment(&mut self, handle: LocalSegment) {
        if let Some(local) = self.locals.get_mut(&handle) {
            local.has_callback = true;
            self.note_local(handle);
            self.listen();
        }
    }

    /// Gives a connection a callback, as [`Member::tell_segment`] does.
    pub fn tell_connection(&mut self, handle: RemoteSegment) {
        if let Some(remote) = self.remotes.get_mut(&handle) {
            remote.has_callback = true;
            self.note_remote(handle);
        }
    }

    /// The next event of one segment that has a callback, as [`Member::next_callback`] finds it.
    pub fn next_of_local(&mut self, handle: LocalSegment) -> Option<LocalEvent> {
        let local = self.locals.get_mut(&handle).filter(|local| local.has_callback)?;
        let seen = self.pairs.seen(Arc::clone(&local.access), local.slot, local.entry.incarnation);
        local.next_event(&self.links, seen)
    }

    /// The next event of one connection that has a callback, as [`Member::next_callback`] finds it.
    pub fn next_of_remote(&mut self, handle: RemoteSegment) -> Option<RemoteEvent> {
        let standing = self.standing(handle);
        let is_told = |remote: &&mut Remote| remote.has_callback && !remote.holders.is_seeking;
        self.remotes.get_mut(&handle).filter(is_told)?.next_event(standing)
    }

    /// Says on the board whether anybody here hears of connections. Whoever wants to is told what there is afterwards.
    pub(crate) fn listen(&mut self) {
        self.board.set_listening(self.index.is_listening() && !self.polls);
    }

    /// Says whether the program looks so often that nobody has to ring it when a segment is connected to.
    pub fn set_polling(&mut self, polls: bool) {
        self.polls = polls;
        self.listen();
    }

    pub(crate) fn tell_of_local(&mut self, handle: LocalSegment) {
        let Some(local) = self.locals.get_mut(&handle) else { return };
        while !local.waiters.is_empty() {
            let seen = self.pairs.seen(Arc::clone(&local.access), local.slot, local.entry.incarnation);
            let Some(event) = local.next_event(&self.links, seen) else { return };
            let outcome = |ticket| Told::Outcome(ticket, Ok(Value::LocalEvent(event)));
            self.told.extend(local.waiters.pop().map(outcome));
        }
        self.note_local(handle);
    }

    pub(crate) fn tell_of_remote(&mut self, handle: RemoteSegment) {
        let standing = self.standing(handle);
        let Some(remote) = self.remotes.get_mut(&handle) else { return };
        while !remote.waiters.is_empty() && !remote.holders.is_seeking {
            let Some(event) = remote.next_event(standing) else { return };
            let outcome = |ticket| Told::Outcome(ticket, Ok(Value::RemoteEvent(event)));
            self.told.extend(remote.waiters.pop().map(outcome));
        }
        self.note_remote(handle);
    }

    /// Ends waits whose time is over.
    pub(crate) fn expire(&mut self, now: Nanos) {
        let locals: Vec<_> = self.index.waiting_locals().collect();
        for handle in locals {
            self.expire_waiters(now, |member| Some(&mut member.locals.get_mut(&handle)?.waiters));
            self.note_local(handle);
        }
        let remotes: Vec<_> = self.index.waiting_remotes().collect();
        for handle in remotes {
            self.expire_waiters(now, |member| Some(&mut member.remotes.get_mut(&handle)?.waiters));
            self.note_remote(handle);
        }
        let is_over = |attempt: &Attempt| attempt.until.is_some_and(|until| until <= now);
        for handle in self.attempts(|attempt| !attempt.is_once && is_over(attempt)) {
            let reason = self.remotes.get(&handle).map_or(Refusal::Timeout, Remote::reason_so_far);
            self.refuse(handle, reason.in_time());
        }
        for handle in self.attempts(is_over) {
            self.refuse(handle, Refusal::NodeNotResponding);
        }
    }

    fn expire_waiters(&mut self, now: Nanos, of: impl Fn(&mut Self) -> Option<&mut Waiters>) {
        while let Some(ticket) = of(self).and_then(|waiters| waiters.pop_late(now)) {
            self.told.push_back(Told::Outcome(ticket, Err(Refusal::Timeout)));
        }
    }

    fn resting(&self, now: Nanos) -> Vec<RemoteSegment> {
        self.attempts(|attempt| matches!(attempt.step, Step::Resting { until, .. } if until <= now))
    }

    fn attempts(&self, is_one: impl Fn(&Attempt) -> bool) -> Vec<RemoteSegment> {
        let is_one = |handle: &RemoteSegment| match self.remotes.get(handle).map(|remote| &remote.stage) {
            Some(Stage::Connecting(attempt)) => is_one(attempt),
            _ => false,
        };
        self.index.connecting().filter(is_one).collect()
    }
}
