//! One pass of a set of receivers: whom it looks at, and where each member goes then.
//!
//! A member is in one of two queues, the active ones and the idle ones, or has failed and is in none.

use beeline_contract_memory::{CreditSink, SplitHeaders};

use super::idle::Watch;
use super::{MemberError, MemberId, RECENT, ReceiverSet};
use crate::arrival::ArrivalTest;
use crate::{MessageRef, Receiver};

/// How many idle members are looked at before those that gave something last are looked at again.
pub(super) const LOOKS: usize = 64;

impl<L: SplitHeaders, S: CreditSink, A: ArrivalTest> ReceiverSet<L, S, A> {
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
        let (all, share) = (self.idle.len(), self.idle.share());
        let mut looked = 0;
        // Also when this pass takes no more: busy members may give `max` in every one, and would keep the others out.
        while looked < if taken == 0 { all } else { share } {
            let looks = LOOKS.min(all - looked);
            looked += looks;
            self.drain_idle(looks, max, &mut taken, &mut each)?;
            if taken == 0 {
                self.drain_recent(max, &mut taken, &mut each)?;
            }
        }
        Ok(taken)
    }

    /// Looks at so many idle members, and takes a burst from each that has something, unless this pass takes no more.
    #[inline]
    fn drain_idle(
        &mut self,
        mut looks: usize,
        max: usize,
        taken: &mut usize,
        each: &mut impl FnMut(MemberId, MessageRef<'_, L, S, A>),
    ) -> Result<(), MemberError> {
        while let Some(index) = self.idle.next_begun(&mut looks) {
            self.take_idle(index);
            if *taken < max {
                self.drain_slot(index, max, taken, each)?;
            } else if self.slots[index as usize].has_begun() {
                self.activate(index);
            } else {
                self.rest(index);
            }
        }
        Ok(())
    }

    /// As [`ReceiverSet::drain_idle`], of those idle members that gave something last.
    #[inline]
    fn drain_recent(
        &mut self,
        max: usize,
        taken: &mut usize,
        each: &mut impl FnMut(MemberId, MessageRef<'_, L, S, A>),
    ) -> Result<(), MemberError> {
        for index in self.recent {
            if self.idle.may_have_begun(index) && *taken < max {
                self.take_idle(index);
                self.drain_slot(index, max, taken, each)?;
            }
        }
        Ok(())
    }

    /// Takes a burst from the member in a slot that was taken out of its queue, and puts it where it belongs.
    #[inline]
    fn drain_slot(
        &mut self,
        index: u32,
        max: usize,
        taken: &mut usize,
        each: &mut impl FnMut(MemberId, MessageRef<'_, L, S, A>),
    ) -> Result<(), MemberError> {
        let slot = &mut self.slots[index as usize];
        let was_active = core::mem::replace(&mut slot.is_active, false);
        let is_idle = !slot.has_begun();
        let member = MemberId { index, generation: slot.generation };
        let Some(receiver) = slot.receiver.as_mut().filter(|_| !is_idle) else {
            self.rest(index);
            if was_active {
                self.note_recent(index);
            }
            return Ok(());
        };
        // Before the program runs: if it panics, the member stays in a queue.
        self.active.push_back(index);
        slot.is_active = true;
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
        slot.is_active = false;
        match outcome {
            Ok(_) => {
                self.rest(index);
                Ok(())
            }
            // It is in no queue any more.
            Err(error) => Err(MemberError { member, taken: *taken, error }),
        }
    }

    /// A member that is in no queue has something.
    pub(super) fn activate(&mut self, index: u32) {
        self.slots[index as usize].is_active = true;
        self.active.push_back(index);
    }

    /// Takes an idle member out of its queue.
    fn take_idle(&mut self, index: u32) {
        self.slots[index as usize].headers = self.idle.remove(index).and_then(|watch| watch.headers);
    }

    /// A member that is in no queue has nothing, or is none.
    #[inline]
    fn rest(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let Some(receiver) = &mut slot.receiver else { return self.free.push(index) };
        // A sender may wait for lines of which it was not told; a receiver whose lines were all told of does nothing.
        receiver.push_credits();
        self.idle.insert(index, receiver.watched_by(slot.headers.take()));
    }

    /// A member was active until now.
    #[inline]
    fn note_recent(&mut self, index: u32) {
        if !self.recent.contains(&index) {
            self.recent[self.next_recent] = index;
            self.next_recent = (self.next_recent + 1) % RECENT;
        }
    }
}

impl<L: SplitHeaders, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// What tells whether [`Slot::has_begun`], now that it has not; with the headers of this window, if somebody has them.
    fn watched_by(&self, headers: Option<L::Headers>) -> Watch<L::Headers> {
        let free_header = self.test.free_header().filter(|_| !self.is_long && !self.sender_gone);
        let headers = free_header.map(|_| headers.unwrap_or_else(|| self.port.headers()));
        Watch { headers, line: self.line(0), free_header: free_header.unwrap_or_default() }
    }
}
