//! Another slot, as a member sees it: who has it, whether that member lives, and what this one has with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_contract_link::{Heartbeat, StatePort};
use beeline_contract_memory::Line;
use beeline_fabric::{MemberNumber, NodeId, PairId};
use beeline_heartbeat::{Acceptance, Down, LinkState, MappedFile, MappedState, Session, Status};
use beeline_mmio::Words;

use crate::interrupts::yard::Yard;
use crate::space::Space;
use crate::words::Published;

pub(crate) struct Peer {
    pub(crate) slot: usize,
    /// Its member, while that is there.
    pub(crate) number: Option<MemberNumber>,
    /// Whether that member is there: of this session, for who loads its words without a lock.
    there: Arc<AtomicBool>,
    /// What this member claims of it.
    pub(crate) claims: Published,
    pub(crate) names: Words,
    /// What the member has with it, while it uses its segments and is used.
    pub(crate) provider: Option<PairId>,
    pub(crate) consumer: Option<PairId>,
    /// Windows for messages to it.
    pub(crate) yard: Arc<Yard>,
    /// Maps of its area in this process.
    pub(crate) maps: usize,
    /// Memories of its area that this member uses and several hold, whoever made them.
    joints: usize,
    /// Nothing of this member's own slot.
    beat: Option<Beat>,
    /// What its member's count of beats was at the last look, and when it was seen to have changed.
    beats: Option<u64>,
    moved_at: Option<Duration>,
}

struct Beat {
    port: MappedState,
    state: LinkState,
    /// Makes the incarnations of the next state.
    random: u64,
    session: Option<Session>,
}

/// A member with its slot, of one session.
#[derive(Clone, Debug)]
pub(crate) struct Incumbent {
    space: Arc<Space>,
    pub(crate) slot: usize,
    number: MemberNumber,
    /// Until the session with it ends.
    there: Arc<AtomicBool>,
}

impl Incumbent {
    /// Whether words of the slot that were loaded before this were that member's: it is not known to be gone, and no other one has taken
    /// the slot.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        // Acquire: the first pairs with the store in `Peer::forget`. The second is not before the loads of those words, and who takes a
        // slot stores its number before other words of it.
        self.there.load(Ordering::Acquire) && self.space.number(self.slot).load_acquire() == self.number.0
    }
}

/// What has become of a peer since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    Came,
    /// It has left in order: none of its stores comes any more.
    Left,
    /// It is not heard any more, or has come as another.
    Lost,
    /// It has not heard this member for so long that it has taken it for dead.
    TakenForDead,
}

fn state(port: &mut MappedState, random: u64) -> LinkState {
    let before = port.pushed();
    LinkState::new::<MappedFile>(Acceptance::AtOnce, random, before.as_ref())
}

impl Peer {
    pub(crate) fn new(space: &Arc<Space>, (own, slot): (usize, usize), random: u64) -> Self {
        let beat = (own != slot).then(|| {
            let mut port = space.link(own, slot);
            let state = state(&mut port, random);
            Beat { port, state, random, session: None }
        });
        Peer {
            slot,
            number: None,
            there: Arc::default(),
            claims: Published::new(space, space.uses(own, slot)),
            names: space.names(slot),
            provider: None,
            consumer: None,
            yard: Arc::new(Yard::new(space, (own, slot))),
            maps: 0,
            joints: 0,
            beat,
            beats: None,
            moved_at: None,
        }
    }

    /// Looks at its heartbeat. What this side says then is pushed with [`Peer::push`], after what has become of the peer was made so.
    pub(crate) fn look(&mut self, now: Duration) -> (Change, Option<Line>) {
        let Some(beat) = &mut self.beat else { return (Change::Nothing, None) };
        if beat.state.is_over() {
            // Somebody has overwritten its line, and not the number of its slot: this member is the one that it was.
            beat.random = beat.random.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            beat.state = state(&mut beat.port, beat.random);
        }
        let (heard, pushed) = (beat.port.look(), beat.port.pushed());
        let line = beat.state.look(now, &heard, pushed.as_ref());
        let status = beat.state.status();
        let before = std::mem::replace(&mut beat.session, status.session());
        let change = match (before, beat.session) {
            (None, Some(_)) => Change::Came,
            (Some(before), now) if now != Some(before) => match status {
                Status::Down { reason: Down::Left, .. } => Change::Left,
                Status::Down { reason: Down::DeclaredDown, .. } => Change::TakenForDead,
                _ => Change::Lost,
            },
            _ => Change::Nothing,
        };
        (change, line)
    }

    pub(crate) fn push(&mut self, space: &Space, line: &Line) {
        if let Some(beat) = &mut self.beat {
            space.ordered(|| beat.port.push(line));
        }
    }

    /// Says that this member leaves, and that nothing of it comes any more.
    pub(crate) fn farewell(&mut self, space: &Space, now: Duration) {
        let line = self.beat.as_mut().and_then(|beat| beat.state.leave(now));
        if let Some(line) = line {
            self.push(space, &line);
        }
    }

    /// Its session is up, and its member was not known yet.
    pub(crate) fn is_new(&self) -> bool {
        self.number.is_none() && self.beat.as_ref().is_none_or(|beat| beat.session.is_some())
    }

    /// Takes note of its member's count of beats.
    pub(crate) fn saw_beats(&mut self, beats: u64, now: Duration) {
        if self.beats.replace(beats).is_some_and(|before| before != beats) {
            self.moved_at = Some(now);
        }
    }

    /// Whether a member may live there that this one has not met, or not again: one that came while this one stood still has taken it for
    /// dead, and both hear of each other a moment later.
    pub(crate) fn may_live(&self, now: Duration) -> bool {
        let bound = Heartbeat::of::<MappedFile>().bound();
        self.number.is_none() && self.moved_at.is_some_and(|moved| now < moved + bound)
    }

    /// Takes in the member that has the slot.
    pub(crate) fn came(&mut self, number: MemberNumber) {
        self.number = Some(number);
        self.there = Arc::new(AtomicBool::new(true));
    }

    /// Its member is gone; the pairs that there were with it.
    pub(crate) fn forget(&mut self) -> [Option<PairId>; 2] {
        self.there.store(false, Ordering::Release);
        self.number = None;
        [self.provider.take(), self.consumer.take()]
    }

    pub(crate) fn is_of(&self, node: NodeId) -> bool {
        self.number.is_some_and(|number| number.node() == node)
    }

    /// Whether its member still has the slot.
    pub(crate) fn has_slot(&self, space: &Space) -> bool {
        self.number.is_none_or(|number| space.number(self.slot).load_acquire() == number.0)
    }

    /// The member that has the slot now, for who loads its words without a lock.
    pub(crate) fn incumbent(&self, space: &Arc<Space>) -> Option<Incumbent> {
        let (space, slot) = (Arc::clone(space), self.slot);
        self.number.map(|number| Incumbent { space, slot, number, there: Arc::clone(&self.there) })
    }

    /// Says that this member uses the area of the other one, if that still has the slot.
    pub(crate) fn hold(&self, space: &Space, own: usize) -> bool {
        let Some(number) = self.number else { return false };
        space.ordered(|| space.holds(own, self.slot).store_release(number.0));
        // Pairs with the barrier of who takes the slot (`claim.rs`).
        let is_ordered = space.barrier().is_ok();
        if is_ordered && space.number(self.slot).load_acquire() == number.0 {
            return true;
        }
        self.let_go(space, own);
        false
    }

    /// Says that this member has nothing of the other one, unless it has.
    pub(crate) fn let_go(&self, space: &Space, own: usize) {
        if self.provider.is_none() && self.maps == 0 && self.joints == 0 {
            space.ordered(|| space.holds(own, self.slot).store_release(0));
        }
    }

    /// Says that this member uses memory of the area that several hold and that a member of this number made, which may be gone.
    pub(crate) fn hold_joint(&mut self, space: &Space, own: usize, tenant: u64) {
        self.joints += 1;
        space.ordered(|| space.holds(own, self.slot).store_release(tenant));
    }

    pub(crate) fn let_joint_go(&mut self, space: &Space, own: usize) {
        self.joints -= 1;
        self.let_go(space, own);
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Peer")
            .field("slot", &self.slot)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
