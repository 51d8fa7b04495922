//! One transmit queue with descriptors: its ring, the frames whose payload is under way, and its completions.
//!
//! Every descriptor passes through the same stations in ring order: fetched, its payload asked for, its payload there,
//! on the wire, completed. Payload reads of many frames are under way at once and are answered in any order; frames
//! are released in ring order. A descriptor that makes no sense (length 0, longer than the port's longest frame or
//! shorter than an Ethernet header) or whose payload cannot be read is counted and completed in its turn like any
//! other, so that one bad buffer does not stall the ring.
//!
//! From: [`super::DmaEngine`], which owns the tags. To: the wire, and the head count in host memory.
//! Larsen & Lee, NAS'15, §I and figure 1.

use beeline_nic_contract::{DmaError, QueueId};
use beeline_spec::LINE_BYTES;
use beeline_spec::formats::MIN_FRAME_BYTES;

use super::descriptor_ring::{DESCRIPTOR_BYTES, Descriptor, DescriptorRing, READ_BOUNDARY_BYTES};
use super::frame_ring::FrameRing;
use super::moderation::Moderation;
use super::reads::{Purpose, Read, Reads};
use crate::engine::{Cause, DmaOwner, IrqCause, QueueSettings, Shared};

/// Frames of one queue whose payload is under way or waits for the wire.
const SLOTS: u64 = 128;
/// Lines of payload memory of one queue: 64 KiB, seven of the longest frames.
const PAYLOAD_LINES: u32 = 1024;
/// Payload reads that a queue asks for before another queue has its turn.
const READS_PER_TURN: u32 = 16;
/// Flag of a transmit descriptor: interrupt when done.
const FLAG_INTERRUPT: u32 = 1;

/// How a queue's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It can do nothing until something happens to it.
    Done,
    /// It has used up its turn and has more to ask for.
    More,
    /// There is no tag or no room in the DMA port.
    Blocked,
}

/// A descriptor whose payload is asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    start_line: u32,
    bytes: u32,
    /// Bytes that have not been answered yet.
    missing_bytes: u32,
    flags: u32,
    is_bad: bool,
}

impl Slot {
    fn lines(&self) -> u32 {
        self.bytes.div_ceil(LINE_BYTES as u32)
    }
}

/// A started queue. Counts are absolute: `head <= issued <= ring.taken() + 1`.
#[derive(Debug)]
pub(super) struct TxQueue {
    id: QueueId,
    life: u32,
    ring: DescriptorRing,
    payload: FrameRing,
    longest_frame_bytes: u32,
    /// The frame of descriptor i at i modulo [`SLOTS`].
    slots: Box<[Slot; SLOTS as usize]>,
    /// Descriptors completed.
    head: u64,
    /// Descriptors whose payload has been asked for whole.
    issued: u64,
    /// Bytes of the next descriptor's payload already asked for, once its place is reserved.
    issuing: Option<u32>,
    head_address: u64,
    completions: Moderation,
    wants_interrupt: bool,
    has_failed: bool,
}

impl TxQueue {
    /// A queue whose ring begins empty.
    pub(super) fn new(
        id: QueueId,
        life: u32,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let ring = DescriptorRing::new(settings.tx_ring_address, settings.tx_ring_entries)
            .ok_or(Cause::BadLength)?;
        if !settings.tx_head_address.is_multiple_of(8) {
            return Err(Cause::DmaError);
        }
        Ok(TxQueue {
            id,
            life,
            ring,
            payload: FrameRing::new(PAYLOAD_LINES, longest_frame_bytes.div_ceil(LINE_BYTES as u32)),
            longest_frame_bytes,
            slots: Box::new([Slot::default(); SLOTS as usize]),
            head: 0,
            issued: 0,
            issuing: None,
            head_address: settings.tx_head_address,
            completions: Moderation::new(settings.tx_moderation_frames, settings.tx_moderation_ns),
            wants_interrupt: false,
            has_failed: false,
        })
    }

    /// Which life of the queue this is.
    pub(super) fn life(&self) -> u32 {
        self.life
    }

    /// When the next completion is due for its time alone.
    pub(super) fn deadline(&self) -> Option<beeline_nic_contract::SimTime> {
        self.completions.deadline()
    }

    /// The doorbell rang; `false` when its value makes no sense.
    pub(super) fn post(&mut self, posted: u64) -> bool {
        self.ring.post(posted, self.head)
    }

    /// Does what is possible now: writes a completion that is due, fetches descriptors, asks for payload.
    pub(super) fn turn(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
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

    fn fetch_descriptors(&mut self, reads: &mut Reads, shared: &mut Shared) -> bool {
        while let Some(fetch) = self.ring.next_fetch() {
            let bytes = fetch.count * DESCRIPTOR_BYTES;
            let purpose = Purpose::Descriptors { first: fetch.first };
            if !self.read(fetch.address, bytes, purpose, reads, shared) {
                return false;
            }
            shared.counters.descriptor_fetches += 1;
            self.ring.fetch_started(fetch);
        }
        true
    }

    /// `false`: there is no tag or no room in the DMA port.
    fn read(
        &self,
        address: u64,
        bytes: u32,
        purpose: Purpose,
        reads: &mut Reads,
        shared: &mut Shared,
    ) -> bool {
        let Some(tag) = reads.next_tag() else { return false };
        if !shared.dma.read(DmaOwner::Transmit, address, bytes, tag) {
            return false;
        }
        reads.start(Read { queue: self.id, life: self.life, purpose, bytes });
        true
    }

    fn issue_payloads(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        let mut asked = 0;
        while let Some(descriptor) = self.ring.front() {
            if asked >= READS_PER_TURN {
                return Turn::More;
            }
            let Some(mut offset) = self.issuing.or_else(|| self.place(descriptor, shared)) else {
                return Turn::Done;
            };
            while offset < self.slot(self.issued).bytes {
                let address = descriptor.address + u64::from(offset);
                let before_boundary = (READ_BOUNDARY_BYTES - address % READ_BOUNDARY_BYTES) as u32;
                let bytes = (descriptor.bytes - offset).min(before_boundary);
                let purpose = Purpose::Payload { index: self.issued, offset };
                if !self.read(address, bytes, purpose, reads, shared) {
                    self.issuing = Some(offset);
                    return Turn::Blocked;
                }
                shared.counters.payload_fetches += 1;
                offset += bytes;
                asked += 1;
            }
            self.ring.take();
            self.issuing = None;
            self.issued += 1;
            if self.slot(self.issued - 1).is_bad {
                self.advance(shared);
            }
        }
        Turn::Done
    }

    /// Gives the next descriptor a slot, and its payload a place; `None` while there is none. A descriptor that makes
    /// no sense gets a slot without payload. The address of any other plus its length does not overflow.
    fn place(&mut self, descriptor: Descriptor, shared: &mut Shared) -> Option<u32> {
        if self.issued - self.head == SLOTS {
            return None;
        }
        let bytes = descriptor.bytes;
        let is_runt = (1..MIN_FRAME_BYTES as u32).contains(&bytes);
        let is_bad_length = bytes == 0 || bytes > self.longest_frame_bytes;
        let is_bad_address = descriptor.address.checked_add(u64::from(bytes)).is_none();
        let is_bad = is_bad_length || is_runt || is_bad_address;
        let slot = if is_bad {
            let counters = &mut shared.counters;
            let cause = match (is_runt, is_bad_length) {
                (true, _) => &mut counters.runts,
                (_, true) => &mut counters.bad_lengths,
                _ => &mut counters.dma_errors,
            };
            *cause += 1;
            Slot { flags: descriptor.flags, is_bad, ..Slot::default() }
        } else {
            let start_line = self.payload.reserve(bytes.div_ceil(LINE_BYTES as u32))?;
            Slot { start_line, bytes, missing_bytes: bytes, flags: descriptor.flags, is_bad }
        };
        self.slots[(self.issued % SLOTS) as usize] = slot;
        Some(0)
    }

    #[inline]
    fn slot(&self, index: u64) -> &Slot {
        &self.slots[(index % SLOTS) as usize]
    }

    /// The answer to a read of this life of the queue. Gives whether the queue wants a turn.
    #[inline]
    pub(super) fn answered(
        &mut self,
        read: Read,
        data: Result<&[u8], DmaError>,
        shared: &mut Shared,
    ) -> bool {
        let data = data.ok().filter(|data| data.len() == read.bytes as usize);
        shared.counters.dma_errors += u64::from(data.is_none());
        match (read.purpose, data) {
            (Purpose::Descriptors { first }, Some(data)) => {
                self.ring.fetched(first, data);
                true
            }
            (Purpose::Descriptors { .. }, None) => {
                // Without its descriptors the ring cannot go on: what the host wanted is not known.
                self.has_failed = true;
                shared.fail(self.id, Cause::DmaError);
                false
            }
            (Purpose::Payload { index, offset }, data) => {
                let slot = &mut self.slots[(index % SLOTS) as usize];
                slot.missing_bytes -= read.bytes;
                match data {
                    Some(data) => {
                        let range = offset as usize..offset as usize + data.len();
                        self.payload.frame_mut(slot.start_line, range).copy_from_slice(data);
                    }
                    None => slot.is_bad = true,
                }
                let (is_whole, head) = (slot.missing_bytes == 0, self.head);
                if is_whole && index == head {
                    self.advance(shared);
                }
                // Only bad frames that went away leave something to report, and room.
                self.head != head
            }
        }
    }

    /// Completes the bad descriptors at the head, and says so when a good frame is behind them.
    #[inline]
    fn advance(&mut self, shared: &mut Shared) {
        while self.head < self.issued && self.slot(self.head).missing_bytes == 0 {
            if !self.slot(self.head).is_bad {
                shared.frame_ready(self.id);
                return;
            }
            self.complete_head(shared);
        }
    }

    #[inline]
    fn complete_head(&mut self, shared: &mut Shared) {
        let slot = *self.slot(self.head);
        self.payload.release(slot.lines());
        self.wants_interrupt |= slot.flags & FLAG_INTERRUPT != 0;
        self.head += 1;
        self.completions.note(1, shared.now);
    }

    /// Writes the head count, and interrupts, if that is due. `false`: due, but the DMA port has no room.
    #[inline]
    pub(super) fn report(&mut self, shared: &mut Shared) -> bool {
        let is_idle = self.head == self.ring.posted();
        !self.completions.is_due(shared.now, is_idle) || self.write_head(shared)
    }

    fn write_head(&mut self, shared: &mut Shared) -> bool {
        if self.head_address != 0 {
            if !shared.dma.write(self.head_address, &self.head.to_le_bytes()) {
                return false;
            }
            shared.counters.completions += 1;
        }
        self.completions.clear();
        if self.wants_interrupt {
            self.wants_interrupt = false;
            shared.interrupts.raise(IrqCause::TxCompletion, self.id);
        }
        true
    }

    /// The frame at the head, once it is whole.
    #[inline]
    pub(super) fn head(&self) -> Option<&[u8]> {
        let slot = self.whole_head()?;
        Some(self.payload.frame(slot.start_line, 0..slot.bytes as usize))
    }

    /// Its length.
    #[inline]
    pub(super) fn head_bytes(&self) -> Option<u32> {
        self.whole_head().map(|slot| slot.bytes)
    }

    #[inline]
    fn whole_head(&self) -> Option<&Slot> {
        let slot = self.slot(self.head);
        (self.head < self.issued && slot.missing_bytes == 0 && !slot.is_bad).then_some(slot)
    }

    /// The frame at the head is on the wire. Gives whether the queue wants a turn.
    #[inline]
    pub(super) fn pop(&mut self, shared: &mut Shared) -> bool {
        if self.whole_head().is_none() {
            return false;
        }
        self.complete_head(shared);
        self.advance(shared);
        !self.report(shared) || self.ring.front().is_some() || self.ring.next_fetch().is_some()
    }
}
