//! Credits: the absolute count of freed lines of each queue, pushed into the sender's memory.
//!
//! A push is one DMA write of 8 bytes, so it is coalesced by lines and by time; the count is absolute, so a later push
//! replaces any number of earlier ones and none is ever lost. Comes from: [`super`], when a line is free. Goes to:
//! [`crate::dma_port`]. Not here: what makes a line free. docs/design.md, decision 3; HotOS'25 §3.4 leaves this to
//! PCIe's own flow control, which stalls the core.

use beeline_contract_device::{QueueId, SimTime};

use crate::deadlines::Deadlines;
use crate::engine::{QueueSettings, Shared};

/// No push by lines.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Debug)]
struct Credit {
    /// Bus address of the sender's credit word; 0 if it wants none.
    address: u64,
    coalesce_lines: u64,
    coalesce_time: SimTime,
    /// Lines freed, as last told.
    freed: u64,
    /// The count at which the next push is made.
    push_at: u64,
    /// A deadline is set, or none is needed.
    armed: bool,
}

const NOWHERE: Credit = Credit {
    address: 0,
    coalesce_lines: 1,
    coalesce_time: SimTime(0),
    freed: 0,
    push_at: NEVER,
    armed: true,
};

/// The credits of all queues.
#[derive(Debug)]
pub(crate) struct CreditReturn {
    credits: Box<[Credit]>,
    deadlines: Deadlines,
}

impl CreditReturn {
    /// No queue returns credits yet.
    pub(crate) fn new(queues: u32) -> Self {
        CreditReturn {
            credits: vec![NOWHERE; queues as usize].into_boxed_slice(),
            deadlines: Deadlines::new(queues as usize),
        }
    }

    /// A queue starts with nothing freed.
    pub(crate) fn start(&mut self, queue: QueueId, settings: &QueueSettings) {
        self.stop(queue);
        if settings.credit_address == 0 {
            return;
        }
        let coalesce_lines = u64::from(settings.credit_lines.max(1));
        self.credits[usize::from(queue.0)] = Credit {
            address: settings.credit_address,
            coalesce_lines,
            coalesce_time: SimTime::from_ns(settings.credit_time_ns.into()),
            freed: 0,
            push_at: coalesce_lines,
            armed: false,
        };
    }

    /// Forgets a queue.
    pub(crate) fn stop(&mut self, queue: QueueId) {
        self.credits[usize::from(queue.0)] = NOWHERE;
        self.deadlines.disarm(usize::from(queue.0));
    }

    /// `freed` lines are free now, counted since the queue was started; it never goes back.
    #[inline]
    pub(crate) fn freed(&mut self, queue: QueueId, freed: u64, shared: &mut Shared) {
        let credit = &mut self.credits[usize::from(queue.0)];
        credit.freed = freed;
        if freed >= credit.push_at {
            self.push(queue, shared);
        } else if !credit.armed {
            credit.armed = true;
            let at = SimTime(shared.now.0.saturating_add(credit.coalesce_time.0));
            self.deadlines.arm(usize::from(queue.0), at);
        }
    }

    /// Pushes what is due. Called when time passes and when the device has nothing else to do.
    #[inline]
    pub(crate) fn push_due(&mut self, shared: &mut Shared) {
        if self.deadlines.may_be_due(shared.now) {
            self.push_all_due(shared);
        }
    }

    /// A time before which nothing is due.
    #[inline]
    pub(crate) fn wake_at(&self) -> SimTime {
        self.deadlines.earliest()
    }

    fn push_all_due(&mut self, shared: &mut Shared) {
        // A push that finds no room sets its deadline again, so the room is looked for first.
        while shared.dma.has_room(1, 8) {
            let Some(index) = self.deadlines.take_due(shared.now) else { return };
            self.push(QueueId(index as u16), shared);
        }
    }

    fn push(&mut self, queue: QueueId, shared: &mut Shared) {
        let index = usize::from(queue.0);
        let credit = &mut self.credits[index];
        if !shared.dma.write(credit.address, &credit.freed.to_le_bytes()) {
            credit.push_at = NEVER;
            credit.armed = true;
            self.deadlines.arm(index, shared.now);
            return;
        }
        shared.counters.credit_pushes += 1;
        credit.push_at = credit.freed + credit.coalesce_lines;
        credit.armed = false;
        self.deadlines.disarm(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dma_port::DmaWant;

    fn settings(lines: u32, time_ns: u32) -> QueueSettings {
        QueueSettings {
            credit_address: 64,
            credit_lines: lines,
            credit_time_ns: time_ns,
            ..QueueSettings::default()
        }
    }

    fn pushed(shared: &mut Shared) -> Vec<u64> {
        let mut counts = Vec::new();
        while let Some(want) = shared.dma.take() {
            let DmaWant::Write { start, bytes: 8, address: 64 } = want else { panic!("{want:?}") };
            counts.push(u64::from_le_bytes(shared.dma.data(start, 8).try_into().unwrap()));
        }
        counts
    }

    #[test]
    fn pushes_are_coalesced_by_lines() {
        let (mut credits, mut shared) = (CreditReturn::new(2), Shared::new(2));
        credits.start(QueueId(1), &settings(4, u32::MAX));
        for freed in 1..=9 {
            credits.freed(QueueId(1), freed, &mut shared);
        }
        assert_eq!(pushed(&mut shared), [4, 8]);
    }

    #[test]
    fn what_is_left_is_pushed_in_time() {
        let (mut credits, mut shared) = (CreditReturn::new(2), Shared::new(2));
        credits.start(QueueId(1), &settings(4, 100));
        credits.freed(QueueId(1), 1, &mut shared);
        shared.now = SimTime::from_ns(50);
        credits.freed(QueueId(1), 2, &mut shared);
        credits.push_due(&mut shared);
        assert_eq!((pushed(&mut shared), credits.wake_at()), (vec![], SimTime::from_ns(100)));
        shared.now = SimTime::from_ns(100);
        credits.push_due(&mut shared);
        assert_eq!((pushed(&mut shared), credits.wake_at()), (vec![2], crate::deadlines::NEVER));
    }

    #[test]
    fn a_push_that_found_no_room_is_made_later() {
        let (mut credits, mut shared) = (CreditReturn::new(1), Shared::new(1));
        credits.start(QueueId(0), &settings(1, u32::MAX));
        while shared.dma.write(64, &[0; 8]) {}
        credits.freed(QueueId(0), 1, &mut shared);
        credits.freed(QueueId(0), 2, &mut shared);
        while shared.dma.take().is_some() {}
        credits.push_due(&mut shared);
        assert_eq!(pushed(&mut shared), [2]);
    }

    #[test]
    fn a_queue_without_an_address_pushes_nothing() {
        let (mut credits, mut shared) = (CreditReturn::new(1), Shared::new(1));
        credits.start(QueueId(0), &QueueSettings { credit_lines: 1, ..QueueSettings::default() });
        credits.freed(QueueId(0), 100, &mut shared);
        assert_eq!((pushed(&mut shared), credits.wake_at()), (vec![], crate::deadlines::NEVER));
    }
}
