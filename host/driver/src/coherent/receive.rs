//! Receiving by coherent lines: the header of an entry passes it to the host, and back.
//!
//! The host polls the header of the next entry; what it names is then there. A short frame is read in the entry itself,
//! a longer one in the buffer that the entry names. Dropping the frame clears the header's owner bit, which gives the
//! entry and its buffer back: that line is all the device looks at. No doorbell, no count, nothing else is written.
//!
//! From: the device's writes. To: the caller, in place ([`RxFrame`]). Schuh et al., ASPLOS'24 (CC-NIC).

use beeline_contract_link::DmaMemory;
use beeline_spec::coherent::{LineBuffer, LineHeader, LineKind, given_back, is_passed};
use beeline_spec::regs::field::rx_mode;
use beeline_spec::regs::queue as r;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::coherent::settings::RxCoherentConfig;
use crate::error::RxError;
use crate::port::half::{Epoch, QueueHalf, moderation};
use crate::receive::{FrameOwner, FrameSpan, Receive, RxFrame};

/// Where the parts of the memory lie, in bytes: the ring of entries, then the buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    entry_bytes: usize,
    buffers_at: usize,
    buffer_bytes: usize,
    pub bytes: usize,
}

impl Layout {
    pub(crate) const fn new(config: &RxCoherentConfig, max_frame_bytes: usize) -> Self {
        let entry_bytes = LINE_BYTES << config.entry_lines_log2;
        let buffers_at = config.entries as usize * entry_bytes;
        let buffer_bytes = max_frame_bytes.next_multiple_of(LINE_BYTES);
        let bytes = buffers_at + config.buffers as usize * buffer_bytes;
        Layout { entry_bytes, buffers_at, buffer_bytes, bytes }
    }
}

/// A ring of coherent lines in memory `M` that the device fills.
#[derive(Debug)]
pub struct RxCoherent<M> {
    memory: M,
    queue: u32,
    epoch: Epoch,
    config: RxCoherentConfig,
    layout: Layout,
    entries: u64,
    max_frame_bytes: u32,
    /// Absolute count of entries taken: which one is next.
    next: u64,
    /// Header of the entry that is being read, as it was checked.
    header: u64,
    broken: Option<RxError>,
}

impl<M: DmaMemory> RxCoherent<M> {
    /// A ring over `memory`, which is zero and has the layout's size.
    ///
    /// # Panics
    /// If the memory is too small for the layout: the port sizes it.
    pub(crate) fn new(memory: M, queue: u32, config: RxCoherentConfig, max_frame_bytes: u32) -> Self {
        let layout = Layout::new(&config, max_frame_bytes as usize);
        assert!(config.entries.is_power_of_two() && memory.bytes() >= layout.bytes, "memory for {layout:?}");
        let entries = config.entries.into();
        RxCoherent {
            memory,
            queue,
            epoch: Epoch::Counted(config.epoch),
            config,
            layout,
            entries,
            max_frame_bytes,
            next: 0,
            header: 0,
            broken: None,
        }
    }

    /// Frames received so far in this life of the queue.
    pub fn frames(&self) -> u64 {
        self.next
    }

    #[inline]
    fn entry_at(&self) -> usize {
        (self.next & (self.entries - 1)) as usize * self.layout.entry_bytes
    }

    /// Where the frame of an entry lies whose header is this word, checked: of this place, inside the entry or inside a
    /// buffer of ours.
    #[inline]
    fn span(&mut self, word: u64) -> Result<FrameSpan, RxError> {
        let (at, frame) = (self.entry_at(), self.next);
        let bad = RxError::BadHeader { line: at as u64 / LINE_BYTES as u64, frame, word };
        let header = LineHeader::decode(word, 0, frame, self.layout.entry_bytes).map_err(|_| bad)?;
        let (first_byte, bytes) = match header.kind {
            LineKind::Whole(bytes) => (at + WORD_BYTES, bytes.into()),
            LineKind::Buffers(1) => {
                let word = self.memory.load(at + WORD_BYTES);
                let LineBuffer { length_bytes, address } = LineBuffer::decode(word);
                let first_byte = self.buffer(address).ok_or(RxError::BadCompletion { frame, word })?;
                (first_byte, u32::from(length_bytes))
            }
            LineKind::Buffers(_) => return Err(bad),
        };
        if bytes == 0 || bytes > self.max_frame_bytes {
            return Err(RxError::BadLength { frame, bytes, max_bytes: self.max_frame_bytes });
        }
        Ok(FrameSpan { first_byte, length_bytes: bytes as usize })
    }

    /// Offset of the buffer that begins at a bus address; `None` when none does.
    #[inline]
    fn buffer(&self, address: u64) -> Option<usize> {
        let within = address.checked_sub(self.memory.address() + self.layout.buffers_at as u64)?;
        let within = usize::try_from(within).ok()?;
        let is_one = within.is_multiple_of(self.layout.buffer_bytes)
            && within / self.layout.buffer_bytes < self.config.buffers as usize;
        is_one.then_some(self.layout.buffers_at + within)
    }

    /// Returns the span of the next frame, or `None` if the device has not delivered one.
    #[inline]
    fn look(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let at = self.entry_at();
        // Acquire, pairs with the device writing the header after everything that it names.
        let word = self.memory.load_acquire(at);
        if !is_passed(word) {
            return Ok(None);
        }
        match self.span(word) {
            Ok(span) => {
                self.header = word;
                Ok(Some(span))
            }
            Err(error) => {
                self.broken = Some(error);
                Err(error)
            }
        }
    }
}

impl<M: DmaMemory> QueueHalf for RxCoherent<M> {
    fn queue(&self) -> u32 {
        self.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let base = self.memory.address();
        let lines_log2 = u64::from(self.config.entry_lines_log2);
        set(r::RX_RING_ADDRESS, base);
        set(r::RX_RING_ENTRIES, self.entries);
        set(r::RX_COMPLETION_ADDRESS, base + self.layout.buffers_at as u64);
        set(r::RX_NOTIFY_ENTRIES, u64::from(self.config.buffers));
        set(r::RX_MODERATION, moderation(self.config.interrupts));
        set(r::RX_MODE, 1 << rx_mode::LINES_LSB | lines_log2 << rx_mode::LINES_LOG2_LSB);
    }

    fn control(&self) -> u64 {
        0
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn restarted(mut self) -> Self {
        // What the last life's laps left must not look new.
        for entry in 0..self.entries as usize {
            self.memory.store(entry * self.layout.entry_bytes, 0);
        }
        RxCoherent { epoch: self.epoch.next(), next: 0, broken: None, ..self }
    }
}

impl<M: DmaMemory> Receive for RxCoherent<M> {
    #[inline]
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        let Some(span) = self.look()? else { return Ok(None) };
        Ok(Some(RxFrame::new(self, span)))
    }

    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        Ok(self.look()?.is_none())
    }
}

impl<M: DmaMemory> FrameOwner for RxCoherent<M> {
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
        let at = self.entry_at();
        // Release: the frame was read before the device may write there again.
        self.memory.store_watched(at, given_back(self.header));
        self.next += 1;
    }
}
