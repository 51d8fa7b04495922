//! What the member wants, done in the memory. Nothing of it waits.

use std::cell::RefCell;

use beeline_fabric::{
    Answer, Candidate, Found, MemberNumber, Name, NameKind, NameOp, Nanos, NodeId, PairId, Reached, Want,
};
use beeline_mmio::Pace;

use super::{Shared, State, nanos};
use crate::names;
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
                Want::Punch { offset, bytes } => {
                    let state = RefCell::new(&mut *state);
                    self.space.punch(self.slot, offset, bytes, &Beating { shared: self, state });
                }
            }
        }
    }

    fn name(&self, state: &mut State, op: NameOp) -> Answer {
        match op {
            NameOp::Put(name, slot) | NameOp::PutFirst(name, slot) => {
                let State { names, peers, .. } = state;
                let others = peers.iter().filter(|peer| peer.slot != self.slot && peer.is_of(self.node));
                names.put(name, slot, others.map(|peer| &peer.names))
            }
            NameOp::PutBeside(..) => Answer::Failed,
            NameOp::Remove(name, _) => {
                state.names.remove(name);
                Answer::Done
            }
            NameOp::Find(node, name) => Answer::Found(self.find(state, node, name)),
        }
    }

    fn find(&self, state: &State, node: NodeId, name: Name) -> Found {
        if name.kind == NameKind::Group {
            return Found::default();
        }
        let of_node = state.peers.iter().filter(|peer| peer.is_of(node));
        let candidates = of_node.clone().filter_map(|peer| {
            let is_own = peer.slot == self.slot;
            let slot = if is_own { state.names.find(name) } else { names::find(&peer.names, name) };
            Some(Candidate { member: peer.number?, slot: slot? })
        });
        Found { candidates: candidates.collect(), is_node_alive: of_node.count() != 0 }
    }

    fn reach(&self, state: &mut State, pair: PairId, member: MemberNumber) -> Reached<View, Published> {
        let is_of = |peer: &&mut crate::peer::Peer| peer.number == Some(member) && peer.provider.is_none();
        let Some(peer) = state.peers.iter_mut().find(is_of) else { return Reached::NotResponding };
        if !peer.hold(&self.space, self.slot) {
            return Reached::NotResponding;
        }
        peer.provider = Some(pair);
        peer.claims.clear();
        Reached::Provider { board: View::new(self.space.board(peer.slot)), claims: peer.claims.clone() }
    }
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
    use std::fs::File;
    use std::time::Duration;

    use beeline_fabric::{AdapterNumber, NodeId};
    use beeline_mmio::OnLoss;

    use super::*;
    use crate::{BarConfig, BarMember, BarMemory};

    #[test]
    fn piece_of_memory_is_given_back_after_a_beat_and_not_once_the_slot_is_another_members() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        File::create(&path).unwrap().set_len(4 << 20).unwrap();
        let (node, adapter) = (NodeId(4), AdapterNumber::new(0).unwrap());
        let (memory, nodes, on_loss) = (BarMemory::File(path), vec![node], OnLoss::Fatal);
        let config = BarConfig { memory, members: 2, slot: Some(0), node, adapter, nodes, on_loss };
        let member = BarMember::open(config).unwrap();
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
