//! Groups and shared segments: how a process becomes a holder of memory that several have.
//!
//! All holders that live have one memory, by induction. The first puts its name alone, which is refused if anybody has it who lives. Every other
//! one uses the memory of a holder that it has found, and puts its name only if that holder still has the segment after it, or nobody who lives
//! has the name. A holder that stood still for longer than the bound may find that others have made the group anew: then it is a member no more.

use std::num::NonZeroU64;
use std::thread::sleep;
use std::time::{Duration, Instant};

use beeline_fabric::{
    Call, Done, Holder, LocalSegment, MemberRange, Name, NodeId, Refusal, SegmentId, Value, group_at,
};

use super::{Shared, State};
use crate::joint::Holding;
use crate::names;
use crate::peer::Peer;
use crate::words::View;

/// How long a process tries to become a holder, while holders come and go.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the member of the first slot rests between two tries, and each one behind it longer than that before it: of several that come
/// at the same time one is alone.
const REST: Duration = Duration::from_millis(1);

impl State {
    /// Takes that others may have made anew what this member holds.
    pub(super) fn suspect_holdings(&mut self) {
        self.holdings.values_mut().for_each(|holding| holding.is_suspect = true);
    }

    /// Whether somebody has made anew what this member, which is of the node `own`, holds.
    pub(super) fn is_any_made_anew(&self, own: NodeId) -> bool {
        let mut suspect = self.holdings.values().filter(|holding| holding.is_suspect);
        suspect.any(|holding| {
            let is_of_fabric = holding.name.kind.is_of_fabric();
            let of = |peer: &&Peer| peer.number.is_some() && (is_of_fabric || peer.is_of(own));
            let mut there = self.peers.iter().filter(of);
            there.any(|peer| {
                let board = View::new(self.board.space().board(peer.slot));
                let mut slots = names::find(&peer.names, holding.name);
                slots.any(|slot| {
                    let group = group_at(&board, slot, holding.name);
                    group.is_some_and(|group| group != holding.group)
                })
            })
        })
    }
}

impl Shared {
    /// Makes this process a holder of a segment of the fabric, which it makes if nobody holds it. Whether it has made it.
    pub(crate) fn join(&self, id: SegmentId, bytes: u64) -> Result<(LocalSegment, bool), Refusal> {
        if bytes == 0 {
            return Err(Refusal::SizeAlignment);
        }
        let node = NodeId::GROUPS;
        self.until_held(|| {
            // Whether anybody who lives has the name is known when it is put.
            let found = self.find_holder(node, id).ok();
            let is_of_other_size = found.is_some_and(|holder| holder.bytes != bytes);
            if is_of_other_size {
                return Err(Refusal::GroupOfAnotherSize);
            }
            let local = self.hold(Name::segment_of(node, id), bytes, found)?;
            Ok((local, found.is_none()))
        })
    }

    /// Makes this process a holder of a segment of its node, which another member has shared. Says how large that is.
    pub(crate) fn attach(&self, id: SegmentId) -> Result<(LocalSegment, u64), Refusal> {
        let node = self.node;
        self.until_held(|| {
            let holder = self.find_holder(node, id)?;
            let local = self.hold(Name::segment_of(node, id), holder.bytes, Some(holder))?;
            Ok((local, holder.bytes))
        })
    }

    /// Lets other members of the node hold a segment of this one, where it is.
    pub(crate) fn share(&self, local: LocalSegment) -> Result<(), Refusal> {
        self.check()?;
        let group = random()?;
        self.enter(|state, now| {
            let share = Call::Share { local, group };
            let is_held = state.holdings.contains_key(&local);
            let Some((name, part)) = state.member.in_bank(local).filter(|_| !is_held) else {
                // Several hold it already, or it is none that they could.
                return state.member.call(share, now).map(drop);
            };
            // First, so that whoever finds its number in the entry finds the memory.
            state.joints.make(group, part)?;
            let begun = state.joints.begin(group, &mut state.peers);
            if let Err(refusal) = begun.and_then(|_| state.member.call(share, now)) {
                begun.into_iter().for_each(|_| state.joints.end(group, &mut state.peers));
                state.joints.withdraw(group);
                return Err(refusal);
            }
            self.meet_newcomers(state);
            // Pairs with the barrier of who connects: either its claim is seen here, or it has found that several hold the segment.
            let is_ordered = self.space.barrier().is_ok();
            if state.member.cede(local) || !is_ordered {
                state.joints.keep(group);
            }
            state.holdings.insert(local, Holding { name, group, is_suspect: false });
            Ok(())
        })
    }

    /// Tries until this process is a holder, and no longer than [`PATIENCE`] where others come and go.
    fn until_held<T>(&self, mut attempt: impl FnMut() -> Result<T, Refusal>) -> Result<T, Refusal> {
        let until = Instant::now() + PATIENCE;
        loop {
            match attempt() {
                Err(Refusal::SegmentidUsed | Refusal::NotConnected) if Instant::now() < until => {}
                Err(Refusal::SegmentidUsed | Refusal::NotConnected) => {
                    return Err(Refusal::NodeNotResponding);
                }
                outcome => return outcome,
            }
            sleep(REST * (1 + self.slot as u32));
        }
    }

    fn find_holder(&self, node: NodeId, id: SegmentId) -> Result<Holder, Refusal> {
        match self.call(Call::FindHolder { node, id, among: MemberRange::default() })? {
            Value::Holder(holder) => Ok(holder),
            _ => Err(Refusal::System),
        }
    }

    /// Makes this process a holder, of memory that another one has or of new one.
    fn hold(&self, name: Name, bytes: u64, of: Option<Holder>) -> Result<LocalSegment, Refusal> {
        self.check()?;
        let group = match of {
            Some(holder) => holder.group,
            None => random()?,
        };
        let ticket = self.enter(|state, now| {
            if of.is_none() {
                self.make(state, group, bytes)?;
            }
            let begun = state.joints.begin(group, &mut state.peers);
            let held = begun.and_then(|joint| {
                // What its words say, and what the board of the holder says.
                let is_whole = joint.bytes == bytes;
                let call = Call::Hold { name, bytes, group, of };
                match is_whole.then(|| state.member.call(call, now)).ok_or(Refusal::NotConnected)?? {
                    Done::Wait(ticket) => Ok(ticket),
                    Done::Now(_) => Err(Refusal::System),
                }
            });
            match (begun, held) {
                (_, Ok(ticket)) => {
                    state.coming.insert(ticket, Holding { name, group, is_suspect: false });
                }
                (Ok(_), Err(_)) => state.joints.end(group, &mut state.peers),
                (Err(_), Err(_)) => {}
            }
            held.inspect_err(|_| self.take_back(state))
        })?;
        match self.wait(ticket) {
            Ok(Value::Local(local, _)) => Ok(local),
            outcome => {
                self.enter(|state, _| {
                    state.joints.end(group, &mut state.peers);
                    self.take_back(state);
                });
                Err(outcome.err().unwrap_or(Refusal::System))
            }
        }
    }

    /// Makes memory in this member's area that others can hold, all zero.
    fn make(&self, state: &mut State, group: NonZeroU64, bytes: u64) -> Result<(), Refusal> {
        let offset = state.member.take_of_bank(bytes).ok_or(Refusal::Nospc)?;
        // The member that had the slot before may have left something.
        self.punch(state, offset, bytes);
        let made = state.joints.make(group, (offset, bytes));
        made.inspect_err(|_| state.member.give_back_to_bank((offset, bytes), false))
    }

    /// Takes memory back that this member has made for several, and that nobody uses any more.
    pub(super) fn take_back(&self, state: &mut State) {
        for ((offset, bytes), is_kept) in state.joints.take_back() {
            self.punch(state, offset, bytes);
            state.member.give_back_to_bank((offset, bytes), is_kept);
        }
    }

    /// Gives up what this process has of a segment that is removed.
    pub(crate) fn removed(&self, local: LocalSegment) {
        let memory = self.enter(|state, _| {
            self.let_go_of(state, local);
            state.private.remove(&local)
        });
        drop(memory);
    }

    /// Gives up the memory that others hold of a segment that is removed.
    pub(crate) fn let_go_of(&self, state: &mut State, local: LocalSegment) {
        if let Some(Holding { group, .. }) = state.holdings.remove(&local) {
            state.joints.end(group, &mut state.peers);
            self.take_back(state);
        }
    }
}

/// Which memory of several holders one is: no two that there are have the same.
fn random() -> Result<NonZeroU64, Refusal> {
    loop {
        let number = getrandom::u64().map_err(|_| Refusal::System)?;
        if let Some(number) = NonZeroU64::new(number) {
            return Ok(number);
        }
    }
}
