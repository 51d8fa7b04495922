//! Receiving into buffers that the host lends by descriptor: the rival of the contiguous ring.
//!
//! Descriptor `i` lends buffer `i`; the device fetches descriptors, writes a frame into the next buffer and then a
//! completion whose lap bit says that it is new. The host polls the completion ring, which lies in its own memory, and
//! lends a buffer again by counting it in the doorbell, coalesced. Descriptors never change after start, so freeing
//! writes no descriptor: built as if it were ours.
//!
//! From: the device's DMA writes. To: the caller, in place ([`RxFrame`]). Not here: waiting.

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_spec::formats::{rx_completion, rx_descriptor};
use beeline_spec::regs::queue as r;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::descriptor::settings::RxDescriptorConfig;
use crate::error::RxError;
use crate::port::half::{Epoch, QueueHalf, moderation};
use crate::receive::settings::InterruptModeration;
use crate::receive::{FrameOwner, FrameSpan, Receive, RxFrame};

/// How many buffers ahead of the next completion are fetched; as in `rx_ring.rs`.
const PREFETCH_BUFFERS: u64 = 4;

/// Value of the receive mode register.
const RX_MODE_DESCRIPTORS: u64 = 2;

/// Byte offsets of the parts of a queue's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub entries: u32,
    pub buffer_bytes: usize,
    pub completions_at: usize,
    pub buffers_at: usize,
    pub bytes: usize,
}

impl Layout {
    /// Descriptors first, completions and buffers on lines of their own.
    pub(crate) const fn new(entries: u32, buffer_bytes: usize) -> Self {
        let completions_at = (entries as usize * rx_descriptor::BYTES).next_multiple_of(LINE_BYTES);
        let buffers_at =
            (completions_at + entries as usize * rx_completion::BYTES).next_multiple_of(LINE_BYTES);
        let bytes = buffers_at + entries as usize * buffer_bytes;
        Layout { entries, buffer_bytes, completions_at, buffers_at, bytes }
    }
}

/// Receive descriptors, completions and buffers in memory `M`, freed buffers told through doorbell `D`.
#[derive(Debug)]
pub struct RxDescriptor<M, D> {
    memory: M,
    freed: D,
    queue: u32,
    epoch: Epoch,
    interrupts: InterruptModeration,
    layout: Layout,
    coalesce: u64,
    /// Absolute count of completions consumed, and so of buffers lent again.
    next: u64,
    /// Count of freed buffers that the device was told last.
    told: u64,
    broken: Option<RxError>,
}

impl<M: DmaMemory, D: Doorbell> RxDescriptor<M, D> {
    /// Writes the descriptors into `memory`, which is zero and has the layout's size.
    ///
    /// # Panics
    /// If the memory is too small for the layout: the port sizes it.
    pub(crate) fn new(
        mut memory: M,
        freed: D,
        queue: u32,
        layout: Layout,
        config: RxDescriptorConfig,
    ) -> Self {
        assert!(layout.entries.is_power_of_two() && memory.bytes() >= layout.bytes, "memory for {layout:?}");
        let base = memory.address() + layout.buffers_at as u64;
        for entry in 0..layout.entries as usize {
            let at = entry * rx_descriptor::BYTES;
            memory.store(at + rx_descriptor::ADDRESS_OFFSET, base + (entry * layout.buffer_bytes) as u64);
            memory.store(at + rx_descriptor::LENGTH_BYTES_OFFSET, layout.buffer_bytes as u64);
        }
        let coalesce =
            if config.freed_coalesce == 0 { layout.entries / 4 } else { config.freed_coalesce }.max(1);
        RxDescriptor {
            memory,
            freed,
            queue,
            epoch: Epoch::Counted(config.epoch),
            interrupts: config.interrupts,
            layout,
            coalesce: u64::from(coalesce),
            next: 0,
            told: 0,
            broken: None,
        }
    }

    /// Frames received so far.
    pub fn frames(&self) -> u64 {
        self.next
    }

    #[inline]
    fn slot(&self, count: u64) -> usize {
        (count & u64::from(self.layout.entries - 1)) as usize
    }

    #[inline]
    fn tell(&mut self) {
        if self.told != self.next {
            self.told = self.next;
            self.freed.ring(self.next);
        }
    }

    /// Whether a completion word is of the lap that `next` is in, and its length if so.
    #[inline]
    fn length_of(&self, word: u64) -> Result<Option<u32>, RxError> {
        let lap = self.next / u64::from(self.layout.entries);
        let expected = 1 - (lap & 1);
        let mark = word >> (8 * rx_completion::LAP_OFFSET);
        if mark > 1 {
            return Err(RxError::BadCompletion { frame: self.next, word });
        }
        if mark != expected {
            return Ok(None);
        }
        let (bytes, max_bytes) = (word as u32, self.layout.buffer_bytes as u32);
        if bytes > max_bytes {
            return Err(RxError::BadLength { frame: self.next, bytes, max_bytes });
        }
        Ok(Some(bytes))
    }

    #[cold]
    fn fail(&mut self, error: RxError) -> RxError {
        self.broken = Some(error);
        error
    }

    /// Where the next frame lies, if it is complete; tells the device what was freed if it is not.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let slot = self.slot(self.next);
        // Acquire, pairs with the device writing the completion after the frame's bytes: they are seen from here on.
        let word = self.memory.load_acquire(self.layout.completions_at + slot * rx_completion::BYTES);
        match self.length_of(word) {
            Ok(Some(bytes)) => {
                let first_byte = self.layout.buffers_at + slot * self.layout.buffer_bytes;
                Ok(Some(FrameSpan { first_byte, length_bytes: bytes as usize }))
            }
            Ok(None) => {
                self.tell();
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }
}

impl<M: DmaMemory, D: Doorbell> QueueHalf for RxDescriptor<M, D> {
    fn queue(&self) -> u32 {
        self.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let base = self.memory.address();
        set(r::RX_RING_ADDRESS, base);
        set(r::RX_RING_ENTRIES, u64::from(self.layout.entries));
        set(r::RX_COMPLETION_ADDRESS, base + self.layout.completions_at as u64);
        set(r::RX_MODERATION, moderation(self.interrupts));
        set(r::RX_MODE, RX_MODE_DESCRIPTORS);
    }

    fn control(&self) -> u64 {
        0
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn restarted(mut self) -> Self {
        for entry in 0..self.layout.entries as usize {
            self.memory.store(self.layout.completions_at + entry * rx_completion::BYTES, 0);
        }
        RxDescriptor { epoch: self.epoch.next(), next: 0, told: 0, broken: None, ..self }
    }
}

impl<M: DmaMemory, D: Doorbell> Receive for RxDescriptor<M, D> {
    #[inline]
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        let Some(span) = self.look()? else { return Ok(None) };
        let ahead = self.slot(self.next + PREFETCH_BUFFERS);
        self.memory.prefetch(self.layout.buffers_at + ahead * self.layout.buffer_bytes);
        Ok(Some(RxFrame::new(self, span)))
    }

    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        Ok(self.look()?.is_none())
    }
}

impl<M: DmaMemory, D: Doorbell> FrameOwner for RxDescriptor<M, D> {
    #[inline]
    fn frame_word(&mut self, span: FrameSpan, index: usize) -> u64 {
        self.memory.load(span.first_byte + index * WORD_BYTES)
    }

    #[inline]
    fn frame_copy_out(&mut self, span: FrameSpan, bytes: &mut [u8]) {
        self.memory.copy_out(span.first_byte, bytes);
    }

    #[inline]
    fn frame_freed(&mut self, _span: FrameSpan) {
        self.next += 1;
        if self.next - self.told >= self.coalesce {
            self.tell();
        }
    }
}
