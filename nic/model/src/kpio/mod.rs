//! `kpio`: transmit as kPIO+WC has it, its limits included.
//!
//! The driver writes a frame in 64-byte lines, in order, into a write-combining window; the device takes the lines as
//! a FIFO in arrival order ([`kpio_queue`]), and an end-of-packet signature tells it where a frame ends
//! ([`eop_filter`]); a multiplexer divides the traffic between this path and descriptor DMA ([`mux`]). No descriptor,
//! no doorbell, no length field. The modules are named as the boxes of the paper's figure 2.
//!
//! What the paper's design needs and we do not hide: lines must arrive in order; frames are multiples of 8 bytes; a
//! payload word equal to the signature loses its packet. `mmio` needs none of the three. Several queues, each with a
//! window of its own, stand for the paper's "multiple kPIO+WC TX Queues, such as seen in RSS".
//!
//! From: writes to the windows. To: the egress arbiter, by [`FrameSource`]. Larsen & Lee, NAS'15, §III.

mod eop_filter;
mod kpio_queue;
mod line_merge;
mod mux;
#[cfg(test)]
mod tests;

use beeline_contract_device::{Accept, DmaError, Enables, QueueId, SimTime};

pub(crate) use mux::{Mux, Path};

use crate::NicConfig;
use crate::deadlines::Deadlines;
use crate::engine::{Cause, Engine, FrameSource, QueueSettings, Shared, WindowEngine};
use crate::mmio::credit_return::CreditReturn;
use kpio_queue::KpioQueue;

/// The transmit engine of kPIO+WC.
#[derive(Debug)]
pub(crate) struct KpioEngine {
    queues: Box<[Option<Box<KpioQueue>>]>,
    longest_frame_bytes: u32,
    credits: CreditReturn,
    /// When a queue's hole will have stood too long.
    holes: Deadlines,
}

impl KpioEngine {
    /// An engine with no queue started.
    pub(crate) fn new(config: &NicConfig) -> Self {
        KpioEngine {
            queues: (0..config.queues).map(|_| None).collect(),
            longest_frame_bytes: config.max_frame_bytes,
            credits: CreditReturn::new(config.queues),
            holes: Deadlines::new(config.queues as usize),
        }
    }

    /// Pushes the credits that are due; called when the device has nothing else to do, so that a burst shares a push.
    #[inline]
    pub(crate) fn push_due_credits(&mut self, shared: &mut Shared) {
        self.credits.push_due(shared);
    }

    fn queue(&self, queue: QueueId) -> Option<&KpioQueue> {
        self.queues.get(usize::from(queue.0))?.as_deref()
    }

    fn queue_mut(&mut self, queue: QueueId) -> Option<&mut KpioQueue> {
        self.queues.get_mut(usize::from(queue.0))?.as_deref_mut()
    }
}

impl Engine for KpioEngine {
    fn start(&mut self, queue: QueueId, settings: &QueueSettings, _shared: &mut Shared) -> Result<(), Cause> {
        let started = KpioQueue::new(queue, settings, self.longest_frame_bytes);
        self.queues[usize::from(queue.0)] = Some(Box::new(started));
        self.credits.start(queue, settings);
        Ok(())
    }

    fn stop(&mut self, queue: QueueId, _shared: &mut Shared) {
        self.queues[usize::from(queue.0)] = None;
        self.credits.stop(queue);
        self.holes.disarm(usize::from(queue.0));
    }

    fn quarantine(&mut self, queue: QueueId, _shared: &mut Shared) {
        self.holes.disarm(usize::from(queue.0));
        if let Some(started) = self.queue_mut(queue) {
            started.quarantine();
        }
    }

    #[inline]
    fn progress(&mut self, _shared: &mut Shared) {}

    fn time_passed(&mut self, shared: &mut Shared) {
        self.credits.push_due(shared);
        while let Some(index) = self.holes.take_due(shared.now) {
            shared.counters.hole_timeouts += 1;
            shared.fail(QueueId(index as u16), Cause::HoleTimeout);
        }
    }

    #[inline]
    fn wake_at(&self) -> SimTime {
        self.credits.wake_at().min(self.holes.earliest())
    }

    /// This engine reads nothing.
    fn dma_completed(&mut self, _tag: u16, _data: Result<&[u8], DmaError>, _shared: &mut Shared) {}
}

impl WindowEngine for KpioEngine {
    #[inline]
    fn write_arrived(
        &mut self,
        queue: QueueId,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> Accept {
        let Some(started) = self.queue_mut(queue) else { return Accept::Taken };
        let freed_before = started.freed_lines();
        let accept = started.write_arrived(offset_bytes, data, enables, shared);
        let freed = started.freed_lines();
        if started.has_looked_for_holes() {
            match started.hole_deadline() {
                Some(at) => self.holes.arm(usize::from(queue.0), at),
                None => self.holes.disarm(usize::from(queue.0)),
            }
        }
        if freed != freed_before {
            self.credits.freed(queue, freed, shared);
        }
        accept
    }
}

impl FrameSource for KpioEngine {
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
        started.pop(shared);
        let freed = started.freed_lines();
        self.credits.freed(queue, freed, shared);
    }
}
