//! Receiving from a pipe: frames back to back, and notifications that tell how far it is filled.
//!
//! The host polls one word of the notification ring; each notification tells of all frames since the last, which are
//! then read one behind the other without looking at anything else. What is freed is told to the device when the batch
//! is used up, and earlier when it was long; that is also what asks for the next notification. Nothing is cleared in the
//! pipe: only notifications say what is new.
//!
//! From: the device's DMA writes. To: the caller, in place ([`RxFrame`]). Sadok et al., OSDI'23 (Ensō).

use beeline_link_contract::{DmaMemory, Doorbell};
use beeline_spec::pipe::{self, Notification};
use beeline_spec::regs::field::rx_mode::mode;
use beeline_spec::regs::queue as r;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::config::RxEnsoConfig;
use crate::error::RxError;
use crate::half::{QueueHalf, moderation};
use crate::receive::{FrameOwner, Place, Receive, RxFrame};

/// How many lines ahead of the next start are fetched while a frame is handed out.
const PREFETCH_LINES: u64 = 8;

/// Where the parts of the memory lie, in bytes: the notifications, then the pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub pipe_at: usize,
    pub bytes: usize,
}

impl Layout {
    pub(crate) const fn new(config: &RxEnsoConfig) -> Self {
        let pipe_at = (config.notifications as usize * WORD_BYTES).next_multiple_of(LINE_BYTES);
        Layout { pipe_at, bytes: pipe_at + config.lines as usize * LINE_BYTES }
    }
}

/// A receive pipe in memory `M`, freed lines told through doorbell `D`.
#[derive(Debug)]
pub struct RxEnso<M, D> {
    memory: M,
    freed: D,
    queue: u32,
    config: RxEnsoConfig,
    layout: Layout,
    lines: u64,
    max_frame_bytes: u32,
    coalesce_lines: u64,
    /// Notifications taken.
    notified: u64,
    /// Absolute count of lines that the last notification told of.
    tail: u64,
    /// Absolute count of lines consumed: where the next frame starts.
    next_start: u64,
    /// What the device was last told.
    told: u64,
    frames: u64,
    broken: Option<RxError>,
}

impl<M: DmaMemory, D: Doorbell> RxEnso<M, D> {
    /// A pipe over `memory`, which is zero and has the layout's size.
    ///
    /// # Panics
    /// If the memory is too small for the layout: the port sizes it.
    pub(crate) fn new(memory: M, freed: D, queue: u32, config: RxEnsoConfig, max_frame_bytes: u32) -> Self {
        let layout = Layout::new(&config);
        let powers = config.lines.is_power_of_two() && config.notifications.is_power_of_two();
        assert!(powers && memory.bytes() >= layout.bytes, "memory for {layout:?}");
        let coalesce = if config.freed_coalesce == 0 { config.lines / 4 } else { config.freed_coalesce };
        RxEnso {
            memory,
            freed,
            queue,
            config,
            layout,
            lines: u64::from(config.lines),
            max_frame_bytes,
            coalesce_lines: u64::from(coalesce),
            notified: 0,
            tail: 0,
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
        self.layout.pipe_at + (position & (self.lines - 1)) as usize * LINE_BYTES
    }

    #[inline]
    fn tell(&mut self) {
        if self.told != self.next_start {
            self.told = self.next_start;
            self.freed.ring(self.next_start);
        }
    }

    /// Takes the next notification, if it is there.
    fn take_notification(&mut self) -> Result<bool, RxError> {
        let slot = (self.notified & u64::from(self.config.notifications - 1)) as usize;
        // Acquire, pairs with the device writing the notification after the frames that it tells of.
        let word = self.memory.load_acquire(slot * WORD_BYTES);
        let Some(found) = Notification::decode(word, self.notified, self.config.notifications) else {
            return Ok(false);
        };
        let more = u64::from(found.tail_lines.wrapping_sub(self.tail as u32));
        // Not more than the device was told is free, and something.
        let room = self.lines - (self.tail - self.told);
        if more == 0 || more > room || u32::from(found.queue) != self.queue {
            return Err(RxError::BadCompletion { frame: self.notified, word });
        }
        self.tail += more;
        self.notified += 1;
        Ok(true)
    }

    /// The frame at the next start, checked: not longer than a frame, inside what was told.
    #[inline]
    fn frame(&mut self) -> Result<Place, RxError> {
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
        Ok(Place { first_byte: at + WORD_BYTES, length_bytes: bytes as usize })
    }

    /// Where the next frame lies, if it is there; tells the device what was freed if it is not.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<Option<Place>, RxError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let found = match self.next_start == self.tail {
            true => self.take_notification(),
            false => Ok(true),
        };
        match found.and_then(|found| found.then(|| self.frame()).transpose()) {
            Ok(None) => {
                self.tell();
                Ok(None)
            }
            Ok(place) => Ok(place),
            Err(error) => {
                self.broken = Some(error);
                Err(error)
            }
        }
    }
}

impl<M: DmaMemory, D: Doorbell> QueueHalf for RxEnso<M, D> {
    fn queue(&self) -> u32 {
        self.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let base = self.memory.address();
        set(r::RX_MODE, mode::PIPE);
        set(r::RX_RING_ADDRESS, base + self.layout.pipe_at as u64);
        set(r::RX_RING_ENTRIES, self.lines);
        set(r::RX_COMPLETION_ADDRESS, base);
        set(r::RX_NOTIFY_ENTRIES, u64::from(self.config.notifications));
        set(r::RX_MODERATION, moderation(self.config.interrupts));
    }

    fn control(&self) -> u64 {
        0
    }

    fn restarted(mut self) -> Self {
        // What the last life's laps left must not look new.
        for slot in 0..self.config.notifications as usize {
            self.memory.store(slot * WORD_BYTES, 0);
        }
        RxEnso { notified: 0, tail: 0, next_start: 0, told: 0, broken: None, ..self }
    }
}

impl<M: DmaMemory, D: Doorbell> Receive for RxEnso<M, D> {
    #[inline]
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        let Some(place) = self.look()? else { return Ok(None) };
        let ahead = self.line_offset(self.next_start + PREFETCH_LINES);
        self.memory.prefetch(ahead);
        Ok(Some(RxFrame::new(self, place)))
    }

    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        Ok(self.look()?.is_none())
    }
}

impl<M: DmaMemory, D: Doorbell> FrameOwner for RxEnso<M, D> {
    #[inline]
    fn frame_word(&mut self, place: Place, index: usize) -> u64 {
        let pipe_bytes = self.lines as usize * LINE_BYTES;
        let within = (place.first_byte - self.layout.pipe_at + index * WORD_BYTES) & (pipe_bytes - 1);
        self.memory.load(self.layout.pipe_at + within)
    }

    #[inline]
    fn frame_copy_out(&mut self, place: Place, bytes: &mut [u8]) {
        let to_end = self.layout.bytes - place.first_byte;
        let (front, back) = bytes.split_at_mut(bytes.len().min(to_end));
        self.memory.copy_out(place.first_byte, front);
        if !back.is_empty() {
            self.memory.copy_out(self.layout.pipe_at, back);
        }
    }

    #[inline]
    fn frame_freed(&mut self, place: Place) {
        self.next_start += u64::from(pipe::lines_of(place.length_bytes as u32));
        self.frames += 1;
        if self.next_start - self.told >= self.coalesce_lines {
            self.tell();
        }
    }
}
