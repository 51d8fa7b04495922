//! `descriptor`: transmit as nearly every NIC does it, built as if it were ours.
//!
//! The host writes 16-byte descriptors into a ring, rings a doorbell with their absolute count, and the device reads
//! the descriptors, then the payload, transmits, and writes the absolute count of completed descriptors back. So that
//! the comparison with `mmio` is fair, nothing that shipping NICs do is left out: one doorbell for many descriptors,
//! descriptors read in bursts and ahead of their use, payload reads of many frames under way at once and answered in
//! any order, completions and interrupts moderated by count and by time. No allocation per frame.
//!
//! Queues are independent: each has its own descriptors ahead, payload memory and completions, and takes turns with
//! the others for tags. A queue fails (cause "DMA error") when its ring cannot be read; a bad descriptor is only
//! counted.
//!
//! From: the doorbell register and the answers to reads. To: the egress arbiter, by [`FrameSource`]. Not here: the MUX
//! of kPIO+WC ([`crate::kpio`]) and receive descriptors ([`crate::rx`]).
//! Larsen & Lee, NAS'15, §I and figure 1; HotOS'25 §1, figure 1 (a).

mod descriptor_ring;
mod frame_ring;
mod moderation;
mod reads;
#[cfg(test)]
pub(crate) mod test_host;
#[cfg(test)]
mod tests;
mod tx_queue;

use std::collections::VecDeque;

use beeline_nic_contract::{DmaError, QueueId, SimTime};

pub(crate) use descriptor_ring::{DESCRIPTOR_BYTES, DescriptorRing};
pub(crate) use frame_ring::FrameRing;
pub(crate) use moderation::Moderation;
pub(crate) use reads::{Purpose, Read, Reads};

use crate::NicConfig;
use crate::deadlines::Deadlines;
use crate::engine::{Cause, Engine, FetchEngine, FrameSource, QueueSettings, Shared};
use tx_queue::{Turn, TxQueue};

/// The transmit engine with descriptors.
#[derive(Debug)]
pub(crate) struct DmaEngine {
    queues: Box<[Option<Box<TxQueue>>]>,
    longest_frame_bytes: u32,
    reads: Reads,
    /// Queues that may be able to do something, each at most once.
    work: VecDeque<QueueId>,
    is_at_work: Box<[bool]>,
    /// Starts of queues so far: tells the lives of a queue apart.
    lives: u32,
    /// When a queue's completion is due for its time alone.
    deadlines: Deadlines,
}

impl DmaEngine {
    /// An engine with no queue started.
    pub(crate) fn new(config: &NicConfig) -> Self {
        DmaEngine {
            queues: (0..config.queues).map(|_| None).collect(),
            longest_frame_bytes: config.max_frame_bytes,
            reads: Reads::new(),
            work: VecDeque::with_capacity(config.queues as usize),
            is_at_work: vec![false; config.queues as usize].into_boxed_slice(),
            lives: 0,
            deadlines: Deadlines::new(config.queues as usize),
        }
    }

    fn queue_mut(&mut self, queue: QueueId) -> Option<&mut TxQueue> {
        self.queues.get_mut(usize::from(queue.0))?.as_deref_mut()
    }

    fn queue(&self, queue: QueueId) -> Option<&TxQueue> {
        self.queues.get(usize::from(queue.0))?.as_deref()
    }

    #[inline]
    fn put_to_work(&mut self, queue: QueueId) {
        let is_at_work = &mut self.is_at_work[usize::from(queue.0)];
        if !*is_at_work {
            *is_at_work = true;
            self.work.push_back(queue);
        }
    }

    #[inline]
    fn set_deadline(&mut self, queue: QueueId) {
        match self.queue(queue).and_then(TxQueue::deadline) {
            Some(at) => self.deadlines.arm(usize::from(queue.0), at),
            None => self.deadlines.disarm(usize::from(queue.0)),
        }
    }
}

impl Engine for DmaEngine {
    fn start(&mut self, queue: QueueId, settings: &QueueSettings, shared: &mut Shared) -> Result<(), Cause> {
        self.lives = self.lives.wrapping_add(1);
        let started = TxQueue::new(queue, self.lives, settings, self.longest_frame_bytes)
            .inspect_err(|cause| shared.counters.bad_lengths += u64::from(*cause == Cause::BadLength))?;
        self.queues[usize::from(queue.0)] = Some(Box::new(started));
        Ok(())
    }

    fn stop(&mut self, queue: QueueId, _shared: &mut Shared) {
        // Reads under way stay in the table, under the number of this life, until they are answered.
        self.queues[usize::from(queue.0)] = None;
        self.deadlines.disarm(usize::from(queue.0));
    }

    #[inline]
    fn progress(&mut self, shared: &mut Shared) {
        let mut turns = self.work.len();
        while turns > 0 {
            turns -= 1;
            let Some(id) = self.work.pop_front() else { return };
            let started = self.queues[usize::from(id.0)].as_deref_mut();
            let turn = started.map_or(Turn::Done, |queue| queue.turn(&mut self.reads, shared));
            match turn {
                Turn::Done => self.is_at_work[usize::from(id.0)] = false,
                Turn::More => {
                    self.work.push_back(id);
                    turns += 1;
                }
                Turn::Blocked => self.work.push_back(id),
            }
            self.set_deadline(id);
        }
    }

    fn time_passed(&mut self, shared: &mut Shared) {
        while let Some(index) = self.deadlines.take_due(shared.now) {
            // A completion that finds no room is written in a turn.
            if self.queues[index].as_deref_mut().is_some_and(|queue| !queue.report(shared)) {
                self.put_to_work(QueueId(index as u16));
            }
        }
    }

    #[inline]
    fn wake_at(&self) -> Option<SimTime> {
        self.deadlines.earliest()
    }

    #[inline]
    fn dma_completed(&mut self, tag: u16, data: Result<&[u8], DmaError>, shared: &mut Shared) {
        let Some(read) = self.reads.finish(tag) else { return };
        let Some(queue) = self.queue_mut(read.queue).filter(|queue| queue.life() == read.life) else {
            return;
        };
        if queue.answered(read, data, shared) {
            self.put_to_work(read.queue);
        }
    }
}

impl FetchEngine for DmaEngine {
    /// A value that runs backwards or past the ring is counted as a bad access and otherwise ignored.
    #[inline]
    fn doorbell(&mut self, queue: QueueId, tail: u64, shared: &mut Shared) {
        if self.queue_mut(queue).is_some_and(|started| started.post(tail)) {
            self.put_to_work(queue);
        } else {
            shared.counters.bad_accesses += 1;
        }
    }
}

impl FrameSource for DmaEngine {
    #[inline]
    fn head(&mut self, queue: QueueId) -> Option<&[u8]> {
        self.queue(queue)?.head()
    }

    #[inline]
    fn head_bytes(&self, queue: QueueId) -> Option<u32> {
        self.queue(queue)?.head_bytes()
    }

    #[inline]
    fn pop(&mut self, queue: QueueId, shared: &mut Shared) {
        let Some(started) = self.queue_mut(queue) else { return };
        let wants_turn = started.pop(shared);
        // One that is not needed any more is left standing: it costs a look at the queue.
        if let Some(at) = started.deadline() {
            self.deadlines.arm(usize::from(queue.0), at);
        }
        if wants_turn {
            self.put_to_work(queue);
        }
    }
}
