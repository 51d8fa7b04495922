//! The calls of one client that have not ended.
//!
//! A call has a slot, and its number says how often the slot was used, so that an answer finds its call with one load
//! and no answer of an earlier call is taken for it. A slot whose call ended without the server's word (time-out,
//! cancellation) is not used again before that word has come: no number is ever ambiguous, however late a server is.
//! Times are nanoseconds of `CLOCK_MONOTONIC`.

use std::collections::VecDeque;

use crate::deadline::Deadline;
use crate::error::{CallError, Loss};

/// Which call of a client. Never the same for two calls that have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(crate) number: u32,
    slot: u16,
}

impl CallId {
    /// A small number below the client's `max_outstanding`, for tables of the caller: no two outstanding calls have the
    /// same.
    #[inline]
    pub fn slot(self) -> usize {
        usize::from(self.slot)
    }
}

/// Most calls that a client may have outstanding.
pub const MAX_OUTSTANDING: u32 = 1 << 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// The caller waits for the answer.
    Waiting,
    /// Its caller was told that it ended; the server's word is outstanding.
    Abandoned,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u32,
    state: State,
    deadline_ns: u64,
}

/// Meaning of an answer for its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The caller waits for the answer.
    Call(CallId),
    /// The call has ended otherwise; its slot is free now.
    Late(CallId),
    /// No such call: the server is out of its mind.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Calls {
    slots: Box<[Slot]>,
    free: Vec<u16>,
    mask: u32,
    /// Calls whose caller waits.
    waiting: usize,
    /// Ended here rather than by an answer, and not yet told.
    ended: VecDeque<(CallId, CallError)>,
    /// No outstanding call has an earlier deadline.
    earliest_ns: u64,
}

impl Calls {
    /// `slots` is a power of two up to [`MAX_OUTSTANDING`].
    pub(crate) fn new(slots: u32) -> Self {
        let is_possible = slots.is_power_of_two() && slots <= MAX_OUTSTANDING;
        assert!(is_possible, "{slots} outstanding calls; a power of two up to {MAX_OUTSTANDING} is needed");
        let slot = |index| Slot { number: index, state: State::Free, deadline_ns: Deadline::NEVER };
        Calls {
            slots: (0..slots).map(slot).collect(),
            free: (0..slots as u16).rev().collect(),
            mask: slots - 1,
            waiting: 0,
            // Every call can end here once before it is told, so a push never allocates.
            ended: VecDeque::with_capacity(slots as usize),
            earliest_ns: Deadline::NEVER,
        }
    }

    pub(crate) fn slots(&self) -> u32 {
        self.mask + 1
    }

    /// Calls the caller has not been told the end of.
    pub(crate) fn outstanding(&self) -> usize {
        self.waiting + self.ended.len()
    }

    /// Begins a call, if a slot is free.
    #[inline(always)]
    pub(crate) fn begin(&mut self, deadline: Option<Deadline>) -> Option<CallId> {
        let index = self.free.pop()?;
        let slot = &mut self.slots[usize::from(index)];
        slot.number = slot.number.wrapping_add(self.mask + 1);
        slot.state = State::Waiting;
        self.waiting += 1;
        slot.deadline_ns = Deadline::NEVER;
        if let Some(deadline) = deadline {
            slot.deadline_ns = deadline.as_ns();
            self.earliest_ns = self.earliest_ns.min(deadline.as_ns());
        }
        Some(CallId { number: slot.number, slot: index })
    }

    /// Takes back a call of which nothing was sent.
    pub(crate) fn undo(&mut self, id: CallId) {
        self.slots[id.slot()].state = State::Free;
        self.waiting -= 1;
        self.free.push(id.slot);
    }

    /// The server has answered the call of this number, for which the caller waits; `None` if there is no such call.
    #[inline(always)]
    pub(crate) fn answer_waiting(&mut self, number: u32) -> Option<CallId> {
        let index = (number & self.mask) as u16;
        let slot = &mut self.slots[usize::from(index)];
        if slot.number != number || slot.state != State::Waiting {
            return None;
        }
        slot.state = State::Free;
        self.waiting -= 1;
        self.free.push(index);
        Some(CallId { number, slot: index })
    }

    /// The server has answered the call of this number.
    pub(crate) fn answer(&mut self, number: u32) -> Answered {
        let index = (number & self.mask) as u16;
        let slot = &mut self.slots[usize::from(index)];
        if slot.number != number || slot.state == State::Free {
            return Answered::Unknown;
        }
        let id = CallId { number, slot: index };
        let was_waiting = slot.state == State::Waiting;
        slot.state = State::Free;
        self.waiting -= usize::from(was_waiting);
        self.free.push(index);
        if was_waiting { Answered::Call(id) } else { Answered::Late(id) }
    }

    /// Whether the call of this number has not been answered.
    pub(crate) fn is_open(&self, number: u32) -> bool {
        let slot = &self.slots[(number & self.mask) as usize];
        slot.number == number && slot.state != State::Free
    }

    /// Ends a call without the server's word. `false`: it has ended before.
    pub(crate) fn abandon(&mut self, id: CallId, error: CallError) -> bool {
        let slot = &mut self.slots[id.slot()];
        if slot.number != id.number || slot.state != State::Waiting {
            return false;
        }
        slot.state = State::Abandoned;
        self.waiting -= 1;
        self.ended.push_back((id, error));
        true
    }

    pub(crate) fn has_deadlines(&self) -> bool {
        self.earliest_ns != Deadline::NEVER
    }

    /// The earliest deadline of a call that may be outstanding.
    pub(crate) fn earliest(&self) -> Option<Deadline> {
        self.has_deadlines().then(|| Deadline::of_ns(self.earliest_ns))
    }

    /// Ends the calls whose deadline is past, and tells `abandoned` of each. One comparison unless there are any.
    pub(crate) fn expire(&mut self, now_ns: u64, mut abandoned: impl FnMut(CallId)) {
        if now_ns < self.earliest_ns {
            return;
        }
        let mut earliest_ns = Deadline::NEVER;
        for (index, slot) in (0u16..).zip(&mut self.slots) {
            if slot.state != State::Waiting {
                continue;
            }
            if slot.deadline_ns > now_ns {
                earliest_ns = earliest_ns.min(slot.deadline_ns);
                continue;
            }
            slot.state = State::Abandoned;
            self.waiting -= 1;
            let id = CallId { number: slot.number, slot: index };
            self.ended.push_back((id, CallError::TimedOut));
            abandoned(id);
        }
        self.earliest_ns = earliest_ns;
    }

    /// Ends every call: the server is gone, and with it every word that was outstanding. `unsent` is the call whose
    /// request had not been sent whole.
    pub(crate) fn lose(&mut self, loss: &Loss, unsent: Option<u32>) {
        self.free.clear();
        self.waiting = 0;
        self.earliest_ns = Deadline::NEVER;
        for (index, slot) in (0u16..).zip(&mut self.slots) {
            if slot.state == State::Waiting {
                let was_sent = unsent != Some(slot.number);
                let error = CallError::ServerGone { loss: loss.clone(), was_sent };
                self.ended.push_back((CallId { number: slot.number, slot: index }, error));
            }
            slot.state = State::Free;
            self.free.push(index);
        }
    }

    /// A call that ended here.
    #[inline(always)]
    pub(crate) fn next_ended(&mut self) -> Option<(CallId, CallError)> {
        // Most often there is none; the queue's own test costs more than this one.
        if self.ended.is_empty() { None } else { self.ended.pop_front() }
    }

    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }
}

#[cfg(test)]
mod tests;
