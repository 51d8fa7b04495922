//! Transmit by a pipe: frames back to back in host memory, one tail write a burst, nothing else.
//!
//! A frame is copied behind the one before it, its length in front, and the doorbell tells how far the pipe is filled:
//! no descriptor is written or fetched. The head word that the device writes back is looked at only when the pipe looks
//! full. Two stages, as HotOS'25 figure 1 (b) draws it.
//!
//! From: the caller's frame. To: the device's reads of the pipe. Sadok et al., OSDI'23 (Ensō).

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_spec::regs::queue as r;
use beeline_spec::{Interface, LINE_BYTES, WORD_BYTES, pipe};
use beeline_window::{Sent, Taken};

use crate::enso::settings::EnsoConfig;
use crate::error::TxError;
use crate::port::half::{Epoch, QueueHalf, TxIdentity, moderation};
use crate::receive::settings::InterruptModeration;
use crate::transmit::{Declared, Transmit, check_length};

/// The head word has a line of its own, before the pipe.
const HEAD_AT: usize = 0;
const PIPE_AT: usize = LINE_BYTES;

/// Bytes of memory for a pipe of so many lines.
pub(crate) const fn memory_bytes(lines: u32) -> usize {
    PIPE_AT + lines as usize * LINE_BYTES
}

/// A transmit pipe in memory `M` with doorbell `D`.
#[derive(Debug)]
pub struct TxEnso<M, D> {
    memory: M,
    doorbell: D,
    identity: TxIdentity,
    config: EnsoConfig,
    lines: u64,
    max_frame_bytes: usize,
    /// Absolute count of lines written.
    tail: u64,
    /// Absolute count of lines known to be free again.
    head: u64,
}

impl<M: DmaMemory, D: Doorbell> TxEnso<M, D> {
    /// A pipe over `memory`, which is zero and has [`memory_bytes`].
    ///
    /// # Panics
    /// If the memory is too small: the port sizes it.
    pub(crate) fn new(
        memory: M,
        doorbell: D,
        identity: TxIdentity,
        config: EnsoConfig,
        max_frame_bytes: usize,
    ) -> Self {
        let lines = config.lines;
        assert!(lines.is_power_of_two() && memory.bytes() >= memory_bytes(lines), "memory for {lines} lines");
        let lines = u64::from(lines);
        TxEnso { memory, doorbell, identity, config, lines, max_frame_bytes, tail: 0, head: 0 }
    }

    /// Absolute count of lines written.
    pub fn posted(&self) -> u64 {
        self.tail
    }

    #[cold]
    #[inline(never)]
    fn reclaim(&mut self) -> Result<(), TxError> {
        // Acquire, pairs with the device writing the head after its last read of the lines: they may be overwritten.
        let found = self.memory.load_acquire(HEAD_AT);
        if found < self.head || found > self.tail {
            return Err(TxError::WildCount { unit: "lines", found, low: self.head, high: self.tail });
        }
        self.head = found;
        Ok(())
    }

    /// Appends the frame; the doorbell is the caller's.
    #[inline]
    fn place(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        check_length(frame.len(), self.max_frame_bytes)?;
        let lines = u64::from(pipe::lines_of(frame.len() as u32));
        if self.tail + lines - self.head > self.lines {
            self.reclaim()?;
            if self.tail + lines - self.head > self.lines {
                return Ok(Sent::Full);
            }
        }
        let start = (self.tail & (self.lines - 1)) as usize * LINE_BYTES;
        let to_end = self.lines as usize * LINE_BYTES - start - WORD_BYTES;
        self.memory.store(PIPE_AT + start, pipe::header(frame.len() as u16));
        let (front, back) = frame.split_at(frame.len().min(to_end));
        self.memory.copy_in(PIPE_AT + start + WORD_BYTES, front);
        if !back.is_empty() {
            self.memory.copy_in(PIPE_AT, back);
        }
        self.tail += lines;
        Ok(Sent::Sent)
    }
}

impl<M: DmaMemory, D: Doorbell> QueueHalf for TxEnso<M, D> {
    fn queue(&self) -> u32 {
        self.identity.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let base = self.memory.address();
        set(r::TX_RING_ADDRESS, base + PIPE_AT as u64);
        set(r::TX_RING_ENTRIES, self.lines);
        set(r::TX_HEAD_ADDRESS, base + HEAD_AT as u64);
        let (frames, time_ns) = (self.config.completion_frames, self.config.completion_time_ns);
        set(r::TX_MODERATION, moderation(InterruptModeration { frames, time_ns }));
    }

    fn control(&self) -> u64 {
        self.identity.control()
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    fn restarted(mut self) -> Self {
        self.memory.store_release(HEAD_AT, 0);
        TxEnso { identity: self.identity.next_epoch(), tail: 0, head: 0, ..self }
    }
}

impl<M: DmaMemory, D: Doorbell> Transmit for TxEnso<M, D> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        let sent = self.place(frame)?;
        if sent == Sent::Sent {
            self.doorbell.ring(self.tail);
        }
        Ok(sent)
    }

    #[inline]
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        let mut taken = Ok(frames.len());
        let before = self.tail;
        for (count, frame) in frames.iter().enumerate() {
            match self.place(frame) {
                Ok(Sent::Sent) => {}
                Ok(Sent::Full) => taken = Ok(count),
                Err(error) => taken = if count == 0 { Err(error) } else { Ok(count) },
            }
            if taken != Ok(frames.len()) {
                break;
            }
        }
        if self.tail != before {
            self.doorbell.ring(self.tail);
        }
        taken.map(Taken)
    }

    fn progress(&mut self) -> Result<(), TxError> {
        self.reclaim()
    }

    fn max_frame_bytes(&self) -> usize {
        self.max_frame_bytes
    }

    fn is_idle(&self) -> bool {
        self.head == self.tail
    }

    fn declared(&self) -> Declared {
        Declared { interface: Interface::Enso, tolerance: None }
    }
}
