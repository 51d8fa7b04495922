//! One transmit queue with descriptors: its ring, its frames, and its completions.
//!
//! Every descriptor passes through the same stations in ring order: fetched, its payload asked for, its payload there,
//! on the wire, completed. Frames and their payload are [`crate::fetch::FrameQueue`]'s; here is what feeds it. A queue fails
//! when its ring cannot be read; a bad descriptor is only counted.
//!
//! From: [`super::DescriptorEngine`], which owns the tags. To: the wire, and the head count in host memory.
//! Larsen & Lee, NAS'15, §I and figure 1.

use beeline_contract_device::{DmaError, QueueId, SimTime};

use beeline_spec::Interface;

use crate::engine::{Cause, DmaOwner, QueueSettings, Shared};
use crate::fetch::{
    DESCRIPTOR_BYTES, Described, DescriptorRing, FetchQueue, FrameQueue, HeadReport, Purpose, Read, Reads,
    Turn,
};

/// Flag of a transmit descriptor: interrupt when done.
const FLAG_INTERRUPT: u32 = 1;

/// A started queue.
#[derive(Debug)]
pub(crate) struct TxQueue {
    id: QueueId,
    ring: DescriptorRing,
    frames: FrameQueue,
    has_failed: bool,
}

impl TxQueue {
    fn fetch_descriptors(&mut self, reads: &mut Reads, shared: &mut Shared) -> bool {
        while let Some(fetch) = self.ring.next_fetch() {
            let bytes = fetch.count * DESCRIPTOR_BYTES;
            let purpose = Purpose::Descriptors { first: fetch.first };
            let read = Read { queue: self.id, life: self.frames.life(), purpose, bytes };
            if !reads.ask(DmaOwner::Transmit(Interface::Descriptor), fetch.address, read, shared) {
                return false;
            }
            shared.counters.descriptor_fetches += 1;
            self.ring.fetch_started(fetch);
        }
        true
    }

    fn issue_payloads(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        let mut asked = 0;
        while let Some(descriptor) = self.ring.front() {
            let described = Described {
                bytes: descriptor.bytes,
                units: 1,
                wants_interrupt: descriptor.flags & FLAG_INTERRUPT != 0,
            };
            if !self.frames.is_issuing() && !self.frames.begin(descriptor.address, described, shared) {
                return Turn::Done;
            }
            let turn = self.frames.issue(&mut asked, reads, shared);
            if turn != Turn::Blocked {
                self.ring.take();
            }
            if turn != Turn::Done {
                return turn;
            }
        }
        Turn::Done
    }

    /// `false`: a report is due, but the DMA port has no room.
    #[inline]
    fn report(&mut self, shared: &mut Shared) -> bool {
        self.frames.report(self.ring.posted(), shared)
    }
}

impl FetchQueue for TxQueue {
    fn start(
        id: QueueId,
        life: u32,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let ring = DescriptorRing::new(settings.tx_ring_address, settings.tx_ring_entries)
            .ok_or(Cause::BadLength)?;
        let report = HeadReport::new(id, settings)?;
        let frames =
            FrameQueue::new(id, life, DmaOwner::Transmit(Interface::Descriptor), longest_frame_bytes, report);
        Ok(TxQueue { id, ring, frames, has_failed: false })
    }

    fn life(&self) -> u32 {
        self.frames.life()
    }

    fn deadline(&self) -> Option<SimTime> {
        self.frames.deadline()
    }

    fn post(&mut self, posted: u64) -> bool {
        self.ring.post(posted, self.frames.done_units())
    }

    /// Writes a completion that is due, fetches descriptors, asks for payload.
    fn turn(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        if self.has_failed {
            return Turn::Done;
        }
        // Fetching comes before the payload, so that the next burst is under way meanwhile, and once more after it,
        // because taking descriptors made room for another.
        if !self.report(shared) || !self.fetch_descriptors(reads, shared) {
            return Turn::Blocked;
        }
        let turn = self.issue_payloads(reads, shared);
        // A descriptor that was bad from the start may have been completed by this turn.
        let had_room = turn != Turn::Done || self.fetch_descriptors(reads, shared) && self.report(shared);
        if had_room { turn } else { Turn::Blocked }
    }

    #[inline]
    fn answered(&mut self, read: Read, data: Result<&[u8], DmaError>, shared: &mut Shared) -> bool {
        let data = read.checked(data, shared);
        match (read.purpose, data) {
            (Purpose::Payload { index, offset }, data) => {
                self.frames.answered((index, offset), read.bytes, data, shared)
            }
            (Purpose::Descriptors { first }, Ok(data)) => {
                self.ring.fetched(first, data);
                true
            }
            _ => {
                // Without its descriptors the ring cannot go on: what the host wanted is not known.
                self.has_failed = true;
                shared.fail(self.id, Cause::DmaError);
                false
            }
        }
    }

    /// A report that finds no room is made in a turn.
    fn time_passed(&mut self, shared: &mut Shared) -> bool {
        !self.report(shared)
    }

    #[inline]
    fn head(&mut self) -> Option<&[u8]> {
        self.frames.head()
    }

    #[inline]
    fn head_bytes(&self) -> Option<u32> {
        self.frames.head_bytes()
    }

    #[inline]
    fn pop(&mut self, shared: &mut Shared) -> bool {
        if !self.frames.pop(shared) {
            return false;
        }
        !self.report(shared) || self.ring.front().is_some() || self.ring.next_fetch().is_some()
    }
}
