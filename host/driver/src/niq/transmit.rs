//! Transmit by entries in the BAR: a short frame whole in one entry of fixed size, stored into the window.
//!
//! That is all: no ring in memory, no doorbell. A frame that does not fit its entry, or that holds the blank of a window
//! in memory, is copied aside and named by address, so that it costs one fetch. The device takes entries in order, each
//! whole before the next, so a fence follows each. A place may be used again once the head word that the device writes
//! back has passed it.
//!
//! From: the caller's frame. To: the device's entries. Flajslik & Rosenblum, ATC'13 (NIQ).

use beeline_contract_link::DmaMemory;
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::formats::ENTRY_HEAD_BYTES;
use beeline_spec::regs::field::entry as f;
use beeline_spec::regs::queue as r;
use beeline_spec::{Interface, LINE_BYTES, WORD_BYTES};
use beeline_window::{Sent, Taken};

use crate::error::TxError;
use crate::niq::settings::NiqConfig;
use crate::port::half::{Epoch, QueueHalf, TxIdentity, moderation, window_registers};
use crate::receive::settings::InterruptModeration;
use crate::transmit::entry::Entry;
use crate::transmit::frame_buffer::FrameBuffer;
use crate::transmit::settings::CreditCoalescing;
use crate::transmit::{Declared, Transmit, burst_of_singles, check_length};

/// The head word has a line of its own, before the buffer.
const HEAD_AT: usize = 0;
const BUFFER_AT: usize = LINE_BYTES;

pub(crate) const fn memory_bytes(buffer_bytes: usize) -> usize {
    BUFFER_AT + buffer_bytes
}

/// What the device bears: disorder inside one entry on an observed window, because a fence ends every entry, and none
/// over memory.
pub(crate) const fn tolerance(entry_lines: u32, is_blank: bool) -> Tolerance {
    if is_blank {
        Tolerance { span_lines: 0, split_lines: false }
    } else {
        Tolerance { span_lines: entry_lines, split_lines: true }
    }
}

/// A queue of entries: window `P`, head and buffer in memory `M`.
#[derive(Debug)]
pub struct TxNiq<P, M> {
    port: P,
    memory: M,
    identity: TxIdentity,
    config: NiqConfig,
    /// 0 for an observed window.
    blank: u64,
    max_frame_bytes: usize,
    entries: u64,
    entry_lines: u32,
    buffer: FrameBuffer,
    /// Absolute count of entries stored.
    tail: u64,
    /// Absolute count of entries known to be done.
    head: u64,
}

impl<P: StorePort, M: DmaMemory> TxNiq<P, M> {
    /// A queue whose window starts empty; `memory` is zero and has [`memory_bytes`].
    ///
    /// # Panics
    /// If the memory is too small, or the window holds less than two entries: the port checks both.
    pub(crate) fn new(
        (port, blank): (P, u64),
        memory: M,
        identity: TxIdentity,
        config: NiqConfig,
        max_frame_bytes: usize,
    ) -> Self {
        let entry_lines = 1 << config.entry_lines_log2;
        let entries = port.lines() / entry_lines;
        let has_memory = memory.bytes() >= memory_bytes(config.buffer_bytes);
        assert!(entries >= 2 && has_memory, "{entries} entries, {} bytes", memory.bytes());
        TxNiq {
            port,
            memory,
            identity,
            config,
            blank,
            max_frame_bytes,
            entries: entries.into(),
            entry_lines,
            buffer: FrameBuffer::new(BUFFER_AT, config.buffer_bytes, entries),
            tail: 0,
            head: 0,
        }
    }

    /// Absolute count of entries stored.
    pub fn stored(&self) -> u64 {
        self.tail
    }

    /// Loads the head word and takes back everything done.
    #[cold]
    #[inline(never)]
    fn reclaim(&mut self) -> Result<(), TxError> {
        // Acquire, pairs with the device writing the head after its last look at the entry and its last read of the
        // buffer: both may be overwritten from here on.
        let found = self.memory.load_acquire(HEAD_AT);
        if found < self.head || found > self.tail {
            return Err(TxError::WildCount { unit: "entries", found, low: self.head, high: self.tail });
        }
        if found > self.head {
            self.head = found;
            self.buffer.done(found);
        }
        Ok(())
    }

    /// The frame's entry; `None` while there is no room.
    #[inline]
    fn entry(&mut self, frame: &[u8]) -> Option<Entry> {
        if self.tail - self.head == self.entries {
            return None;
        }
        let (epoch, position) = (self.identity.config.epoch, self.tail);
        let room = self.entry_lines as usize * LINE_BYTES - ENTRY_HEAD_BYTES;
        if frame.len() <= room {
            let entry = Entry::whole(frame, epoch, position);
            if self.blank == 0 || entry.find_word(self.blank).is_none() {
                return Some(entry);
            }
        }
        let at = self.buffer.take(frame.len())?;
        self.memory.copy_in(at, frame);
        Some(Entry::at_address(frame.len(), self.memory.address() + at as u64, epoch, position))
    }

    /// Stores an entry whole, and has it leave before the next begins.
    #[inline]
    fn store(&mut self, entry: &Entry) {
        let line = (self.tail & (self.entries - 1)) as u32 * self.entry_lines;
        // The frame that an entry names must be there before the entry.
        self.port.fence();
        self.port.store_lines(line, entry.bytes(self.entry_lines));
        self.port.fence();
        self.port.wake_receiver();
        self.tail += 1;
        self.buffer.entry_ends(self.tail);
    }
}

impl<P: StorePort, M: DmaMemory> QueueHalf for TxNiq<P, M> {
    fn queue(&self) -> u32 {
        self.identity.queue
    }

    fn window_lines(&self) -> Option<u32> {
        Some(self.port.lines())
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let hole_timeout_ns = self.identity.config.hole_timeout_ns;
        // The head count stands for credits.
        let no_credits = CreditCoalescing { lines: 0, time_ns: 0 };
        window_registers(set, self.blank, 0, no_credits, hole_timeout_ns);
        set(r::TX_HEAD_ADDRESS, self.memory.address() + HEAD_AT as u64);
        let (frames, time_ns) = (self.config.completion_frames, self.config.completion_time_ns);
        set(r::TX_MODERATION, moderation(InterruptModeration { frames, time_ns }));
    }

    fn control(&self) -> u64 {
        self.identity.control()
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    fn entry_register(&self) -> Option<u64> {
        Some(u64::from(self.config.entry_lines_log2) << f::LINES_LOG2_LSB)
    }

    fn flushed(mut self) -> Self {
        self.port.fence();
        self
    }

    fn restarted(mut self) -> Self {
        self.memory.store_release(HEAD_AT, 0);
        self.buffer.restart();
        TxNiq { identity: self.identity.next_epoch(), tail: 0, head: 0, ..self }
    }
}

impl<P: StorePort, M: DmaMemory> Transmit for TxNiq<P, M> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        check_length(frame.len(), self.max_frame_bytes)?;
        let entry = match self.entry(frame) {
            Some(entry) => entry,
            None => {
                self.reclaim()?;
                let Some(entry) = self.entry(frame) else {
                    self.port.progress();
                    return Ok(Sent::Full);
                };
                entry
            }
        };
        if self.blank != 0
            && let Some(index) = entry.find_word(self.blank)
        {
            // Of an entry by address only the address can be the blank, and no link has such addresses.
            return Err(TxError::HoldsMark { at_byte: index * WORD_BYTES, word: self.blank });
        }
        self.store(&entry);
        Ok(Sent::Sent)
    }

    #[inline]
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        // Entries are fenced one by one and there is no doorbell: a burst is its frames.
        burst_of_singles(frames, |frame| self.try_send(frame))
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
        let tolerance = tolerance(self.entry_lines, self.blank != 0);
        Declared { interface: Interface::Niq, tolerance: Some(tolerance) }
    }
}
