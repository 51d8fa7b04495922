//! Watches of lines of host memory that wait for the link, and those that are outstanding.
//!
//! A queue watches at most one line in each direction, so a tag is a queue and a direction, and the table has a place for
//! each. A watch is answered exactly once: a queue that stops takes its watch back, and its next life watches when that
//! has been answered. So an answer is never taken for another life's, whatever happens in between, a reset included.
//!
//! From: [`crate::coherent`]. To: the link, after every write that was asked for before.

use std::collections::VecDeque;

use beeline_contract_device::{QueueId, WatchTag};

/// Which half of a queue watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// For entries that the host passes.
    Transmit = 0,
    /// For entries that the host gives back.
    Receive = 1,
}

/// A line, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    /// Bus address of the line.
    pub address: u64,
    /// The first word of the line as the device knows it.
    pub known: u64,
    /// Bytes wanted when that has changed.
    pub bytes: u32,
}

/// What the link is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchWant {
    /// Watch a line.
    Watch(WatchTag, Watch),
    /// End a watch.
    Forget(WatchTag),
}

/// What the link has of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Given {
    #[default]
    Nothing,
    /// A watch that is wanted.
    Wanted,
    /// A watch that is not wanted any more; whether the link was told.
    Unwanted { is_told: bool },
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    given: Given,
    /// What to watch as soon as the link has nothing of this tag.
    next: Option<Watch>,
    /// It is in the queue of those with something for the link.
    is_waiting: bool,
}

/// The table.
#[derive(Debug)]
pub(crate) struct WatchPort {
    slots: Box<[Slot]>,
    waiting: VecDeque<WatchTag>,
}

const fn tag_of(queue: QueueId, direction: Direction) -> WatchTag {
    WatchTag(queue.0 << 1 | direction as u16)
}

impl WatchPort {
    /// Nothing is watched; for so many queues.
    pub(crate) fn new(queues: u32) -> Self {
        let tags = 2 * queues as usize;
        WatchPort {
            slots: vec![Slot::default(); tags].into_boxed_slice(),
            waiting: VecDeque::with_capacity(tags),
        }
    }

    fn wait(&mut self, tag: WatchTag) {
        let slot = &mut self.slots[usize::from(tag.0)];
        if !slot.is_waiting {
            slot.is_waiting = true;
            self.waiting.push_back(tag);
        }
    }

    /// Watches a line. Not before the last watch of the same half was answered or taken back.
    pub(crate) fn watch(&mut self, queue: QueueId, direction: Direction, watch: Watch) {
        let tag = tag_of(queue, direction);
        let slot = &mut self.slots[usize::from(tag.0)];
        debug_assert!(slot.given != Given::Wanted && slot.next.is_none(), "two watches of {tag:?}");
        slot.next = Some(watch);
        if slot.given == Given::Nothing {
            self.wait(tag);
        }
    }

    /// The queue stops: takes back what it watches.
    pub(crate) fn forget(&mut self, queue: QueueId) {
        for direction in [Direction::Transmit, Direction::Receive] {
            let tag = tag_of(queue, direction);
            let slot = &mut self.slots[usize::from(tag.0)];
            slot.next = None;
            if slot.given == Given::Wanted {
                slot.given = Given::Unwanted { is_told: false };
                self.wait(tag);
            }
        }
    }

    /// Whether there is something for the link to do.
    #[inline]
    pub(crate) fn has_want(&mut self) -> bool {
        while let Some(tag) = self.waiting.front() {
            let slot = &mut self.slots[usize::from(tag.0)];
            match slot.given {
                Given::Nothing if slot.next.is_some() => return true,
                Given::Unwanted { is_told: false } => return true,
                // Taken back before the link heard of it, or answered before it was told so.
                _ => slot.is_waiting = false,
            }
            self.waiting.pop_front();
        }
        false
    }

    /// What the link is to do next.
    pub(crate) fn take(&mut self) -> Option<WatchWant> {
        if !self.has_want() {
            return None;
        }
        let tag = self.waiting.pop_front()?;
        let slot = &mut self.slots[usize::from(tag.0)];
        slot.is_waiting = false;
        match slot.next.take_if(|_| slot.given == Given::Nothing) {
            Some(watch) => {
                slot.given = Given::Wanted;
                Some(WatchWant::Watch(tag, watch))
            }
            None => {
                slot.given = Given::Unwanted { is_told: true };
                Some(WatchWant::Forget(tag))
            }
        }
    }

    /// The link answers: whose watch it was; `None` when that does not watch any more, or never did.
    pub(crate) fn answered(&mut self, tag: WatchTag) -> Option<(QueueId, Direction)> {
        let slot = self.slots.get_mut(usize::from(tag.0))?;
        let is_wanted = slot.given == Given::Wanted;
        slot.given = Given::Nothing;
        if slot.next.is_some() {
            self.wait(tag);
        }
        let direction = if tag.0 & 1 == 0 { Direction::Transmit } else { Direction::Receive };
        is_wanted.then_some((QueueId(tag.0 >> 1), direction))
    }

    /// Everything is taken back.
    pub(crate) fn reset(&mut self) {
        for queue in 0..self.slots.len() as u16 / 2 {
            self.forget(QueueId(queue));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: QueueId = QueueId(3);
    const TAG: WatchTag = WatchTag(6);

    fn line(address: u64) -> Watch {
        Watch { address, known: 0, bytes: 64 }
    }

    #[test]
    fn a_watch_is_given_and_answered() {
        let mut port = WatchPort::new(4);
        port.watch(QUEUE, Direction::Transmit, line(64));
        port.watch(QUEUE, Direction::Receive, line(128));
        assert_eq!(port.take(), Some(WatchWant::Watch(TAG, line(64))));
        assert_eq!(port.take(), Some(WatchWant::Watch(WatchTag(7), line(128))));
        assert_eq!(port.take(), None);
        assert_eq!(port.answered(WatchTag(7)), Some((QUEUE, Direction::Receive)));
        assert_eq!(port.answered(TAG), Some((QUEUE, Direction::Transmit)));
        assert_eq!((port.answered(TAG), port.answered(WatchTag(8))), (None, None), "answered twice, unknown");
    }

    #[test]
    fn a_new_life_watches_when_the_old_one_is_answered() {
        let mut port = WatchPort::new(4);
        port.watch(QUEUE, Direction::Transmit, line(64));
        assert!(port.take().is_some());
        port.forget(QUEUE);
        port.watch(QUEUE, Direction::Transmit, line(128));
        assert_eq!(port.take(), Some(WatchWant::Forget(TAG)));
        assert_eq!(port.take(), None, "the tag is in use");
        assert_eq!(port.answered(TAG), None, "the old life's, whatever it says");
        assert_eq!(port.take(), Some(WatchWant::Watch(TAG, line(128))));
        assert_eq!(port.answered(TAG), Some((QUEUE, Direction::Transmit)));
    }

    #[test]
    fn what_the_link_has_not_heard_of_is_not_taken_back_from_it() {
        let mut port = WatchPort::new(4);
        for _ in 0..100 {
            port.watch(QUEUE, Direction::Transmit, line(64));
            port.reset();
        }
        assert_eq!((port.waiting.len(), port.take()), (1, None));
        // An answer that crosses the taking back.
        port.watch(QUEUE, Direction::Transmit, line(64));
        assert!(port.take().is_some());
        port.forget(QUEUE);
        assert_eq!(port.answered(TAG), None);
        assert_eq!(port.take(), None, "nothing is left to be forgotten");
    }
}
