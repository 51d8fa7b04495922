//! Many windows received from by one thread: in turn, a bounded burst from each, with one wait for all of them.
//!
//! The members that gave something lately are looked at in every pass, the others in turn, some of them in each (`set/idle.rs`): a
//! look at an idle window is one load of a line that stays in this core's cache until its sender stores to it. Only when
//! nothing was there at all is every member looked at, so who is told "nothing" may go to sleep. Those that were the last to
//! give something are looked at again and again meanwhile: they are the likeliest to have the next message.
//!
//! Waiting is the caller's as everywhere: a [`Wait`] whose sleeper every sender wakes (`os/domain` has it).

mod idle;
mod pass;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use beeline_contract_memory::{CreditSink, SplitHeaders, Wait};

use crate::arrival::{ArrivalTest, Blank};
use crate::error::ReceiveError;
use crate::{MessageRef, Receiver};
use idle::{Idle, ROUND_SHARES};

/// An idle member is looked at once in so many passes at least.
pub const IDLE_PASSES: usize = 2 * ROUND_SHARES;

/// How many members that gave something last are looked at most often.
const RECENT: usize = 4;

/// A member of a [`ReceiverSet`]; no later member has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberId {
    index: u32,
    generation: u32,
}

impl MemberId {
    /// The member's place among all that are members now: below the number of members that there ever were at one time.
    #[inline]
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// A member from which nothing more is received. It is told once; the member stays until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a member of a set of receivers failed: {error}")]
#[non_exhaustive]
pub struct MemberError {
    pub member: MemberId,
    /// Messages given by the call before it met the error.
    pub taken: usize,
    /// What its receiver said.
    pub error: ReceiveError,
}

/// Receivers that come and go, received from by one owner.
///
/// Between two bursts of a member every other member that has messages has had one, and a member that was idle is found after
/// [`IDLE_PASSES`] passes at most: no sender, however fast, keeps the others out. Order is kept within a member and not
/// between members.
#[derive(Debug)]
pub struct ReceiverSet<L: SplitHeaders, S: CreditSink, A: ArrivalTest = Blank> {
    slots: Vec<Slot<L, S, A>>,
    /// Slots without a member that are not in `active`.
    free: Vec<u32>,
    /// Members that gave something when last looked at, next one first. A slot whose member was removed stays until it is met.
    active: VecDeque<u32>,
    idle: Idle<L::Headers>,
    /// The slots of members that were active until lately, in a ring; some may be anything meanwhile.
    recent: [u32; RECENT],
    next_recent: usize,
    burst: usize,
    members: usize,
}

#[derive(Debug)]
struct Slot<L: SplitHeaders, S: CreditSink, A: ArrivalTest> {
    receiver: Option<Receiver<L, S, A>>,
    /// Of the receiver's window, while the member is not idle; made again when the receiver may be another one.
    headers: Option<L::Headers>,
    generation: u32,
    is_active: bool,
}

impl<L: SplitHeaders, S: CreditSink, A: ArrivalTest> ReceiverSet<L, S, A> {
    /// An empty set that takes at most `burst` messages, one at least, from a member before it goes on to the next.
    pub fn new(burst: usize) -> Self {
        ReceiverSet {
            slots: Vec::new(),
            free: Vec::new(),
            active: VecDeque::new(),
            idle: Idle::new(),
            recent: [0; RECENT],
            next_recent: 0,
            burst: burst.max(1),
            members: 0,
        }
    }

    /// Takes in a receiver, from between two passes on. Allocates; passes do not.
    ///
    /// # Panics
    /// If there are 2^32 members.
    pub fn insert(&mut self, receiver: Receiver<L, S, A>) -> MemberId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { receiver: None, headers: None, generation: 0, is_active: false });
            u32::try_from(self.slots.len() - 1).expect("memory ends before that")
        });
        // Room for every slot, so that no pass allocates.
        self.active.reserve(self.slots.len() - self.active.len());
        self.idle.reserve(self.slots.len());
        self.slots[index as usize].receiver = Some(receiver);
        self.activate(index);
        self.members += 1;
        MemberId { index, generation: self.slots[index as usize].generation }
    }

    /// Takes a receiver out; `None` if it was taken out before. What is in its window stays there.
    pub fn remove(&mut self, member: MemberId) -> Option<Receiver<L, S, A>> {
        let slot = self.slots.get_mut(member.index as usize)?;
        if slot.generation != member.generation {
            return None;
        }
        let receiver = slot.receiver.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.headers = None;
        let is_active = slot.is_active;
        self.idle.remove(member.index);
        if !is_active {
            self.free.push(member.index);
        }
        self.members -= 1;
        Some(receiver)
    }

    /// A member's receiver, as to tell it that its sender is gone.
    pub fn get_mut(&mut self, member: MemberId) -> Option<&mut Receiver<L, S, A>> {
        let slot = self.slots.get_mut(member.index as usize)?;
        if slot.generation != member.generation {
            return None;
        }
        slot.headers = None;
        self.idle.distrust(member.index);
        slot.receiver.as_mut()
    }

    /// Every member's receiver. Each is looked at by its receiver in the next pass, which takes longer than a pass does else.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (MemberId, &mut Receiver<L, S, A>)> {
        self.idle.distrust_all();
        (0..).zip(&mut self.slots).filter_map(|(index, slot)| {
            slot.headers = None;
            let generation = slot.generation;
            slot.receiver.as_mut().map(|receiver| (MemberId { index, generation }, receiver))
        })
    }

    /// Tells every sender of all lines that are free, as a pass does for those members that have nothing more. For who is about to
    /// sleep: a sender may wait for lines of which it was not told.
    pub fn push_credits(&mut self) {
        // An idle member was told when it became one.
        let active = self.active.iter().map(|index| *index as usize);
        for index in active {
            if let Some(receiver) = &mut self.slots[index].receiver {
                receiver.push_credits();
            }
        }
    }

    /// Members, those that have failed included.
    pub fn len(&self) -> usize {
        self.members
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// As [`ReceiverSet::drain`], waiting for the first message of any member as long as `waiter` does: 0 when its time is over.
    ///
    /// A waiter that knows its peer to be gone stands for all senders.
    ///
    /// # Errors
    /// As [`ReceiverSet::drain`].
    pub fn drain_wait(
        &mut self,
        max: usize,
        waiter: &mut impl Wait,
        mut each: impl FnMut(MemberId, MessageRef<'_, L, S, A>),
    ) -> Result<usize, MemberError> {
        let found = waiter.wait(|peers_gone| {
            if peers_gone {
                self.iter_mut().for_each(|(_, receiver)| receiver.sender_gone());
            }
            match self.drain(max, &mut each)? {
                // Every member has said that it failed: nothing will come.
                0 if peers_gone => Ok(Some(0)),
                0 => Ok(None),
                taken => Ok(Some(taken)),
            }
        })?;
        Ok(found.unwrap_or(0))
    }

    /// Whether a pass may find a message or an error. Looks at every member; for who is about to sleep.
    pub fn has_begun(&mut self) -> bool {
        let (slots, idle, active) = (&mut self.slots, &self.idle, &self.active);
        active.iter().copied().chain(idle.begun()).any(|index| slots[index as usize].has_begun())
    }
}

impl<L: SplitHeaders, S: CreditSink, A: ArrivalTest> Slot<L, S, A> {
    /// Whether there is something to be had: a message, at least its header, or an end.
    #[inline]
    fn has_begun(&mut self) -> bool {
        self.receiver.as_mut().is_some_and(|receiver| receiver.sender_gone || receiver.has_begun())
    }
}

#[cfg(test)]
mod tests;
