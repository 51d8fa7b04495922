//! One kPIO+WC transmit queue: lines in arrival order, cut into packets by the EOP filter.
//!
//! The queue takes a line in the order in which it arrives and does not look at where in the window it was written:
//! that is the paper's design, and its limit. The driver must have "full control of the order among WC buffers";
//! where the lines of a packet arrive in another order, the frame goes out corrupted, and nothing here notices. A
//! line that arrives in pieces counts as arrived when it is whole ([`super::line_merge`]).
//!
//! The paper leaves open how a core is kept from over-running the queue ("a larger buffer would be needed"). Ours:
//! the queue holds as many lines as the window has, and tells the host by credits, as `mmio` does, how many have left
//! it. Also ours: a packet that the filter finds damaged, empty, too short or too long is dropped and counted.
//!
//! From: writes to the window ([`super::KpioEngine`]). To: whole frames for the egress arbiter. Not here: pushing the
//! credits ([`crate::mmio::credit_return`]).
//! Larsen & Lee, NAS'15, §III.A, figures 2 and 3.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, Enables, QueueId, SimTime};
use beeline_spec::LINE_BYTES;
use beeline_spec::formats::MIN_FRAME_BYTES;

use super::eop_filter::{self, Outcome};
use super::line_merge::{LineMerge, Merged};
use crate::engine::{Cause, QueueSettings, Shared};
use crate::fetch::FrameRing;

/// A frame that is complete: its lines, the one of signatures included, and its bytes.
#[derive(Clone, Copy, Debug)]
struct Frame {
    start_line: u32,
    lines: u32,
    bytes: u32,
}

/// A started queue.
#[derive(Debug)]
pub(super) struct KpioQueue {
    id: QueueId,
    eop: u64,
    has_backpressure: bool,
    longest_frame_bytes: u32,
    /// Lines a packet may have before it must have ended.
    longest_packet_lines: u32,
    merge: LineMerge,
    lines: FrameRing,
    frames: VecDeque<Frame>,
    /// Where the packet under way begins, and how many of its lines are stored.
    open_start: u32,
    open_lines: u32,
    /// The packet under way is damaged or too long: its lines are let go until it ends.
    is_dropping: bool,
    /// Lines freed since the queue was enabled: the credit.
    freed_lines: u64,
    hole_timeout: SimTime,
    /// Since when a line has been missing bytes although a later one came.
    hole_since: Option<SimTime>,
    /// The last write came in pieces, so that `hole_since` may have changed.
    has_looked_for_holes: bool,
}

impl KpioQueue {
    /// An empty queue.
    pub(super) fn new(id: QueueId, settings: &QueueSettings, longest_frame_bytes: u32) -> Self {
        let window_lines = settings.window_lines.max(1);
        // The signatures of a packet that fills its last line take a line of their own.
        let longest_packet_lines = (longest_frame_bytes / LINE_BYTES as u32 + 1).min(window_lines);
        KpioQueue {
            id,
            eop: settings.kpio_eop,
            has_backpressure: settings.backpressure,
            longest_frame_bytes,
            longest_packet_lines,
            merge: LineMerge::new(),
            lines: FrameRing::new(window_lines, longest_packet_lines),
            frames: VecDeque::with_capacity(window_lines as usize),
            open_start: 0,
            open_lines: 0,
            is_dropping: false,
            freed_lines: 0,
            hole_timeout: SimTime::from_ns(settings.hole_timeout_ns),
            hole_since: None,
            has_looked_for_holes: false,
        }
    }

    /// Whether the last write may have begun or ended a hole.
    #[inline]
    pub(super) fn has_looked_for_holes(&self) -> bool {
        self.has_looked_for_holes
    }

    /// Lines that have left the queue since it was enabled.
    #[inline]
    pub(super) fn freed_lines(&self) -> u64 {
        self.freed_lines
    }

    /// A write to the window arrived. It is refused only while whole frames wait for the wire and take all the room.
    pub(super) fn write_arrived(
        &mut self,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> Accept {
        let first_line = (offset_bytes / LINE_BYTES as u64) as u32;
        let at = offset_bytes as usize % LINE_BYTES;
        let lines = (at + data.len()).div_ceil(LINE_BYTES) as u32;
        if lines > self.lines.free_lines() {
            if self.has_backpressure && !self.frames.is_empty() {
                shared.counters.refused_writes += 1;
                return Accept::Refused;
            }
            shared.counters.overruns += 1;
            shared.fail(self.id, Cause::Overrun);
            return Accept::Taken;
        }
        let is_whole =
            at == 0 && self.merge.len() == 0 && matches!(enables, Enables::All | Enables::Mask(u64::MAX));
        match <&[u8; LINE_BYTES]>::try_from(data) {
            Ok(line) if is_whole => {
                self.has_looked_for_holes = false;
                self.take_line(line, shared);
            }
            _ => {
                self.has_looked_for_holes = true;
                self.take_pieces(first_line, at, data, enables, shared);
            }
        }
        Accept::Taken
    }

    #[cold]
    fn take_pieces(
        &mut self,
        first_line: u32,
        at: usize,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) {
        let (mut line, mut at, mut done) = (first_line, at, 0);
        while done < data.len() {
            let bytes = (LINE_BYTES - at).min(data.len() - done);
            let enabled = match enables {
                Enables::All => low_bits(bytes),
                Enables::Mask(mask) => mask >> done & low_bits(bytes),
            };
            let merged = match enabled {
                0 => Merged::Waits,
                _ => self.merge.merge(line, at, &data[done..done + bytes], enabled << at),
            };
            match merged {
                Merged::Whole(bytes) => {
                    shared.counters.split_lines += u64::from(enabled != u64::MAX);
                    self.take_line(&bytes, shared);
                }
                Merged::Waits => {}
                Merged::NoRoom => {
                    shared.counters.span_exceeded += 1;
                    return shared.fail(self.id, Cause::SpanExceeded);
                }
                Merged::Clobber => {
                    shared.counters.clobbers += 1;
                    return shared.fail(self.id, Cause::Clobber);
                }
            }
            self.note_hole(shared);
            (line, at, done) = (line + 1, 0, done + bytes);
        }
    }

    fn note_hole(&mut self, shared: &mut Shared) {
        if !self.merge.has_hole() {
            self.hole_since = None;
        } else if self.hole_since.is_none() {
            shared.counters.holes += 1;
            self.hole_since = Some(shared.now);
        }
    }

    /// When the hole that stands will have stood too long.
    #[inline]
    pub(super) fn hole_deadline(&self) -> Option<SimTime> {
        let since = self.hole_since.filter(|_| self.hole_timeout.0 > 0)?;
        Some(SimTime(since.0.saturating_add(self.hole_timeout.0)))
    }

    /// The queue failed: lets what is incomplete go. Complete frames stay, and go out.
    pub(super) fn quarantine(&mut self) {
        self.lines.take_back(self.open_lines);
        self.open_lines = 0;
        self.merge = LineMerge::new();
        self.hole_since = None;
    }

    /// The next line of the FIFO is whole: stores it and does what the filter says.
    #[inline]
    fn take_line(&mut self, line: &[u8; LINE_BYTES], shared: &mut Shared) {
        shared.counters.kpio_lines += 1;
        let outcome = eop_filter::judge(line, self.eop);
        if self.is_dropping {
            self.freed_lines += 1;
            self.is_dropping = matches!(outcome, Outcome::GoesOn | Outcome::DamagedGoesOn);
            return;
        }
        let start = self.lines.reserve(1).expect("room was checked when the write arrived");
        if self.open_lines == 0 {
            self.open_start = start;
        }
        *self.lines.line_mut(self.open_start, self.open_lines) = *line;
        self.open_lines += 1;
        match outcome {
            Outcome::GoesOn if self.open_lines < self.longest_packet_lines => {}
            Outcome::GoesOn => {
                shared.counters.bad_lengths += 1;
                self.drop_packet(true);
            }
            Outcome::Ends(own_bytes) => self.end_packet(own_bytes, shared),
            Outcome::DamagedGoesOn | Outcome::DamagedEnds => {
                shared.counters.kpio_malformed += 1;
                self.drop_packet(outcome == Outcome::DamagedGoesOn);
            }
        }
    }

    fn end_packet(&mut self, own_bytes: usize, shared: &mut Shared) {
        let bytes = (self.open_lines - 1) * LINE_BYTES as u32 + own_bytes as u32;
        let cause = match bytes {
            0 => &mut shared.counters.kpio_malformed,
            _ if bytes < MIN_FRAME_BYTES as u32 => &mut shared.counters.runts,
            _ if bytes > self.longest_frame_bytes => &mut shared.counters.bad_lengths,
            _ => {
                shared.counters.kpio_frames += 1;
                self.frames.push_back(Frame { start_line: self.open_start, lines: self.open_lines, bytes });
                self.open_lines = 0;
                return shared.frame_ready(self.id);
            }
        };
        *cause += 1;
        self.drop_packet(false);
    }

    #[cold]
    fn drop_packet(&mut self, goes_on: bool) {
        self.lines.take_back(self.open_lines);
        self.freed_lines += u64::from(self.open_lines);
        self.open_lines = 0;
        self.is_dropping = goes_on;
    }

    /// The oldest complete frame.
    #[inline]
    pub(super) fn head(&self) -> Option<&[u8]> {
        let frame = self.frames.front()?;
        Some(self.lines.frame(frame.start_line, 0..frame.bytes as usize))
    }

    /// Returns the bytes of the first frame, once they are known.
    #[inline]
    pub(super) fn head_bytes(&self) -> Option<u32> {
        self.frames.front().map(|frame| frame.bytes)
    }

    /// The oldest complete frame is on the wire: frees its lines.
    #[inline]
    pub(super) fn pop(&mut self, shared: &mut Shared) {
        let Some(frame) = self.frames.pop_front() else { return };
        self.lines.release(frame.lines);
        self.freed_lines += u64::from(frame.lines);
        if !self.frames.is_empty() {
            shared.frame_ready(self.id);
        }
    }
}

/// The lowest `count` (at most 64) bits.
const fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
