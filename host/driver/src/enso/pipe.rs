//! One receive pipe as the host sees it, and the ring of notifications that tells of it (Ensō).
//!
//! Frames lie back to back, each behind a header that names its length; how far the pipe is filled is told by
//! notifications alone, and nothing is cleared. Both parts are used by [`crate::RxEnso`], where they lie in one memory,
//! and by [`crate::EnsoReceiver`], where one ring tells of many pipes.

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_spec::pipe::{self, Notification};
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::error::RxError;
use crate::receive::{FrameOwner, FrameSpan, RxFrame};

/// How many lines ahead of the next start are fetched while a frame is handed out.
const PREFETCH_LINES: u64 = 8;

/// The host's place in a ring of notifications, which begins at the first byte of its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotifyRing {
    pub(crate) entries: u32,
    taken: u64,
}

impl NotifyRing {
    /// A ring of which nothing was taken.
    pub(crate) fn new(entries: u32) -> Self {
        NotifyRing { entries, taken: 0 }
    }

    /// The next notification, and its word, if it is there.
    #[inline]
    pub(crate) fn take(&mut self, memory: &mut impl DmaMemory) -> Option<(Notification, u64)> {
        let slot = (self.taken & u64::from(self.entries - 1)) as usize;
        // Acquire, pairs with the device writing the notification after the frames that it tells of.
        let word = memory.load_acquire(slot * WORD_BYTES);
        let found = Notification::decode(word, self.taken, self.entries)?;
        self.taken += 1;
        Some((found, word))
    }

    /// The error for what was taken last.
    pub(crate) fn bad(&self, word: u64) -> RxError {
        RxError::BadCompletion { frame: self.taken - 1, word }
    }

    /// The same ring, empty: what the last life's laps left must not look new.
    pub(crate) fn restarted(self, memory: &mut impl DmaMemory) -> Self {
        (0..self.entries as usize).for_each(|slot| memory.store(slot * WORD_BYTES, 0));
        NotifyRing::new(self.entries)
    }
}

/// A pipe in memory `M`, freed lines told through doorbell `D`. Counts of lines are absolute:
/// `told <= next_start <= tail <= told + lines`.
#[derive(Debug)]
pub(crate) struct RxPipe<M, D> {
    pub(crate) memory: M,
    freed: D,
    /// Where the pipe begins in the memory, in bytes.
    pub(crate) at: usize,
    pub(crate) lines: u64,
    max_frame_bytes: u32,
    coalesce_lines: u64,
    /// End of the lines that the last notification named.
    tail: u64,
    /// Lines consumed: where the next frame starts.
    next_start: u64,
    /// Count of freed lines that the device was told last.
    told: u64,
    pub(crate) frames: u64,
}

impl<M: DmaMemory, D: Doorbell> RxPipe<M, D> {
    /// An empty pipe of `lines` at byte `at` of its memory. Freed lines are told after `freed_coalesce`, 0: a quarter.
    ///
    /// # Panics
    /// If the memory is too small: the port sizes it.
    pub(crate) fn new(
        (memory, freed): (M, D),
        at: usize,
        (lines, freed_coalesce): (u32, u32),
        max_frame_bytes: u32,
    ) -> Self {
        let holds = memory.bytes() >= at + lines as usize * LINE_BYTES;
        assert!(lines.is_power_of_two() && holds, "{lines} lines at byte {at} of {}", memory.bytes());
        let coalesce = if freed_coalesce == 0 { lines / 4 } else { freed_coalesce };
        RxPipe {
            memory,
            freed,
            at,
            lines: lines.into(),
            max_frame_bytes,
            coalesce_lines: coalesce.into(),
            tail: 0,
            next_start: 0,
            told: 0,
            frames: 0,
        }
    }

    /// Bus address of the first line.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address() + self.at as u64
    }

    #[inline]
    fn line_offset(&self, position: u64) -> usize {
        self.at + (position & (self.lines - 1)) as usize * LINE_BYTES
    }

    /// Tells the device what was freed, which also asks for the next notification.
    #[inline]
    pub(crate) fn tell(&mut self) {
        if self.told != self.next_start {
            self.told = self.next_start;
            self.freed.ring(self.next_start);
        }
    }

    /// A notification says that the pipe is filled so far, modulo 2^32; `false` when that cannot be: nothing new, or
    /// more than the device was told is free.
    #[inline]
    #[must_use]
    pub(crate) fn fill_to(&mut self, tail_lines: u32) -> bool {
        let more = u64::from(tail_lines.wrapping_sub(self.tail as u32));
        let can_be = more > 0 && more <= self.lines - (self.tail - self.told);
        if can_be {
            self.tail += more;
        }
        can_be
    }

    /// Where the next frame lies, if one was told of; checked: not longer than a frame, inside what was told.
    #[inline]
    pub(crate) fn frame(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if self.next_start == self.tail {
            return Ok(None);
        }
        let at = self.line_offset(self.next_start);
        let word = self.memory.load(at);
        let Some(bytes) = pipe::frame_bytes(word).map(u32::from) else {
            return Err(RxError::BadHeader { line: self.next_start, frame: self.frames, word });
        };
        let told_bytes = (self.tail - self.next_start) * LINE_BYTES as u64 - WORD_BYTES as u64;
        let max_bytes = self.max_frame_bytes.min(told_bytes.min(u32::MAX.into()) as u32);
        if bytes > max_bytes {
            return Err(RxError::BadLength { frame: self.frames, bytes, max_bytes });
        }
        Ok(Some(FrameSpan { first_byte: at + WORD_BYTES, length_bytes: bytes as usize }))
    }

    /// Hands out a frame that [`RxPipe::frame`] found.
    #[inline]
    pub(crate) fn hand_out(&mut self, span: FrameSpan) -> RxFrame<'_> {
        let ahead = self.line_offset(self.next_start + PREFETCH_LINES);
        self.memory.prefetch(ahead);
        RxFrame::new(self, span)
    }

    /// The same pipe, empty.
    pub(crate) fn restarted(self) -> Self {
        RxPipe { tail: 0, next_start: 0, told: 0, ..self }
    }
}

impl<M: DmaMemory, D: Doorbell> FrameOwner for RxPipe<M, D> {
    #[inline]
    fn frame_word(&mut self, span: FrameSpan, index: usize) -> u64 {
        let pipe_bytes = self.lines as usize * LINE_BYTES;
        let within = (span.first_byte - self.at + index * WORD_BYTES) & (pipe_bytes - 1);
        self.memory.load(self.at + within)
    }

    #[inline]
    fn frame_copy_out(&mut self, span: FrameSpan, bytes: &mut [u8]) {
        let to_end = self.at + self.lines as usize * LINE_BYTES - span.first_byte;
        let (front, back) = bytes.split_at_mut(bytes.len().min(to_end));
        self.memory.copy_out(span.first_byte, front);
        if !back.is_empty() {
            self.memory.copy_out(self.at, back);
        }
    }

    #[inline]
    fn frame_freed(&mut self, span: FrameSpan) {
        self.next_start += u64::from(pipe::lines_of(span.length_bytes as u32));
        self.frames += 1;
        if self.next_start - self.told >= self.coalesce_lines {
            self.tell();
        }
    }
}
