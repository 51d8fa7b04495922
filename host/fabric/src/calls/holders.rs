//! Segments that several members hold: becoming a holder, and connections to all of them.
//!
//! A connection claims the segment of each holder that it knows: so each hears of it, and it goes on as long as one is there. Who came
//! since is found by a look at the names, at most once a second, and when none that is known is there any more.

use alloc::vec::Vec;
use core::num::NonZeroU64;

use beeline_contract_adapter::Adapter;

use super::Outcome;
use crate::access::Access;
use crate::board::layout::Phase;
use crate::board::read_entry;
use crate::call::{Done, Value};
use crate::ids::{
    AdapterNumber, LocalSegment, MemberNumber, MemberRange, Name, Nanos, NodeId, PairId, RemoteSegment,
    SegmentId, Slot, Ticket,
};
use crate::link::Paths;
use crate::member::{Asked, Member};
use crate::refusal::Refusal;
use crate::segment::holder::{Holder, Lent};
use crate::segment::local::{Local, LocalMemory};
use crate::segment::memory::Memory;
use crate::segment::remote::{Aim, Attempt, Connection, Remote, Stage, Step};
use crate::sequence::{Connected, ConnectionView, Standing};
use crate::told::Told;
use crate::want::{Answer, Candidate, NameOp};

/// How long to wait at most for holders that do not answer.
const FIND_NANOS: u64 = 10_000_000_000;
/// How often a connection looks for holders that came since.
const LOOK_NANOS: u64 = 1_000_000_000;

impl<A: Adapter> Member<A> {
    pub(super) fn find_holder(
        &mut self,
        node: NodeId,
        id: SegmentId,
        among: MemberRange,
        now: Nanos,
    ) -> Outcome {
        let handle = RemoteSegment(self.number());
        let ticket = Ticket(self.number());
        let attempt = Attempt {
            ticket: Some(ticket),
            until: Some(now.after(FIND_NANOS)),
            is_once: true,
            aim: Aim::Holder { among },
            step: Step::Finding,
        };
        // It goes by no adapter: nothing is stored.
        let remote = Remote::new(node, Name::segment_of(node, id), AdapterNumber::FIRST, attempt);
        self.remotes.insert(handle, remote);
        self.note_remote(handle);
        self.try_again(handle, now);
        Ok(Done::Wait(ticket))
    }

    /// The holder that a candidate is, by its board.
    pub(super) fn look_for_holder(
        &self,
        pair: PairId,
        (member, slot): (MemberNumber, Slot),
        name: Name,
    ) -> Result<Holder, Refusal> {
        if self.pairs.ports(pair).is_none() {
            return Err(Refusal::NodeNotResponding);
        }
        let board = self.pairs.board(pair).ok_or(Refusal::NodeNotResponding)?;
        let entry = read_entry(board, slot).filter(|entry| entry.state.phase != Phase::Free);
        let entry = entry.filter(|entry| entry.name == Some(name)).ok_or(name.missing())?;
        let group = NonZeroU64::new(entry.group).ok_or(Refusal::ConnectionRefused)?;
        let lent = Lent { slot, incarnation: entry.state.incarnation };
        Ok(Holder { pair, member, lent, bytes: entry.bytes, group })
    }

    pub(super) fn holder_found(&mut self, handle: RemoteSegment, holder: Holder) {
        let Some(remote) = self.remotes.remove(&handle) else { return };
        self.note_remote(handle);
        if let Stage::Connecting(Attempt { ticket: Some(ticket), .. }) = remote.stage {
            self.told.push_back(Told::Outcome(ticket, Ok(Value::Holder(holder))));
        }
    }

    pub(super) fn hold(&mut self, name: Name, bytes: u64, group: NonZeroU64, of: Option<Holder>) -> Outcome {
        if bytes == 0 {
            return Err(Refusal::SizeAlignment);
        }
        let (slot, entry) = self.take_entry().ok_or(Refusal::MaxEntries)?;
        let memory = LocalMemory::There { memory: Memory::Own { slot }, bytes, is_shareable: true };
        let mut local = Local::new(name, slot, entry, memory);
        local.group = group.get();
        let ticket = Ticket(self.number());
        let put = match of {
            Some(holder) => NameOp::PutBeside(name, slot, holder),
            None => NameOp::Put(name, slot),
        };
        self.ask(Asked::Create { ticket, local, first_of_auto: None }, put);
        Ok(Done::Wait(ticket))
    }

    pub(super) fn share(&mut self, local: LocalSegment, group: NonZeroU64) -> Outcome {
        let local = self.local(local)?;
        let is_shareable = matches!(local.memory, LocalMemory::There { is_shareable: true, .. });
        // Each holder would have a list of its own.
        let is_listed = *local.access != Access::default();
        if local.is_private || !is_shareable || is_listed {
            return Err(Refusal::IllegalOperation);
        }
        if local.group == 0 {
            local.group = group.get();
            let slot = local.slot;
            self.board.set_group(slot, group.get());
        }
        Ok(Done::Now(Value::Nothing))
    }

    /// The words that say whether a holder still has the segment; `None` if its pair is gone.
    pub fn watch_holder(&self, holder: Holder, own: &A::View) -> Option<ConnectionView<A::View>>
    where
        A::View: Clone,
    {
        let theirs = self.pairs.board(holder.pair)?.clone();
        let Lent { slot, incarnation } = holder.lent;
        let connected = Connected { slot, incarnation, paths: Paths::of(0) };
        Some(ConnectionView { own: own.clone(), theirs, connected })
    }

    /// The words of the holders that a connection knows beside the first.
    pub fn views_of_others(
        &self,
        handle: RemoteSegment,
        own: &A::View,
    ) -> Vec<(PairId, ConnectionView<A::View>)>
    where
        A::View: Clone,
    {
        let Some(remote) = self.remotes.get(&handle) else { return Vec::new() };
        let view = |connection: &Connection| {
            let theirs = self.pairs.board(connection.pair)?.clone();
            let connected = connection.connected();
            Some((connection.pair, ConnectionView { own: own.clone(), theirs, connected }))
        };
        remote.holders.others.iter().filter_map(view).collect()
    }

    /// Puts the first holder of a connection behind the others, because it does not answer.
    pub fn pass_over_holder(&mut self, handle: RemoteSegment) {
        let Some(Remote { stage: Stage::Connected(first), holders, .. }) = self.remotes.get_mut(&handle)
        else {
            return;
        };
        if !holders.others.is_empty() {
            holders.others.push(*first);
            *first = holders.others.remove(0);
        }
    }

    /// The number of the memory that a connection is to, if several may hold it.
    pub fn group_of(&self, handle: RemoteSegment) -> Option<NonZeroU64> {
        NonZeroU64::new(self.remotes.get(&handle)?.connection().ok()?.group)
    }

    /// Whether several may hold what a connection is to.
    pub fn is_held(&self, handle: RemoteSegment) -> bool {
        self.remotes.get(&handle).and_then(|remote| remote.connection().ok()).is_some_and(|it| it.group != 0)
    }

    /// How many holders a connection knows.
    pub fn holders_of(&self, handle: RemoteSegment) -> usize {
        self.remotes.get(&handle).map_or(0, |remote| 1 + remote.holders.others.len())
    }

    /// Ends one claim of a connection.
    pub(super) fn let_go(&mut self, connection: &Connection) {
        if let Some(ports) = self.pairs.ports_mut(connection.pair)
            && ports.disconnect(connection.slot, connection.incarnation)
        {
            self.ring([connection.pair]);
        }
    }

    /// Claims the segment of each of these, as far as they hold it and are reached; the others once they are.
    pub(crate) fn claim_of(&mut self, handle: RemoteSegment, candidates: Vec<Candidate>) {
        for candidate in candidates {
            let Candidate { member, slot } = candidate;
            let Some(remote) = self.remotes.get_mut(&handle) else { return };
            let (node, name, adapter) = (remote.node, remote.name, remote.adapter);
            let Ok(&first) = remote.connection() else { return };
            let Some(pair) = self.pairs.provider_of(member) else {
                remote.holders.more.push(candidate);
                self.begin_to_reach(node, member);
                continue;
            };
            if self.pairs.providers.get(&pair).is_some_and(|provider| provider.ports.is_none()) {
                remote.holders.more.push(candidate);
                continue;
            }
            let is_it = |it: &Connection| (it.pair, it.slot) == (pair, slot) && self.is_there(it);
            let is_known = is_it(&first) || self.others_of(handle).any(is_it);
            if is_known || self.pairs.ports(pair).is_none() {
                continue;
            }
            let (paths, links) = (self.links.paths(adapter), &self.links);
            let Some(Ok(claimed)) =
                self.pairs.ports_mut(pair).map(|ports| ports.connect(slot, name, paths, links))
            else {
                continue;
            };
            let connection = claimed.connection(pair, slot);
            // Another memory under the same name is another segment.
            if (connection.group, connection.bytes) != (first.group, first.bytes) {
                self.let_go(&connection);
                continue;
            }
            if claimed.is_listening {
                self.ring([pair]);
            }
            if let Some(remote) = self.remotes.get_mut(&handle) {
                remote.holders.others.push(connection);
            }
        }
    }

    fn others_of(&self, handle: RemoteSegment) -> impl Iterator<Item = &Connection> {
        self.remotes.get(&handle).into_iter().flat_map(|remote| &remote.holders.others)
    }

    fn is_there(&self, connection: &Connection) -> bool {
        let board = self.pairs.board(connection.pair);
        board.is_some_and(|board| connection.connected().is_there(board))
    }

    /// Ends the claims of holders that have the segment no more.
    fn let_go_of_gone(&mut self, handle: RemoteSegment) {
        let gone: Vec<_> = self.others_of(handle).filter(|it| !self.is_there(it)).copied().collect();
        gone.iter().for_each(|connection| self.let_go(connection));
        if let Some(remote) = self.remotes.get_mut(&handle) {
            let is_gone =
                |it: &Connection| gone.iter().any(|gone| (gone.pair, gone.slot) == (it.pair, it.slot));
            remote.holders.others.retain(|it| !is_gone(it));
        }
    }

    /// Goes on with connections that wait for members to be reached.
    pub(crate) fn claim_reached(&mut self) {
        for handle in self.held.iter().copied().collect::<Vec<_>>() {
            let Some(remote) = self.remotes.get_mut(&handle) else { continue };
            let more = core::mem::take(&mut remote.holders.more);
            if !more.is_empty() {
                self.claim_of(handle, more);
                self.end_seeking(handle);
            }
        }
    }

    /// Takes that a member is gone, or is not reached.
    pub(crate) fn holder_gone(&mut self, member: MemberNumber) {
        for handle in self.held.iter().copied().collect::<Vec<_>>() {
            let Some(remote) = self.remotes.get_mut(&handle) else { continue };
            remote.holders.more.retain(|candidate| candidate.member != member);
            self.end_seeking(handle);
        }
    }

    /// Looks at the names for holders that came since, where it is time.
    pub(crate) fn look_for_holders(&mut self, now: Nanos) {
        for handle in self.held.iter().copied().collect::<Vec<_>>() {
            let Some(remote) = self.remotes.get_mut(&handle) else { continue };
            let holders = &mut remote.holders;
            if holders.next_look > now || (holders.is_seeking && !holders.has_failed) {
                continue;
            }
            (holders.next_look, holders.has_failed) = (now.after(LOOK_NANOS), false);
            let find = NameOp::Find(remote.node, remote.name);
            self.ask(Asked::Holders(handle), find);
        }
    }

    /// Looks at the names because none of the holders that are known is there.
    pub(super) fn seek_holders(&mut self, handle: RemoteSegment) {
        self.held.insert(handle);
        let now = self.now;
        let Some(remote) = self.remotes.get_mut(&handle) else { return };
        let holders = &mut remote.holders;
        if !holders.is_seeking || (holders.has_failed && holders.next_look <= now) {
            (holders.is_seeking, holders.has_failed) = (true, false);
            let find = NameOp::Find(remote.node, remote.name);
            self.ask(Asked::Holders(handle), find);
        }
    }

    pub(crate) fn holders_found(&mut self, handle: RemoteSegment, answer: Answer, now: Nanos) {
        self.let_go_of_gone(handle);
        if let Answer::Found(found) = answer {
            self.claim_of(handle, found.candidates);
            self.end_seeking(handle);
        } else if let Some(Remote { holders, .. }) = self.remotes.get_mut(&handle)
            && holders.is_seeking
        {
            // Somebody may hold it all the same.
            (holders.has_failed, holders.next_look) = (true, now.after(LOOK_NANOS));
        }
    }

    /// Decides what becomes of a connection whose known holders were all gone, once nobody else is to be reached.
    fn end_seeking(&mut self, handle: RemoteSegment) {
        let Some(remote) = self.remotes.get_mut(&handle) else { return };
        let holders = &remote.holders;
        if !holders.is_seeking || holders.has_failed || !holders.more.is_empty() {
            return;
        }
        remote.holders.is_seeking = false;
        let is_nobody_left = remote.holders.others.is_empty();
        if is_nobody_left
            && self.standing_of_first(handle) == Some(Standing::Gone)
            && let Some(Stage::Connected(connection)) = self.remotes.get_mut(&handle).map(|it| &mut it.stage)
        {
            connection.is_lost = true;
            self.held.remove(&handle);
        }
        self.tell_of_remote(handle);
    }
}
