//! Frames of one queue in the order in which they leave, whether their bytes came with the write or are fetched.
//!
//! A frame is put in whole ([`FrameQueue::put`]) or by its address ([`FrameQueue::begin`], then
//! [`FrameQueue::issue`] until its reads are asked for). Payload reads of many frames are under way at once and are
//! answered in any order; frames leave in order. A frame that makes no sense (length 0, longer than the port's longest
//! or shorter than an Ethernet header) or whose payload cannot be read is counted and done in its turn like any other,
//! so that one bad buffer does not stall the ring.
//!
//! What is done is told to the host here too ([`HeadReport`]): the count moves when a frame is, whatever its interface.
//!
//! From: the engines of interfaces that read host memory ([`crate::interfaces`]). To: the wire.
//! Larsen & Lee, NAS'15, §I and figure 1.

use std::ops::Range;

use beeline_contract_device::{DmaError, QueueId, SimTime};
use beeline_spec::LINE_BYTES;
use beeline_spec::formats::MIN_FRAME_BYTES;

use super::descriptor_ring::READ_BOUNDARY_BYTES;
use super::fetching::Turn;
use super::frame_ring::FrameRing;
use super::head_report::HeadReport;
use super::reads::{Purpose, Read, Reads};
use crate::engine::{DmaOwner, Shared};

/// Frames of one queue whose payload is under way or waits for the wire.
const SLOTS: u64 = 128;
/// Lines of payload memory of one queue: 64 KiB, seven of the longest frames.
const PAYLOAD_LINES: u32 = 1024;
/// Payload reads that a queue asks for before another queue has its turn.
const READS_PER_TURN: u32 = 16;

/// A frame to be sent, as the host describes it; nothing in it is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    /// Bytes of the frame.
    pub bytes: u32,
    /// What the host's count moves on by when the frame is done: descriptors, lines, entries.
    pub units: u32,
    /// Whether the host wants an interrupt then.
    pub wants_interrupt: bool,
}

/// A frame that was put in.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    start_line: u32,
    bytes: u32,
    /// Bytes that have not been answered yet.
    missing_bytes: u32,
    units: u32,
    wants_interrupt: bool,
    /// It takes no part on the wire: it makes no sense, could not be read, or is none.
    is_skipped: bool,
}

impl Slot {
    fn lines(&self) -> u32 {
        self.bytes.div_ceil(LINE_BYTES as u32)
    }
}

/// Where the reads of the youngest frame go on.
#[derive(Clone, Copy, Debug)]
struct Issuing {
    address: u64,
    offset: u32,
}

/// The frames. Counts are absolute: `head <= issued`.
#[derive(Debug)]
pub(crate) struct FrameQueue {
    id: QueueId,
    life: u32,
    owner: DmaOwner,
    payload: FrameRing,
    longest_frame_bytes: u32,
    /// Frame i at i modulo [`SLOTS`].
    slots: Box<[Slot; SLOTS as usize]>,
    /// Frames done.
    head: u64,
    done_units: u64,
    /// Frames put in, the one of `issuing` not counted.
    issued: u64,
    /// The frame at `issued` has its place, and its reads are not all asked for.
    issuing: Option<Issuing>,
    report: HeadReport,
}

impl FrameQueue {
    /// No frame; those that are done will be told of by `report`.
    pub(crate) fn new(
        id: QueueId,
        life: u32,
        owner: DmaOwner,
        longest_frame_bytes: u32,
        report: HeadReport,
    ) -> Self {
        FrameQueue {
            id,
            life,
            owner,
            payload: FrameRing::new(PAYLOAD_LINES, longest_frame_bytes.div_ceil(LINE_BYTES as u32)),
            longest_frame_bytes,
            slots: Box::new([Slot::default(); SLOTS as usize]),
            head: 0,
            done_units: 0,
            issued: 0,
            issuing: None,
            report,
        }
    }

    /// Tells the host what is done, if that is due; the queue is idle when that is `all_units`. `false`: due, but the DMA
    /// port has no room.
    #[inline]
    pub(crate) fn report(&mut self, all_units: u64, shared: &mut Shared) -> bool {
        self.report.report(self.done_units, self.done_units == all_units, shared)
    }

    /// When the next report is due for its time alone.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<SimTime> {
        self.report.deadline()
    }

    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    /// Units of the frames that are done since the queue was enabled.
    #[inline]
    pub(crate) fn done_units(&self) -> u64 {
        self.done_units
    }

    /// Whether the reads of the youngest frame are not all asked for, so that nothing can be put in behind it.
    #[inline]
    pub(crate) fn is_issuing(&self) -> bool {
        self.issuing.is_some()
    }

    /// Puts in a frame that is here whole. `false`: there is no room.
    pub(crate) fn put(&mut self, frame: &[u8], described: Described, shared: &mut Shared) -> bool {
        let described = Described { bytes: frame.len() as u32, ..described };
        let Some(start) = self.place(described, true, shared) else { return false };
        if let Some(start) = start {
            self.payload.frame_mut(start, 0..frame.len()).copy_from_slice(frame);
        }
        self.end_issue(0, shared);
        true
    }

    /// Puts in something that is no frame, and is done in its turn. `false`: there is no room.
    pub(crate) fn put_nothing(&mut self, described: Described, shared: &mut Shared) -> bool {
        if self.issued - self.head == SLOTS {
            return false;
        }
        let Described { units, wants_interrupt, .. } = described;
        self.slots[(self.issued % SLOTS) as usize] =
            Slot { units, wants_interrupt, is_skipped: true, ..Slot::default() };
        self.end_issue(0, shared);
        true
    }

    /// Gives a frame at `address` its place; its reads are asked for by [`FrameQueue::issue`]. `false`: there is no
    /// room. Not while the frame before it is issuing.
    pub(crate) fn begin(&mut self, address: u64, described: Described, shared: &mut Shared) -> bool {
        debug_assert!(!self.is_issuing());
        let is_readable = address.checked_add(u64::from(described.bytes)).is_some();
        if self.place(described, is_readable, shared).is_none() {
            return false;
        }
        self.issuing = Some(Issuing { address, offset: 0 });
        true
    }

    /// Gives the next frame a slot, and its payload a place: `None` while there is none, `Some(None)` when it makes no
    /// sense and has a slot without payload.
    fn place(&mut self, described: Described, is_readable: bool, shared: &mut Shared) -> Option<Option<u32>> {
        if self.issued - self.head == SLOTS {
            return None;
        }
        let Described { bytes, units, wants_interrupt } = described;
        let is_runt = (1..MIN_FRAME_BYTES as u32).contains(&bytes);
        let is_bad_length = bytes == 0 || bytes > self.longest_frame_bytes;
        let is_bad = is_bad_length || is_runt || !is_readable;
        let start = if is_bad {
            let counters = &mut shared.counters;
            let cause = match (is_runt, is_bad_length) {
                (true, _) => &mut counters.runts,
                (_, true) => &mut counters.bad_lengths,
                _ => &mut counters.dma_errors,
            };
            *cause += 1;
            None
        } else {
            Some(self.payload.reserve(bytes.div_ceil(LINE_BYTES as u32))?)
        };
        let bytes = if is_bad { 0 } else { bytes };
        self.slots[(self.issued % SLOTS) as usize] = Slot {
            start_line: start.unwrap_or(0),
            bytes,
            missing_bytes: bytes,
            units,
            wants_interrupt,
            is_skipped: is_bad,
        };
        Some(start)
    }

    /// Asks for reads of the frame that was begun, at most so many that `asked` does not pass a turn's share. `Done`
    /// when all are asked for.
    pub(crate) fn issue(&mut self, asked: &mut u32, reads: &mut Reads, shared: &mut Shared) -> Turn {
        let Some(Issuing { address, mut offset }) = self.issuing else { return Turn::Done };
        let bytes = self.slot(self.issued).bytes;
        while offset < bytes {
            let from = address + u64::from(offset);
            let before_boundary = (READ_BOUNDARY_BYTES - from % READ_BOUNDARY_BYTES) as u32;
            let part = (bytes - offset).min(before_boundary);
            let purpose = Purpose::Payload { index: self.issued, offset };
            let read = Read { queue: self.id, life: self.life, purpose, bytes: part };
            if !reads.ask(self.owner, from, read, shared) {
                self.issuing = Some(Issuing { address, offset });
                return Turn::Blocked;
            }
            shared.counters.payload_fetches += 1;
            offset += part;
            *asked += 1;
        }
        self.issuing = None;
        let missing = self.slot(self.issued).missing_bytes;
        self.end_issue(missing, shared);
        if *asked >= READS_PER_TURN { Turn::More } else { Turn::Done }
    }

    /// The frame at `issued` is put in, and `missing_bytes` of it are under way.
    fn end_issue(&mut self, missing_bytes: u32, shared: &mut Shared) {
        self.slots[(self.issued % SLOTS) as usize].missing_bytes = missing_bytes;
        self.issued += 1;
        if missing_bytes == 0 {
            self.advance(shared);
        }
    }

    #[inline]
    fn slot(&self, index: u64) -> &Slot {
        &self.slots[(index % SLOTS) as usize]
    }

    /// The answer to a payload read of this life of the queue: of which part of which frame, and of how many bytes. Gives
    /// whether the head moved, which leaves something to report, and room.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        (index, offset): (u64, u32),
        bytes: u32,
        data: Result<&[u8], DmaError>,
        shared: &mut Shared,
    ) -> bool {
        let slot = &mut self.slots[(index % SLOTS) as usize];
        slot.missing_bytes -= bytes;
        match data {
            Ok(data) => {
                let range: Range<usize> = offset as usize..offset as usize + data.len();
                self.payload.frame_mut(slot.start_line, range).copy_from_slice(data);
            }
            Err(_) => slot.is_skipped = true,
        }
        let (is_whole, head) = (slot.missing_bytes == 0, self.head);
        if is_whole && index == head {
            self.advance(shared);
        }
        self.head != head
    }

    /// Completes what is skipped at the head, and says so when a good frame is behind it.
    #[inline]
    fn advance(&mut self, shared: &mut Shared) {
        while self.head < self.issued && self.slot(self.head).missing_bytes == 0 {
            if !self.slot(self.head).is_skipped {
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
        self.done_units += u64::from(slot.units);
        self.head += 1;
        self.report.note(slot.wants_interrupt, shared.now);
    }

    /// The frame at the head, once it is whole.
    #[inline]
    pub(crate) fn head(&self) -> Option<&[u8]> {
        let slot = self.whole_head()?;
        Some(self.payload.frame(slot.start_line, 0..slot.bytes as usize))
    }

    /// Returns the bytes of the first frame, once they are known.
    #[inline]
    pub(crate) fn head_bytes(&self) -> Option<u32> {
        self.whole_head().map(|slot| slot.bytes)
    }

    #[inline]
    fn whole_head(&self) -> Option<&Slot> {
        let slot = self.slot(self.head);
        (self.head < self.issued && slot.missing_bytes == 0 && !slot.is_skipped).then_some(slot)
    }

    /// The frame at the head is on the wire. Gives whether there was one.
    #[inline]
    pub(crate) fn pop(&mut self, shared: &mut Shared) -> bool {
        if self.whole_head().is_none() {
            return false;
        }
        self.complete_head(shared);
        self.advance(shared);
        true
    }
}
