//! Transmit by pushed entries: a ring of entries in host memory, single ones stored into the window as well.
//!
//! A frame sent alone is written into the ring and then pushed: the device takes it from the window without a read. A
//! burst, or a frame that cannot be pushed, is announced by one doorbell, and its entries are fetched. Frames that an
//! entry cannot hold are copied aside and named by address. The ring is the truth: whatever the device makes of a push,
//! the frame leaves once and in order.
//!
//! On PCIe pushes alternate between two halves, and a fence after each keeps the next one from overtaking it, as the
//! authors' driver has it. Over memory, where a line is looked at once and in order, a push goes to the next half of the
//! window and fills it, and credits tell when a half may be used again.
//!
//! From: the caller's frame. To: the device's push window and fetches. HotOS'25 §2.4 (BlueFlame, inlining).

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::entry::{PUSH_HALF_LINES, RING_MAX_FRAME_BYTES, lines_of};
use beeline_spec::regs::field::tx_push;
use beeline_spec::regs::queue as r;
use beeline_spec::{Interface, LINE_BYTES};
use beeline_window::{Sent, Taken};

use crate::error::TxError;
use crate::inline::settings::InlineConfig;
use crate::port::half::{Epoch, QueueHalf, TxIdentity, moderation, window_registers};
use crate::receive::settings::InterruptModeration;
use crate::transmit::entry::Entry;
use crate::transmit::frame_buffer::FrameBuffer;
use crate::transmit::{Declared, Transmit, check_length};

/// What the device bears of disorder on an observed window: a fence ends every push, so it stays inside one half.
pub(crate) const TOLERANCE: Tolerance = Tolerance { span_lines: PUSH_HALF_LINES, split_lines: true };
/// Over memory lines must come whole and in order.
pub(crate) const TOLERANCE_IN_MEMORY: Tolerance = Tolerance { span_lines: 0, split_lines: false };

/// Where the parts of the memory lie, in bytes: head and credit words on lines of their own, the ring, the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub buffer_at: usize,
    pub bytes: usize,
}

impl Layout {
    pub(crate) const HEAD_AT: usize = 0;
    pub(crate) const CREDIT_AT: usize = LINE_BYTES;
    pub(crate) const RING_AT: usize = 2 * LINE_BYTES;

    pub(crate) const fn new(config: &InlineConfig) -> Self {
        let buffer_at = Self::RING_AT + config.ring_lines as usize * LINE_BYTES;
        Layout { buffer_at, bytes: buffer_at + config.buffer_bytes }
    }
}

/// A queue of pushed entries: window `P`, ring in memory `M`, doorbell `D`.
#[derive(Debug)]
pub struct TxInline<P, M, D> {
    port: P,
    memory: M,
    doorbell: D,
    identity: TxIdentity,
    config: InlineConfig,
    /// 0 for an observed window.
    blank: u64,
    max_frame_bytes: usize,
    ring_lines: u64,
    buffer: FrameBuffer,
    /// Absolute count of ring lines written.
    tail: u64,
    /// Absolute count of ring lines known to be done.
    head: u64,
    /// Pushes so far.
    pushes: u64,
    /// Lines of a blank window known to be free again.
    freed_lines: u64,
}

impl<P: StorePort, M: DmaMemory, D: Doorbell> TxInline<P, M, D> {
    /// A queue over `memory`, which is zero and has the layout's size.
    ///
    /// # Panics
    /// If the memory is too small for the layout: the port sizes it.
    pub(crate) fn new(
        (port, blank): (P, u64),
        memory: M,
        doorbell: D,
        identity: TxIdentity,
        config: InlineConfig,
        max_frame_bytes: usize,
    ) -> Self {
        let layout = Layout::new(&config);
        assert!(
            config.ring_lines.is_power_of_two() && memory.bytes() >= layout.bytes,
            "memory for {layout:?}"
        );
        TxInline {
            port,
            memory,
            doorbell,
            identity,
            config,
            blank,
            max_frame_bytes,
            ring_lines: config.ring_lines.into(),
            buffer: FrameBuffer::new(layout.buffer_at, config.buffer_bytes, config.ring_lines),
            tail: 0,
            head: 0,
            pushes: 0,
            freed_lines: 0,
        }
    }

    /// Absolute count of ring lines written.
    pub fn posted(&self) -> u64 {
        self.tail
    }

    /// Entries pushed so far.
    pub fn pushes(&self) -> u64 {
        self.pushes
    }

    /// Loads the head word and takes back everything done.
    #[cold]
    #[inline(never)]
    fn reclaim(&mut self) -> Result<(), TxError> {
        // Acquire, pairs with the device writing the head after its last read: lines may be overwritten from here on.
        let found = self.memory.load_acquire(Layout::HEAD_AT);
        if found < self.head || found > self.tail {
            return Err(TxError::WildCount { unit: "lines", found, low: self.head, high: self.tail });
        }
        if found > self.head {
            self.head = found;
            self.buffer.done(found);
        }
        Ok(())
    }

    /// Writes the frame's entry into the ring; `None` while there is no room.
    #[inline]
    fn place(&mut self, frame: &[u8]) -> Result<Option<Entry>, TxError> {
        check_length(frame.len(), self.max_frame_bytes)?;
        if let Some(entry) = self.try_place(frame) {
            return Ok(Some(entry));
        }
        self.reclaim()?;
        Ok(self.try_place(frame))
    }

    #[inline]
    fn try_place(&mut self, frame: &[u8]) -> Option<Entry> {
        let (epoch, position) = (self.identity.config.epoch, self.tail);
        let is_whole = frame.len() <= RING_MAX_FRAME_BYTES;
        let lines = if is_whole { u64::from(lines_of(frame.len() as u16)) } else { 1 };
        if self.tail + lines - self.head > self.ring_lines {
            return None;
        }
        let entry = if is_whole {
            Entry::whole(frame, epoch, position)
        } else {
            let at = self.buffer.take(frame.len())?;
            self.memory.copy_in(at, frame);
            Entry::at_address(frame.len(), self.memory.address() + at as u64, epoch, position)
        };
        let slot = (position & (self.ring_lines - 1)) as usize;
        let bytes = entry.bytes(entry.lines());
        let to_end = (self.ring_lines as usize - slot) * LINE_BYTES;
        let (front, back) = bytes.split_at(bytes.len().min(to_end));
        self.memory.copy_in(Layout::RING_AT + slot * LINE_BYTES, front);
        if !back.is_empty() {
            self.memory.copy_in(Layout::RING_AT, back);
        }
        self.tail += lines;
        self.buffer.entry_ends(self.tail);
        Some(entry)
    }

    /// Pushes an entry that lies in the ring; `false` when it cannot be. A half of the window is free.
    #[inline]
    fn push(&mut self, entry: &Entry) -> bool {
        let is_carried = self.blank == 0 || entry.find_word(self.blank).is_none();
        if entry.lines() > PUSH_HALF_LINES || !is_carried {
            return false;
        }
        let (halves, lines) = match self.blank {
            0 => (2, entry.lines()),
            _ => (u64::from(self.port.lines() / PUSH_HALF_LINES), PUSH_HALF_LINES),
        };
        let line = (self.pushes % halves) as u32 * PUSH_HALF_LINES;
        // The entry must be in the ring before the push, which may announce it and nothing more; and the push must have
        // left before the next one to this half begins.
        self.port.fence();
        self.port.store_lines(line, entry.bytes(lines));
        self.port.fence();
        self.port.wake_receiver();
        self.pushes += 1;
        true
    }

    /// Whether the next half of the window may be stored into. On an observed window the fence sees to it.
    #[inline]
    fn has_free_half(&mut self) -> Result<bool, TxError> {
        if self.blank == 0 {
            return Ok(true);
        }
        let half = u64::from(PUSH_HALF_LINES);
        let (stored, lines) = (self.pushes * half, u64::from(self.port.lines()));
        if stored + half - self.freed_lines > lines {
            // Acquire, pairs with the device's ordered writes: it blanks a line before it credits it.
            let found = self.memory.load_acquire(Layout::CREDIT_AT);
            if found < self.freed_lines || found > stored {
                let (low, high) = (self.freed_lines, stored);
                return Err(TxError::WildCount { unit: "lines", found, low, high });
            }
            self.freed_lines = found;
        }
        Ok(stored + half - self.freed_lines <= lines)
    }
}

impl<P: StorePort, M: DmaMemory, D: Doorbell> QueueHalf for TxInline<P, M, D> {
    fn queue(&self) -> u32 {
        self.identity.queue
    }

    fn window_lines(&self) -> Option<u32> {
        Some(self.port.lines())
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let base = self.memory.address();
        let hole_timeout_ns = self.identity.config.hole_timeout_ns;
        let credit_address = if self.blank == 0 { 0 } else { base + Layout::CREDIT_AT as u64 };
        window_registers(set, self.blank, credit_address, self.config.credits, hole_timeout_ns);
        set(r::TX_RING_ADDRESS, base + Layout::RING_AT as u64);
        set(r::TX_RING_ENTRIES, self.ring_lines);
        set(r::TX_HEAD_ADDRESS, base + Layout::HEAD_AT as u64);
        let (frames, time_ns) = (self.config.completion_frames, self.config.completion_time_ns);
        set(r::TX_MODERATION, moderation(InterruptModeration { frames, time_ns }));
        set(r::TX_PUSH, u64::from(self.config.self_test) << tx_push::SELF_TEST_LSB);
    }

    fn control(&self) -> u64 {
        self.identity.control()
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    fn flushed(mut self) -> Self {
        self.port.fence();
        self
    }

    fn restarted(mut self) -> Self {
        self.memory.store_release(Layout::HEAD_AT, 0);
        self.memory.store_release(Layout::CREDIT_AT, 0);
        self.buffer.restart();
        let identity = self.identity.next_epoch();
        TxInline { identity, tail: 0, head: 0, pushes: 0, freed_lines: 0, ..self }
    }
}

impl<P: StorePort, M: DmaMemory, D: Doorbell> Transmit for TxInline<P, M, D> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        let has_half = self.has_free_half()?;
        let Some(entry) = self.place(frame)? else {
            self.port.progress();
            return Ok(Sent::Full);
        };
        if !has_half || !self.push(&entry) {
            self.doorbell.ring(self.tail);
        }
        Ok(Sent::Sent)
    }

    #[inline]
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        if let [only] = frames {
            return Ok(Taken(usize::from(self.try_send(only)? == Sent::Sent)));
        }
        let mut taken = 0;
        for frame in frames {
            match self.place(frame) {
                Ok(Some(_)) => taken += 1,
                Ok(None) => break,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        if taken > 0 {
            self.doorbell.ring(self.tail);
        }
        Ok(Taken(taken))
    }

    fn progress(&mut self) -> Result<(), TxError> {
        self.port.progress();
        self.reclaim()
    }

    fn max_frame_bytes(&self) -> usize {
        self.max_frame_bytes
    }

    fn is_idle(&self) -> bool {
        self.head == self.tail
    }

    fn declared(&self) -> Declared {
        let tolerance = if self.blank == 0 { TOLERANCE } else { TOLERANCE_IN_MEMORY };
        Declared { interface: Interface::Inline, tolerance: Some(tolerance) }
    }
}
