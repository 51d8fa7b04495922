//! One transmit queue of entries in the BAR: the entry that arrives, those that have, and their frames.
//!
//! Entries are taken in order, each when all bytes of it have arrived; where the frame is, its head says. A byte that
//! arrives twice, a byte of another entry than the next, an entry that is not free, or a head that is not of this
//! queue, epoch and place fails the queue: nothing else than the order of entries tells what is meant. The host may
//! write a place again once the head count (in entries) has passed it.
//!
//! From: [`super::NiqEngine`], writes to the window. To: the wire, and the head count in host memory.
//! Flajslik & Rosenblum, ATC'13.

use beeline_contract_device::{Accept, DmaError, Enables, QueueId, SimTime};
use beeline_spec::Interface;
use beeline_spec::LINE_BYTES;
use beeline_spec::entry::{EntryHeader, EntryKind, NIQ_MAX_LINES, position_of};
use beeline_spec::formats::ENTRY_HEAD_BYTES;

use crate::engine::{Cause, DmaOwner, QueueSettings, Shared};
use crate::fetch::{Described, FetchQueue, FrameQueue, HeadReport, Purpose, PushQueue, Read, Reads, Turn};
use crate::pieces::{pieces, skip};

const MAX_LINES: usize = NIQ_MAX_LINES as usize;

/// A started queue. Counts of entries are absolute: `done <= placed <= arrived <= done + entries`.
#[derive(Debug)]
pub(crate) struct TxEntries {
    id: QueueId,
    epoch: u8,
    has_backpressure: bool,
    entry_bytes: usize,
    entries: u64,
    /// Entry i at i modulo the entries.
    memory: Box<[u8]>,
    /// Of the entry that arrives: bit i of line l is byte i of the line.
    valid: [u64; MAX_LINES],
    arrived: u64,
    /// Entries whose frame has its place among `frames`.
    placed: u64,
    frames: FrameQueue,
    hole_timeout: SimTime,
    /// When the first byte of an entry that is not whole arrived.
    since: Option<SimTime>,
    has_failed: bool,
}

impl TxEntries {
    fn fail(&mut self, cause: Cause, shared: &mut Shared) {
        let counters = &mut shared.counters;
        match cause {
            Cause::SpanExceeded => counters.span_exceeded += 1,
            Cause::Clobber => counters.clobbers += 1,
            Cause::Overrun => counters.overruns += 1,
            Cause::BadHeader => counters.bad_headers += 1,
            Cause::BadLength => counters.bad_lengths += 1,
            Cause::HoleTimeout => counters.hole_timeouts += 1,
            _ => {}
        }
        self.has_failed = true;
        shared.fail(self.id, cause);
    }

    /// What of a write lies in one entry has arrived; the cause when that fails the queue.
    #[inline]
    fn store(&mut self, place: usize, data: &[u8], enables: Enables) -> Result<(), Cause> {
        let (index, at) = (place / self.entry_bytes, place % self.entry_bytes);
        for piece in pieces(at, data, enables) {
            if index as u64 != self.arrived % self.entries {
                return Err(Cause::SpanExceeded);
            }
            if self.valid[piece.line] & piece.mask != 0 {
                return Err(Cause::Clobber);
            }
            let start = index * self.entry_bytes + piece.line * LINE_BYTES;
            piece.store(&mut self.memory[start..start + LINE_BYTES]);
            self.valid[piece.line] |= piece.mask;
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.valid.iter().take(self.entry_bytes / LINE_BYTES).all(|valid| *valid == u64::MAX)
    }

    fn entry(&self, index: u64) -> &[u8] {
        let start = (index % self.entries) as usize * self.entry_bytes;
        &self.memory[start..start + self.entry_bytes]
    }

    fn word(&self, index: u64, word: usize) -> u64 {
        u64::from_le_bytes(self.entry(index).as_chunks::<8>().0[word])
    }

    /// The head of an entry that is whole, if it is of this queue and place and fits.
    fn header(&self, index: u64) -> Result<EntryHeader, Cause> {
        let header = EntryHeader::decode(self.word(index, 0), self.epoch).map_err(|_| Cause::BadHeader)?;
        if header.position != position_of(index) {
            return Err(Cause::BadHeader);
        }
        let room = self.entry_bytes - ENTRY_HEAD_BYTES;
        if header.kind == EntryKind::Whole && usize::from(header.length_bytes) > room {
            return Err(Cause::BadLength);
        }
        Ok(header)
    }

    /// Gives entries that have arrived their place among the frames.
    fn place_entries(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        let mut asked = 0;
        loop {
            if self.frames.is_issuing() {
                let turn = self.frames.issue(&mut asked, reads, shared);
                if turn != Turn::Done {
                    return turn;
                }
            }
            if self.placed == self.arrived {
                return Turn::Done;
            }
            let header = self.header(self.placed).expect("the head was checked when the entry was whole");
            let described =
                Described { bytes: header.length_bytes.into(), units: 1, wants_interrupt: header.wants_irq };
            let is_put = match header.kind {
                EntryKind::Whole => {
                    let start = (self.placed % self.entries) as usize * self.entry_bytes + ENTRY_HEAD_BYTES;
                    let frame = &self.memory[start..start + usize::from(header.length_bytes)];
                    self.frames.put(frame, described, shared)
                }
                EntryKind::Address => self.frames.begin(self.word(self.placed, 1), described, shared),
                EntryKind::Nothing => self.frames.put_nothing(described, shared),
            };
            if !is_put {
                return Turn::Done;
            }
            self.placed += 1;
        }
    }

    /// `false`: a report is due, but the DMA port has no room.
    #[inline]
    fn report(&mut self, shared: &mut Shared) -> bool {
        self.frames.report(self.arrived, shared)
    }

    /// Takes a write whose entries are all free.
    fn take(
        &mut self,
        offset: usize,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> Result<(), Cause> {
        let mut done = 0;
        while done < data.len() {
            let place = offset + done;
            let bytes = (self.entry_bytes - place % self.entry_bytes).min(data.len() - done);
            self.store(place, &data[done..done + bytes], skip(enables, done))?;
            if self.is_whole() {
                self.header(self.arrived)?;
                (self.valid, self.since) = ([0; MAX_LINES], None);
                self.arrived += 1;
                shared.counters.entries += 1;
            } else if self.valid != [0; MAX_LINES] && self.since.is_none() {
                self.since = Some(shared.now);
            }
            done += bytes;
        }
        Ok(())
    }
}

impl FetchQueue for TxEntries {
    fn start(
        id: QueueId,
        life: u32,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let entries = settings.window_lines / settings.entry_lines;
        if settings.entry_lines > NIQ_MAX_LINES || entries < 2 {
            return Err(Cause::BadLength);
        }
        let report = HeadReport::new(id, settings)?;
        Ok(TxEntries {
            id,
            epoch: settings.epoch,
            has_backpressure: settings.backpressure,
            entry_bytes: settings.entry_lines as usize * LINE_BYTES,
            entries: entries.into(),
            memory: vec![0; settings.window_lines as usize * LINE_BYTES].into_boxed_slice(),
            valid: [0; MAX_LINES],
            arrived: 0,
            placed: 0,
            frames: FrameQueue::new(
                id,
                life,
                DmaOwner::Transmit(Interface::Niq),
                longest_frame_bytes,
                report,
            ),
            hole_timeout: SimTime::from_ns(settings.hole_timeout_ns),
            since: None,
            has_failed: false,
        })
    }

    fn life(&self) -> u32 {
        self.frames.life()
    }

    fn deadline(&self) -> Option<SimTime> {
        let hole = self.since.filter(|_| self.hole_timeout.0 > 0);
        let hole = hole.map(|since| SimTime(since.0.saturating_add(self.hole_timeout.0)));
        [self.frames.deadline(), hole].into_iter().flatten().min()
    }

    /// Entries announce themselves: there is no doorbell.
    fn post(&mut self, _posted: u64) -> bool {
        false
    }

    fn turn(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        if self.has_failed {
            return Turn::Done;
        }
        let turn = self.place_entries(reads, shared);
        if self.report(shared) { turn } else { Turn::Blocked }
    }

    fn answered(&mut self, read: Read, data: Result<&[u8], DmaError>, shared: &mut Shared) -> bool {
        let data = read.checked(data, shared);
        let Purpose::Payload { index, offset } = read.purpose else { return false };
        self.frames.answered((index, offset), read.bytes, data, shared)
    }

    fn time_passed(&mut self, shared: &mut Shared) -> bool {
        let is_late = |since: SimTime| since.0.saturating_add(self.hole_timeout.0) <= shared.now.0;
        if self.hole_timeout.0 > 0 && self.since.is_some_and(is_late) {
            self.since = None;
            self.fail(Cause::HoleTimeout, shared);
        }
        true
    }

    #[inline]
    fn head(&mut self) -> Option<&[u8]> {
        self.frames.head()
    }

    #[inline]
    fn head_bytes(&self) -> Option<u32> {
        self.frames.head_bytes()
    }

    /// A turn follows: what waited for the room that the frame leaves may go on.
    #[inline]
    fn pop(&mut self, shared: &mut Shared) -> bool {
        self.frames.pop(shared)
    }
}

impl PushQueue for TxEntries {
    /// Refused only while whole entries wait for the wire and take all the places.
    fn write_arrived(
        &mut self,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> (Accept, bool) {
        let offset = offset_bytes as usize;
        let entries = (offset % self.entry_bytes + data.len()).div_ceil(self.entry_bytes) as u64;
        if self.arrived + entries > self.frames.done_units() + self.entries {
            if self.has_backpressure {
                shared.counters.refused_writes += 1;
                return (Accept::Refused, false);
            }
            self.fail(Cause::Overrun, shared);
        } else if let Err(cause) = self.take(offset, data, enables, shared) {
            self.fail(cause, shared);
        }
        (Accept::Taken, self.placed != self.arrived)
    }
}
