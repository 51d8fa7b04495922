//! Transmit by descriptors: ring and buffers in host memory, one doorbell a burst, completions reclaimed lazily.
//!
//! The comparison every other interface is measured against, so it is built as well as one can: frames are copied to
//! consecutive lines of one buffer (small frames share pages and prefetch well), descriptors are two plain stores, a
//! burst rings once, and the head word that the device writes back is looked at only when ring or buffer looks full,
//! which then reclaims everything finished at once. No lock, no allocation, no read across the link.
//!
//! From: the caller's frame. To: the device's descriptor and payload fetches (HotOS'25 figure 1a; kPIO+WC figure 1).

use alloc::boxed::Box;
use alloc::vec;

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_spec::formats::tx_descriptor as f;
use beeline_spec::regs::queue as r;
use beeline_spec::{Interface, LINE_BYTES};
use beeline_window::{Sent, Taken};

use crate::descriptor::settings::DescriptorConfig;
use crate::error::TxError;
use crate::port::half::{Epoch, QueueHalf, TxIdentity, moderation};
use crate::receive::settings::InterruptModeration;
use crate::transmit::{Declared, Transmit, check_length};

/// Where the parts of the memory lie, in bytes: the head word on a line of its own, the ring, the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub entries: u32,
    pub buffer_bytes: usize,
    pub ring_at: usize,
    pub buffer_at: usize,
    pub bytes: usize,
}

impl Layout {
    /// The head word comes first.
    pub(crate) const HEAD_AT: usize = 0;

    pub(crate) const fn new(entries: u32, buffer_bytes: usize) -> Self {
        let ring_at = LINE_BYTES;
        let buffer_at = (ring_at + entries as usize * f::BYTES).next_multiple_of(LINE_BYTES);
        Layout { entries, buffer_bytes, ring_at, buffer_at, bytes: buffer_at + buffer_bytes }
    }
}

/// A transmit descriptor queue in memory `M` with doorbell `D`.
#[derive(Debug)]
pub struct TxDescriptor<M, D> {
    memory: M,
    doorbell: D,
    identity: TxIdentity,
    layout: Layout,
    config: DescriptorConfig,
    max_frame_bytes: usize,
    /// Bit 0 of the last descriptor of a burst.
    interrupt_flag: u64,
    /// Absolute count of descriptors written.
    tail: u64,
    /// Absolute count of descriptors known to be finished.
    head: u64,
    /// Absolute count of buffer bytes handed out, skipped ones at the buffer's end included.
    filled_bytes: u64,
    /// Absolute count of buffer bytes reclaimed.
    freed_bytes: u64,
    /// For each ring slot, `filled_bytes` after its frame.
    ends: Box<[u64]>,
}

impl<M: DmaMemory, D: Doorbell> TxDescriptor<M, D> {
    /// A queue over `memory`, which is zero and has the layout's size.
    ///
    /// # Panics
    /// If the memory is too small for the layout: the port sizes it.
    pub(crate) fn new(
        memory: M,
        doorbell: D,
        identity: TxIdentity,
        layout: Layout,
        config: DescriptorConfig,
        max_frame_bytes: usize,
    ) -> Self {
        let powers = layout.entries.is_power_of_two() && layout.buffer_bytes.is_power_of_two();
        assert!(powers && memory.bytes() >= layout.bytes, "memory for {layout:?}");
        TxDescriptor {
            memory,
            doorbell,
            identity,
            layout,
            config,
            max_frame_bytes,
            interrupt_flag: u64::from(config.interrupts),
            tail: 0,
            head: 0,
            filled_bytes: 0,
            freed_bytes: 0,
            ends: vec![0; layout.entries as usize].into_boxed_slice(),
        }
    }

    /// Absolute count of descriptors written.
    pub fn posted(&self) -> u64 {
        self.tail
    }

    #[inline]
    fn slot(&self, count: u64) -> usize {
        (count & u64::from(self.layout.entries - 1)) as usize
    }

    /// Where the next frame's buffer begins (absolute) if ring and buffer have room: the next line, or the start of
    /// the buffer when the frame would straddle its end.
    #[inline]
    fn room_for(&self, padded_bytes: u64) -> Option<u64> {
        let size = self.layout.buffer_bytes as u64;
        let at = self.filled_bytes & (size - 1);
        let first =
            if at + padded_bytes > size { self.filled_bytes + (size - at) } else { self.filled_bytes };
        let fits = first + padded_bytes - self.freed_bytes <= size;
        let has_entry = self.tail - self.head < u64::from(self.layout.entries);
        (fits && has_entry).then_some(first)
    }

    /// Loads the head word and takes back everything finished.
    #[cold]
    #[inline(never)]
    fn reclaim(&mut self) -> Result<(), TxError> {
        // Acquire, pairs with the device writing the head after its last read of the payload: the buffer may be
        // overwritten from here on.
        let found = self.memory.load_acquire(Layout::HEAD_AT);
        if found < self.head || found > self.tail {
            return Err(TxError::WildCount { unit: "descriptors", found, low: self.head, high: self.tail });
        }
        if found > self.head {
            self.freed_bytes = self.ends[self.slot(found - 1)];
            self.head = found;
        }
        Ok(())
    }

    /// Copies the frame and writes its descriptor; the doorbell is the caller's.
    #[inline]
    fn place(&mut self, frame: &[u8], flags: u64) -> Result<Sent, TxError> {
        check_length(frame.len(), self.max_frame_bytes)?;
        let padded_bytes = frame.len().next_multiple_of(LINE_BYTES) as u64;
        let first = match self.room_for(padded_bytes) {
            Some(first) => first,
            None => {
                self.reclaim()?;
                match self.room_for(padded_bytes) {
                    Some(first) => first,
                    None => return Ok(Sent::Full),
                }
            }
        };
        let buffer = self.layout.buffer_at + (first as usize & (self.layout.buffer_bytes - 1));
        self.memory.copy_in(buffer, frame);
        let slot = self.slot(self.tail);
        let descriptor = self.layout.ring_at + slot * f::BYTES;
        self.memory.store(descriptor + f::ADDRESS_OFFSET, self.memory.address() + buffer as u64);
        let length_and_flags = frame.len() as u64 | flags << (8 * (f::FLAGS_OFFSET - f::LENGTH_BYTES_OFFSET));
        self.memory.store(descriptor + f::LENGTH_BYTES_OFFSET, length_and_flags);
        self.filled_bytes = first + padded_bytes;
        self.ends[slot] = self.filled_bytes;
        self.tail += 1;
        Ok(Sent::Sent)
    }
}

impl<M: DmaMemory, D: Doorbell> QueueHalf for TxDescriptor<M, D> {
    fn queue(&self) -> u32 {
        self.identity.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let base = self.memory.address();
        set(r::TX_RING_ADDRESS, base + self.layout.ring_at as u64);
        set(r::TX_RING_ENTRIES, u64::from(self.layout.entries));
        set(r::TX_HEAD_ADDRESS, base + Layout::HEAD_AT as u64);
        let completions = InterruptModeration {
            frames: self.config.completion_frames,
            time_ns: self.config.completion_time_ns,
        };
        set(r::TX_MODERATION, moderation(completions));
    }

    fn control(&self) -> u64 {
        self.identity.control()
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    fn restarted(mut self) -> Self {
        self.memory.store_release(Layout::HEAD_AT, 0);
        let identity = self.identity.next_epoch();
        TxDescriptor { identity, tail: 0, head: 0, filled_bytes: 0, freed_bytes: 0, ..self }
    }
}

impl<M: DmaMemory, D: Doorbell> Transmit for TxDescriptor<M, D> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        let sent = self.place(frame, self.interrupt_flag)?;
        if sent == Sent::Sent {
            self.doorbell.ring(self.tail);
        }
        Ok(sent)
    }

    #[inline]
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        let before = self.tail;
        let mut failed = None;
        for (i, frame) in frames.iter().enumerate() {
            let flags = if i + 1 == frames.len() { self.interrupt_flag } else { 0 };
            match self.place(frame, flags) {
                Ok(Sent::Sent) => {}
                Ok(Sent::Full) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if self.tail != before {
            self.doorbell.ring(self.tail);
            return Ok(Taken((self.tail - before) as usize));
        }
        failed.map_or(Ok(Taken(0)), Err)
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
        Declared { interface: Interface::Descriptor, tolerance: None }
    }
}
