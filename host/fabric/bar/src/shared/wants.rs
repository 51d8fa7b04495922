//! What the member wants, done in the memory. Nothing of it waits.

use std::cell::RefCell;

use beeline_fabric::{
    Answer, Candidate, Found, Holder, MemberNumber, Name, NameKind, NameOp, Nanos, NodeId, PairId, Reached,
    Slot, Want, group_at,
};
use beeline_mmio::Pace;

use super::{Shared, State, nanos};
use crate::names::{self, OwnNames};
use crate::peer::Peer;
use crate::words::{Published, View};

impl Shared {
    pub(super) fn carry_out(&self, state: &mut State, now: Nanos) {
        while let Some(want) = state.member.next_want() {
            match want {
                Want::Name(ask, op) => {
                    let answer = self.name(state, op);
                    state.member.answered(ask, answer, now);
                }
                Want::Reach { pair, member, .. } => {
                    let reached = self.reach(state, pair, member);
                    state.member.reached(pair, reached, now);
                }
                // Everybody looks all the time.
                Want::Ring(_) => {}
                Want::Close(pair) => {
                    if let Some(peer) = state.peer_of(pair) {
                        peer.provider = peer.provider.filter(|provider| *provider != pair);
                        peer.let_go(&self.space, self.slot);
                    }
                }
                Want::Punch { offset, bytes } => self.punch(state, offset, bytes),
            }
        }
    }

    /// Makes a part of this member's area zero.
    pub(super) fn punch(&self, state: &mut State, offset: u64, bytes: u64) {
        self.space.punch(self.slot, offset, bytes, &Beating { shared: self, state: RefCell::new(state) });
    }

    fn name(&self, state: &mut State, op: NameOp) -> Answer {
        match op {
            NameOp::Put(name, slot) | NameOp::PutFirst(name, slot) => {
                let may_be_beside = name.kind.is_of_several() && matches!(op, NameOp::Put(..));
                self.put(state, (name, slot), |State { names, peers, .. }| {
                    let of = self.owners(name);
                    let is_had = |name| {
                        let is_known = candidates(names, (peers, self.slot), of, name).next().is_some();
                        is_known || self.unmet(peers, of, name).next().is_some()
                    };
                    (may_be_beside || !is_had(name)) && !in_other_kind(name).is_some_and(is_had)
                })
            }
            NameOp::PutBeside(name, slot, holder) => {
                self.put(state, (name, slot), |state| self.may_hold(state, name, holder))
            }
            NameOp::Remove(name, slot) => {
                state.names.remove(name, slot);
                Answer::Done
            }
            NameOp::Find(node, name) => Answer::Found(self.find(state, node, name)),
        }
    }

    /// Whether this member may hold what another one holds: all who live and have the name have that memory, and the other one is
    /// among them, or nobody has it.
    fn may_hold(&self, state: &State, name: Name, holder: Holder) -> bool {
        let State { names, peers, member, board, .. } = state;
        let asked = Candidate { member: holder.member, slot: holder.lent.slot };
        let of = self.owners(name);
        // Somebody may have made it anew who never met the holder, which was killed and is not missed here yet.
        let has_this =
            |at: usize, slot| group_at(&View::new(self.space.board(at)), slot, name) == Some(holder.group);
        let all: Vec<_> = candidates(names, (peers, self.slot), of, name).collect();
        let of_known = |it: &Candidate| {
            let peer = peers.iter().find(|peer| peer.number == Some(it.member));
            *it == asked || peer.is_some_and(|peer| has_this(peer.slot, it.slot))
        };
        let has_open = || member.watch_holder(holder, &board.view()).is_some_and(|view| view.is_there());
        let is_held = all.is_empty() || all.contains(&asked) && has_open();
        is_held
            && all.iter().all(of_known)
            && self.unmet(peers, of, name).all(|(at, slot)| has_this(at, slot))
    }

    /// Which slots have a name whose members may live, and do not know this one: they have put it without a look at its names.
    fn unmet<'a>(
        &'a self,
        peers: &'a [Peer],
        of: Option<NodeId>,
        name: Name,
    ) -> impl Iterator<Item = (usize, Slot)> + 'a {
        let now = self.now();
        let may_have_it = move |peer: &&Peer| {
            let number = self.space.number(peer.slot).load_acquire();
            number != 0 && peer.may_live(now) && of.is_none_or(|node| MemberNumber(number).node() == node)
        };
        let those = peers.iter().filter(may_have_it);
        those.flat_map(move |peer| names::find(&peer.names, name).map(|slot| (peer.slot, slot)))
    }

    /// Puts a name if `may_put`, which looks at the names that there are, finds after it that this member may have it.
    fn put(
        &self,
        state: &mut State,
        (name, slot): (Name, Slot),
        may_put: impl FnOnce(&mut State) -> bool,
    ) -> Answer {
        let begun = match state.names.begin(name, slot) {
            Ok(begun) => begun,
            Err(answer) => return answer,
        };
        self.meet_newcomers(state);
        let is_kept = may_put(state);
        state.names.end(begun, is_kept)
    }

    /// Hears whoever has come since the last beat: it knows this member, and may have put names.
    pub(crate) fn meet_newcomers(&self, state: &mut State) {
        let time = self.now();
        for at in 0..state.peers.len() {
            if state.peers[at].number.is_some() || self.space.number(at).load_acquire() == 0 {
                continue;
            }
            self.look_at(state, at, time);
            if state.peers[at].is_new() {
                self.take_in(state, at);
            }
        }
    }

    /// Whose members have names of this kind: those of this member's node, or of any if it is `None`.
    fn owners(&self, name: Name) -> Option<NodeId> {
        (!name.kind.is_of_fabric()).then_some(self.node)
    }

    pub(crate) fn find(&self, state: &State, node: NodeId, name: Name) -> Found {
        let State { names, peers, .. } = state;
        let of = (!name.kind.is_of_fabric()).then_some(node);
        let those_of = |name| candidates(names, (peers, self.slot), of, name);
        let mut candidates: Vec<_> = those_of(name).collect();
        if name.kind == NameKind::Interrupt {
            candidates.extend(in_other_kind(name).into_iter().flat_map(those_of));
        }
        let is_node_alive = !candidates.is_empty()
            || peers.iter().any(|peer| match of {
                Some(node) => peer.is_of(node),
                // Groups are of no node: somebody has to be of one.
                None => peer.number.is_some() && names::has_of_fabric(&peer.names),
            });
        Found { candidates, is_node_alive }
    }

    fn reach(&self, state: &mut State, pair: PairId, member: MemberNumber) -> Reached<View, Published> {
        let is_of = |peer: &&mut Peer| peer.number == Some(member) && peer.provider.is_none();
        let Some(peer) = state.peers.iter_mut().find(is_of) else { return Reached::NotResponding };
        if !peer.hold(&self.space, self.slot) {
            return Reached::NotResponding;
        }
        peer.provider = Some(pair);
        peer.claims.clear();
        Reached::Provider { board: View::new(self.space.board(peer.slot)), claims: peer.claims.clone() }
    }
}

/// The name of what may not have the number of an interrupt: an interrupt of a number is alone, or one of several.
fn in_other_kind(name: Name) -> Option<Name> {
    let kind = match name.kind {
        NameKind::Interrupt => NameKind::SharedInterrupt,
        NameKind::SharedInterrupt => NameKind::Interrupt,
        NameKind::Segment | NameKind::Group | NameKind::DataInterrupt | NameKind::GroupInterrupt => {
            return None;
        }
    };
    Some(Name { kind, ..name })
}

/// Who has a name, of members that are there: those of a node, or all.
fn candidates<'a>(
    own: &'a OwnNames,
    (peers, own_slot): (&'a [Peer], usize),
    of: Option<NodeId>,
    name: Name,
) -> impl Iterator<Item = Candidate> + 'a {
    let those = peers.iter().filter(move |peer| of.is_none_or(|node| peer.is_of(node)));
    those.filter_map(|peer| Some((peer, peer.number?))).flat_map(move |(peer, member)| {
        let own = (peer.slot == own_slot).then(|| own.find(name));
        let others = (peer.slot != own_slot).then(|| names::find(&peer.names, name));
        let slots = own.into_iter().flatten().chain(others.into_iter().flatten());
        slots.map(move |slot| Candidate { member, slot })
    })
}

/// Beats before each piece of memory: all of it may take longer than the bound of the heartbeat.
struct Beating<'a> {
    shared: &'a Shared,
    state: RefCell<&'a mut State>,
}

impl Pace for Beating<'_> {
    fn piece(&self, work: &mut dyn FnMut()) {
        let Beating { shared, state } = self;
        shared.look_at_all(&mut state.borrow_mut(), nanos(shared.now()));
        // The memory may be that of another member by now.
        if !shared.space.is_mute() {
            work();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::test_members::{member, memory};

    #[test]
    fn piece_of_memory_is_given_back_after_a_beat_and_not_once_the_slot_is_another_members() {
        let (_dir, memory) = memory(4 << 20);
        let member = member(&memory, Some(0));
        let (shared, space) = (&member.shared, &member.shared.space);
        let mut state = shared.lock();
        state.next_beat = Duration::ZERO;
        let beats = space.beat(0).load();
        let pace = Beating { shared, state: RefCell::new(&mut state) };
        let mut found = Vec::new();
        pace.piece(&mut || found.push(space.beat(0).load()));
        space.number(0).store(9);
        pace.piece(&mut || found.push(0));
        assert_eq!(found, [beats + 1]);
    }
}
