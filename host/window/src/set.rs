//! Many windows received from by one thread: in turn, a bounded burst from each, with one wait for all of them.
//!
//! The members that gave something lately are looked at in every pass, the others in turn, some of them in each: a look at an
//! idle window is one load of a line that stays in this core's cache until its sender stores to it. Only when nothing
//! was there at all is every member looked at, so who is told "nothing" may go to sleep.
//!
//! Waiting is the caller's as everywhere: a [`Wait`] whose sleeper every sender wakes (`os/domain` has it).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use beeline_contract_memory::{CreditSink, LoadPort, Wait};

use crate::arrival::{ArrivalTest, Blank};
use crate::error::ReceiveError;
use crate::{MessageRef, Receiver};

/// An idle member is looked at once in so many passes at least.
pub const IDLE_PASSES: usize = 8;

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
pub struct ReceiverSet<L: LoadPort, S: CreditSink, A: ArrivalTest = Blank> {
    slots: Vec<Slot<L, S, A>>,
    /// Slots without a member that stand in no queue.
    free: Vec<u32>,
    /// Members that gave something when last looked at, next one first; then the others. A slot whose member was removed stays
    /// until it is met.
    active: VecDeque<u32>,
    idle: VecDeque<u32>,
    burst: usize,
    members: usize,
}

#[derive(Debug)]
struct Slot<L: LoadPort, S: CreditSink, A: ArrivalTest> {
    receiver: Option<Receiver<L, S, A>>,
    generation: u32,
    /// Not in a queue: the receiver has failed.
    has_failed: bool,
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> ReceiverSet<L, S, A> {
    /// An empty set that takes at most `burst` messages, one at least, from a member before it goes on to the next.
    pub fn new(burst: usize) -> Self {
        ReceiverSet {
            slots: Vec::new(),
            free: Vec::new(),
            active: VecDeque::new(),
            idle: VecDeque::new(),
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
            self.slots.push(Slot { receiver: None, generation: 0, has_failed: false });
            u32::try_from(self.slots.len() - 1).expect("memory ends before that")
        });
        let slot = &mut self.slots[index as usize];
        slot.receiver = Some(receiver);
        slot.has_failed = false;
        // Room in either queue for every slot, so that no pass allocates.
        self.active.reserve(self.slots.len() - self.active.len());
        self.idle.reserve(self.slots.len() - self.idle.len());
        self.active.push_back(index);
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
        if slot.has_failed {
            self.free.push(member.index);
        }
        self.members -= 1;
        Some(receiver)
    }

    /// A member's receiver, as to tell it that its sender is gone.
    pub fn get_mut(&mut self, member: MemberId) -> Option<&mut Receiver<L, S, A>> {
        let slot = self.slots.get_mut(member.index as usize)?;
        if slot.generation == member.generation { slot.receiver.as_mut() } else { None }
    }

    /// Every member's receiver, as to announce to every sender that this side is about to sleep.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (MemberId, &mut Receiver<L, S, A>)> {
        (0..).zip(&mut self.slots).filter_map(|(index, slot)| {
            let generation = slot.generation;
            slot.receiver.as_mut().map(|receiver| (MemberId { index, generation }, receiver))
        })
    }

    /// Members, those that have failed included.
    pub fn len(&self) -> usize {
        self.members
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members == 0
    }

    /// One pass: gives `each` the messages of the members in turn, at most a burst of each and `max` in all, and frees each as
    /// [`Receiver::drain`] does. Returns how many there were; 0 only if no member had any. Never waits.
    ///
    /// # Errors
    /// [`MemberError`], once for each member that fails; the messages in front of it were given, and the next pass goes on with
    /// the next member.
    pub fn drain(
        &mut self,
        max: usize,
        mut each: impl FnMut(MemberId, MessageRef<'_, L, S, A>),
    ) -> Result<usize, MemberError> {
        let mut taken = 0;
        for _ in 0..self.active.len() {
            if taken >= max {
                break;
            }
            if let Some(index) = self.active.pop_front() {
                self.drain_slot(index, max, &mut taken, &mut each)?;
            }
        }
        let looks = if taken == 0 { self.idle.len() } else { self.idle.len().div_ceil(IDLE_PASSES) };
        for _ in 0..looks {
            let Some(index) = self.idle.pop_front() else { break };
            if taken < max {
                self.drain_slot(index, max, &mut taken, &mut each)?;
            } else {
                // Also when this pass takes no more: busy members may give `max` in every one, and would keep the others out.
                let has_begun = self.slots[index as usize].has_begun();
                self.put_back(index, has_begun);
            }
        }
        Ok(taken)
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
        self.slots.iter_mut().filter(|slot| !slot.has_failed).any(Slot::has_begun)
    }

    /// Takes a burst from the member in a slot that was taken out of its queue, and puts it into the queue where it belongs.
    #[inline]
    fn drain_slot(
        &mut self,
        index: u32,
        max: usize,
        taken: &mut usize,
        each: &mut impl FnMut(MemberId, MessageRef<'_, L, S, A>),
    ) -> Result<(), MemberError> {
        let slot = &mut self.slots[index as usize];
        let is_idle = !slot.has_begun();
        let member = MemberId { index, generation: slot.generation };
        let Some(receiver) = slot.receiver.as_mut().filter(|_| !is_idle) else {
            self.put_back(index, false);
            return Ok(());
        };
        // Before the program runs: if it panics, the member stays in a queue.
        self.active.push_back(index);
        let mut given = 0;
        let outcome = receiver.drain(self.burst.min(max - *taken), |message| {
            given += 1;
            each(member, message);
        });
        *taken += given;
        if given > 0 && outcome.is_ok() {
            return Ok(());
        }
        self.active.pop_back();
        match outcome {
            Ok(_) => {
                self.put_back(index, false);
                Ok(())
            }
            Err(error) => {
                slot.has_failed = true;
                Err(MemberError { member, taken: *taken, error })
            }
        }
    }

    #[inline]
    fn put_back(&mut self, index: u32, is_active: bool) {
        match &mut self.slots[index as usize].receiver {
            None => self.free.push(index),
            Some(_) if is_active => self.active.push_back(index),
            Some(receiver) => {
                // A sender may wait for lines of which it was not told; a receiver whose lines were all told of does nothing.
                receiver.push_credits();
                self.idle.push_back(index);
            }
        }
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Slot<L, S, A> {
    /// Whether there is something to be had: a message, at least its header, or an end.
    #[inline]
    fn has_begun(&mut self) -> bool {
        self.receiver.as_mut().is_some_and(|receiver| receiver.sender_gone || receiver.has_begun())
    }
}

#[cfg(test)]
mod tests;
