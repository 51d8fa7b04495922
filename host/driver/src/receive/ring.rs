//! Receiving from a contiguous ring: the device pushes, the host polls one word and never reads the device.
//!
//! A frame starts on a line with a header word (length, valid), which the device writes after the frame's bytes; so a
//! non-zero word at the next start means that the frame is there. The host clears the first word of every line it
//! frees, because the next lap's frame may start at any of them, and tells the device an absolute count of freed
//! lines, coalesced. No descriptor, no completion, no blank, no escape: this is HotOS'25 §4.1, "whatever pushes data
//! directly from the NIC to the CPU", in the manner of Ensō.
//!
//! From: the device's DMA writes. To: the caller, in place ([`RxFrame`]). Not here: waiting.

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_spec::formats::rx_ring_header as f;
use beeline_spec::regs::queue as r;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::error::RxError;
use crate::port::half::{Epoch, QueueHalf, moderation};
use crate::receive::settings::{InterruptModeration, RxRingConfig};
use crate::receive::{FrameOwner, FrameSpan, Receive, RxFrame};

/// How many lines ahead of the next start are fetched while a frame is handed out: the latency of a line that another
/// core wrote is about four short frames' worth of work.
const PREFETCH_LINES: u64 = 8;

/// Value of the receive mode register.
const RX_MODE_RING: u64 = 1;

/// A contiguous receive ring in memory `M`, freed lines told through doorbell `D`.
#[derive(Debug)]
pub struct RxRing<M, D> {
    memory: M,
    freed: D,
    queue: u32,
    epoch: Epoch,
    interrupts: InterruptModeration,
    lines: u64,
    max_frame_bytes: u32,
    coalesce_lines: u64,
    /// Absolute count of lines consumed: where the next frame starts.
    next_start: u64,
    /// Count of freed lines that the device was told last.
    told: u64,
    frames: u64,
    broken: Option<RxError>,
}

impl<M: DmaMemory, D: Doorbell> RxRing<M, D> {
    /// A ring over all of `memory`'s first `lines` lines, which are zero, before the device was told of it.
    ///
    /// # Panics
    /// If `lines` is no power of two or `memory` is smaller: the port checks both before.
    pub(crate) fn new(memory: M, freed: D, queue: u32, config: RxRingConfig, max_frame_bytes: u32) -> Self {
        let lines = config.lines;
        assert!(
            lines.is_power_of_two() && memory.bytes() >= lines as usize * LINE_BYTES,
            "ring of {lines} lines"
        );
        let coalesce_lines =
            if config.freed_coalesce == 0 { lines / 4 } else { config.freed_coalesce }.max(1);
        RxRing {
            memory,
            freed,
            queue,
            epoch: Epoch::Counted(config.epoch),
            interrupts: config.interrupts,
            lines: u64::from(lines),
            max_frame_bytes,
            coalesce_lines: u64::from(coalesce_lines),
            next_start: 0,
            told: 0,
            frames: 0,
            broken: None,
        }
    }

    /// Frames received so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    #[inline]
    fn line_offset(&self, position: u64) -> usize {
        (position & (self.lines - 1)) as usize * LINE_BYTES
    }

    #[inline]
    fn tell(&mut self) {
        if self.told != self.next_start {
            self.told = self.next_start;
            self.freed.ring(self.next_start);
        }
    }

    /// The length in a header word, checked: valid, not longer than a frame, inside the ring.
    #[inline]
    fn length_of(&self, word: u64) -> Result<u32, RxError> {
        if word >> (8 * f::VALID_OFFSET) != 1 {
            return Err(RxError::BadHeader { line: self.next_start, frame: self.frames, word });
        }
        let bytes = word as u32;
        if bytes > self.max_frame_bytes {
            let max_bytes = self.max_frame_bytes;
            return Err(RxError::BadLength { frame: self.frames, bytes, max_bytes });
        }
        Ok(bytes)
    }

    #[cold]
    fn fail(&mut self, error: RxError) -> RxError {
        self.broken = Some(error);
        error
    }

    /// Where the next frame lies, if it is there; tells the device what was freed if it is not.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let at = self.line_offset(self.next_start);
        // Acquire, pairs with the device writing the header after the frame's bytes: they are seen from here on.
        let word = self.memory.load_acquire(at);
        if word == 0 {
            self.tell();
            return Ok(None);
        }
        match self.length_of(word) {
            Ok(bytes) => Ok(Some(FrameSpan { first_byte: at + f::BYTES, length_bytes: bytes as usize })),
            Err(error) => Err(self.fail(error)),
        }
    }
}

impl<M: DmaMemory, D: Doorbell> QueueHalf for RxRing<M, D> {
    fn queue(&self) -> u32 {
        self.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        set(r::RX_RING_ADDRESS, self.memory.address());
        set(r::RX_RING_ENTRIES, self.lines);
        set(r::RX_MODERATION, moderation(self.interrupts));
        set(r::RX_MODE, RX_MODE_RING);
    }

    fn control(&self) -> u64 {
        0
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn restarted(mut self) -> Self {
        for line in 0..self.lines {
            let at = self.line_offset(line);
            self.memory.store(at, 0);
        }
        RxRing { epoch: self.epoch.next(), next_start: 0, told: 0, broken: None, ..self }
    }
}

impl<M: DmaMemory, D: Doorbell> Receive for RxRing<M, D> {
    #[inline]
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        let Some(span) = self.look()? else { return Ok(None) };
        let ahead = self.line_offset(self.next_start + PREFETCH_LINES);
        self.memory.prefetch(ahead);
        Ok(Some(RxFrame::new(self, span)))
    }

    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        Ok(self.look()?.is_none())
    }
}

impl<M: DmaMemory, D: Doorbell> FrameOwner for RxRing<M, D> {
    #[inline]
    fn frame_word(&mut self, span: FrameSpan, index: usize) -> u64 {
        let ring_bytes = self.lines as usize * LINE_BYTES;
        self.memory.load((span.first_byte + index * WORD_BYTES) & (ring_bytes - 1))
    }

    #[inline]
    fn frame_copy_out(&mut self, span: FrameSpan, bytes: &mut [u8]) {
        let to_end = self.lines as usize * LINE_BYTES - span.first_byte;
        if bytes.len() <= to_end {
            self.memory.copy_out(span.first_byte, bytes);
        } else {
            let (front, back) = bytes.split_at_mut(to_end);
            self.memory.copy_out(span.first_byte, front);
            self.memory.copy_out(0, back);
        }
    }

    #[inline]
    fn frame_freed(&mut self, span: FrameSpan) {
        let end = self.next_start + (f::BYTES + span.length_bytes).div_ceil(LINE_BYTES) as u64;
        while self.next_start != end {
            let at = self.line_offset(self.next_start);
            // Relaxed is enough: the doorbell orders it before the device learns that the line is free.
            self.memory.store(at, 0);
            self.next_start += 1;
        }
        self.frames += 1;
        if self.next_start - self.told >= self.coalesce_lines {
            self.tell();
        }
    }
}
