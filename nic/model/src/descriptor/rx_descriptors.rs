//! Receive with descriptors, as nearly every NIC does it: the host lends buffers, the device fills them.
//!
//! When the queue is enabled every entry of the descriptor ring names a buffer, and all of them are the device's; from
//! then on the host rings a doorbell with the absolute count of buffers it lent again. The device fetches descriptors
//! ahead of the frames. A frame's bytes are written to the next buffer, then an entry to the completion ring, whose
//! lap bit tells the host that it is new. Completion i belongs to descriptor i. A buffer of length 0, or one that
//! reaches past the address space, comes back with length 0; a frame longer than its buffer is dropped and counted, and
//! the buffer waits for the next.
//!
//! From: [`crate::rx::RxEngine`], a frame from the wire. To: host memory. Larsen & Lee, NAS'15, §V ("receive with and
//! without descriptor-based DMA").

use beeline_contract_device::{DmaError, QueueId};
use beeline_spec::formats::rx_completion as f;

use crate::engine::{Cause, DmaOwner, QueueSettings, Shared};
use crate::fetch::{DESCRIPTOR_BYTES, DescriptorRing, Purpose, Read, Reads};
use crate::rx::Delivery;

/// A started queue.
#[derive(Debug)]
pub(crate) struct RxDescriptors {
    id: QueueId,
    life: u32,
    ring: DescriptorRing,
    completion_address: u64,
    has_failed: bool,
}

impl RxDescriptors {
    /// A queue with every buffer of its ring.
    pub(crate) fn new(id: QueueId, life: u32, settings: &QueueSettings) -> Result<Self, Cause> {
        let mut ring = DescriptorRing::new(settings.rx_ring_address, settings.rx_ring_entries)
            .ok_or(Cause::BadLength)?;
        let completion_address = settings.rx_completion_address;
        let bytes = u64::from(ring.entries()) * f::BYTES as u64;
        if !completion_address.is_multiple_of(f::BYTES as u64)
            || completion_address.checked_add(bytes).is_none()
        {
            return Err(Cause::DmaError);
        }
        let lent = ring.post(u64::from(ring.entries()), 0);
        debug_assert!(lent, "a ring holds its entries");
        Ok(RxDescriptors { id, life, ring, completion_address, has_failed: false })
    }

    /// Which life of the queue this is.
    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// The host has lent `count` buffers again since the queue was enabled; `false` when that cannot be.
    pub(crate) fn lent_again(&mut self, count: u64) -> bool {
        let posted = count.checked_add(u64::from(self.ring.entries()));
        posted.is_some_and(|posted| self.ring.post(posted, self.ring.taken()))
    }

    /// Asks for descriptors ahead. `false`: there is no tag or no room in the DMA port.
    pub(crate) fn fetch(&mut self, reads: &mut Reads, shared: &mut Shared) -> bool {
        while let Some(fetch) = self.ring.next_fetch().filter(|_| !self.has_failed) {
            let bytes = fetch.count * DESCRIPTOR_BYTES;
            let Some(tag) = reads.next_tag() else { return false };
            if !shared.dma.read(DmaOwner::Receive, fetch.address, bytes, tag) {
                return false;
            }
            let purpose = Purpose::Descriptors { first: fetch.first };
            reads.start(Read { queue: self.id, life: self.life, purpose, bytes });
            shared.counters.descriptor_fetches += 1;
            self.ring.fetch_started(fetch);
        }
        true
    }

    /// The answer to a read of this life of the queue.
    pub(crate) fn answered(&mut self, read: Read, data: Result<&[u8], DmaError>, shared: &mut Shared) {
        match (read.purpose, data) {
            (Purpose::Descriptors { first }, Ok(data)) if data.len() == read.bytes as usize => {
                self.ring.fetched(first, data);
            }
            _ => {
                shared.counters.dma_errors += 1;
                self.has_failed = true;
                shared.fail(self.id, Cause::DmaError);
            }
        }
    }

    /// Writes a frame into the next buffer.
    #[inline]
    pub(crate) fn deliver(&mut self, frame: &[u8], shared: &mut Shared) -> Delivery {
        loop {
            if self.ring.posted() == self.ring.taken() {
                return Delivery::NoSpace;
            }
            let Some(buffer) = self.ring.front() else { return Delivery::Later };
            if !shared.dma.has_room(2, frame.len() + f::BYTES) {
                return Delivery::Later;
            }
            if buffer.bytes == 0 || buffer.address.checked_add(u64::from(buffer.bytes)).is_none() {
                shared.counters.bad_lengths += 1;
                self.complete(0, shared);
                continue;
            }
            if frame.len() > buffer.bytes as usize {
                return Delivery::TooLong;
            }
            let done = shared.dma.write(buffer.address, frame);
            debug_assert!(done, "room was asked for");
            self.complete(frame.len() as u32, shared);
            return Delivery::Done;
        }
    }

    /// Returns the buffer at the front with a frame of `bytes` in it.
    fn complete(&mut self, bytes: u32, shared: &mut Shared) {
        let (index, entries) = (self.ring.taken(), u64::from(self.ring.entries()));
        let lap = u64::from((index / entries).is_multiple_of(2));
        let entry = u64::from(bytes) << (8 * f::LENGTH_BYTES_OFFSET) | lap << (8 * f::LAP_OFFSET);
        let address = self.completion_address + index % entries * f::BYTES as u64;
        let done = shared.dma.write(address, &entry.to_le_bytes());
        debug_assert!(done, "room was asked for");
        shared.counters.completions += 1;
        self.ring.take();
    }
}
