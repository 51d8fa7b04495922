//! One transmit pipe: lines read in order, and the frames in them.
//!
//! The doorbell tells how far the pipe is filled; the device reads what is there, in reads as long as they may be, and
//! finds frames by the length in front of each. A frame of which the rest is not posted yet waits for it. A length
//! that makes no sense fails the queue, because nothing else tells where the next frame begins; a frame too short for
//! an Ethernet header is counted and passed over. What the host gets back is a count of lines.
//!
//! From: [`super::EnsoEngine`]. To: the wire, and the head count in host memory. Sadok et al., OSDI'23.

use beeline_contract_device::{DmaError, QueueId, SimTime};
use beeline_spec::Interface;
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::{LINE_BYTES, WORD_BYTES, pipe};

use crate::engine::{Cause, DmaOwner, QueueSettings, Shared};
use crate::fetch::{Ahead, FetchQueue, HeadReport, LineRing, Purpose, Read, Reads, Turn};

/// 64 KiB ahead in reads of up to 4 KiB: a pipe has no gaps, so that is what reads are made of.
const AHEAD: Ahead = Ahead { lines: 1024, burst: 64, fetches: 16 };

/// A started pipe.
#[derive(Debug)]
pub(crate) struct TxPipe {
    id: QueueId,
    life: u32,
    ring: LineRing,
    longest_frame_bytes: u32,
    /// The frame at the front, once all of it is here.
    front_bytes: Option<u32>,
    /// A frame that does not lie in one piece is gathered here.
    scratch: Box<[u8]>,
    report: HeadReport,
    has_failed: bool,
}

impl TxPipe {
    fn fetch_lines(&mut self, reads: &mut Reads, shared: &mut Shared) -> bool {
        while let Some(fetch) = self.ring.next_fetch() {
            let bytes = fetch.count * LINE_BYTES as u32;
            let purpose = Purpose::Lines { first: fetch.first };
            let read = Read { queue: self.id, life: self.life, purpose, bytes };
            if !reads.ask(DmaOwner::Transmit(Interface::Enso), fetch.address, read, shared) {
                return false;
            }
            shared.counters.payload_fetches += 1;
            self.ring.fetch_started(fetch);
        }
        true
    }

    /// Looks for the next frame, passing over runts.
    fn find_frame(&mut self, shared: &mut Shared) {
        while self.front_bytes.is_none() && self.ring.arrived() > 0 && !self.has_failed {
            let header = self.ring.word(0);
            let bytes = match pipe::frame_bytes(header).map(u32::from) {
                Some(bytes) if bytes <= self.longest_frame_bytes => bytes,
                found => {
                    let is_length = found.is_some() || header == 0;
                    let counters = &mut shared.counters;
                    let (count, cause) = match is_length {
                        true => (&mut counters.bad_lengths, Cause::BadLength),
                        false => (&mut counters.bad_headers, Cause::BadHeader),
                    };
                    *count += 1;
                    self.has_failed = true;
                    return shared.fail(self.id, cause);
                }
            };
            if self.ring.arrived() < pipe::lines_of(bytes) {
                return;
            }
            if bytes < MIN_FRAME_BYTES as u32 {
                shared.counters.runts += 1;
                self.use_up(bytes, shared);
            } else {
                self.front_bytes = Some(bytes);
                shared.frame_ready(self.id);
            }
        }
    }

    fn use_up(&mut self, bytes: u32, shared: &mut Shared) {
        self.ring.take(pipe::lines_of(bytes));
        self.report.note(false, shared.now);
    }

    /// `false`: a report is due, but the DMA port has no room.
    #[inline]
    fn report(&mut self, shared: &mut Shared) -> bool {
        self.report.report(self.ring.taken(), self.ring.is_used_up(), shared)
    }
}

impl FetchQueue for TxPipe {
    fn start(
        id: QueueId,
        life: u32,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let ring = LineRing::new(settings.tx_ring_address, settings.tx_ring_entries, AHEAD);
        Ok(TxPipe {
            id,
            life,
            ring: ring.ok_or(Cause::BadLength)?,
            longest_frame_bytes,
            front_bytes: None,
            scratch: vec![0; longest_frame_bytes as usize].into_boxed_slice(),
            report: HeadReport::new(id, settings)?,
            has_failed: false,
        })
    }

    fn life(&self) -> u32 {
        self.life
    }

    fn deadline(&self) -> Option<SimTime> {
        self.report.deadline()
    }

    fn post(&mut self, posted: u64) -> bool {
        self.ring.post(posted, self.ring.taken())
    }

    fn turn(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn {
        if self.has_failed {
            return Turn::Done;
        }
        let has_room = self.report(shared) && self.fetch_lines(reads, shared);
        if has_room { Turn::Done } else { Turn::Blocked }
    }

    fn answered(&mut self, read: Read, data: Result<&[u8], DmaError>, shared: &mut Shared) -> bool {
        let (Purpose::Lines { first }, Ok(data)) = (read.purpose, read.checked(data, shared)) else {
            // A pipe with a gap cannot go on.
            self.has_failed = true;
            shared.fail(self.id, Cause::DmaError);
            return false;
        };
        self.ring.fetched(first, data);
        self.find_frame(shared);
        true
    }

    /// A report that finds no room is made in a turn.
    fn time_passed(&mut self, shared: &mut Shared) -> bool {
        !self.report(shared)
    }

    #[inline]
    fn head(&mut self) -> Option<&[u8]> {
        let bytes = self.front_bytes? as usize;
        Some(self.ring.bytes(WORD_BYTES, bytes, &mut self.scratch))
    }

    #[inline]
    fn head_bytes(&self) -> Option<u32> {
        self.front_bytes
    }

    /// A turn follows: there is room to read on, and perhaps something to report.
    #[inline]
    fn pop(&mut self, shared: &mut Shared) -> bool {
        let Some(bytes) = self.front_bytes.take() else { return false };
        self.use_up(bytes, shared);
        self.find_frame(shared);
        true
    }
}
