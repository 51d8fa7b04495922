//! Transmit by coherent lines: the header of an entry passes it to the device, and back.
//!
//! A short frame goes whole into the next entry of a ring, header last; a longer one into a buffer that the entry names.
//! The frames of a burst go into buffers, and one entry names up to 7, 15 or 31 of them, so that one transfer announces
//! them all. The store of the header is everything: no doorbell, no tail, no count. The device clears the header's owner
//! bit when it has done with an entry; that is looked at when a quarter of the ring is out, oldest first, so that
//! entries and buffers are used again while they are in a cache.
//!
//! Relation to the principle: stores are plain and unfenced, but the header must be seen last, because the device takes
//! the entry when it changes. On x86 that costs nothing; elsewhere it is a release store.
//!
//! From: the caller's frame. To: the device's copy of the line. Schuh et al., ASPLOS'24 (CC-NIC).

use alloc::boxed::Box;
use alloc::vec;

use beeline_contract_link::DmaMemory;
use beeline_spec::coherent::{
    LineBuffer, LineHeader, LineKind, buffers_in, frame_bytes_in, given_back, position_of,
};
use beeline_spec::regs::field::entry;
use beeline_spec::regs::queue as r;
use beeline_spec::{Interface, LINE_BYTES, WORD_BYTES};
use beeline_window::{Sent, Taken};

use crate::coherent::buffer_pool::{self, Buffer, BufferPool};
use crate::coherent::settings::CoherentConfig;
use crate::error::TxError;
use crate::port::half::{Epoch, QueueHalf, TxIdentity};
use crate::transmit::{Declared, Transmit, check_length};

/// Where the parts of the memory lie, in bytes: the ring of entries, then the buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    entry_bytes: usize,
    buffers_at: usize,
    long_bytes: usize,
    pub bytes: usize,
}

impl Layout {
    pub(crate) const fn new(config: &CoherentConfig, max_frame_bytes: usize) -> Self {
        let entry_bytes = LINE_BYTES << config.entry_lines_log2;
        let buffers_at = config.entries as usize * entry_bytes;
        let long_bytes = max_frame_bytes.next_multiple_of(LINE_BYTES);
        let buffers = buffer_pool::memory_bytes(config.short_buffers, config.long_buffers, long_bytes);
        Layout { entry_bytes, buffers_at, long_bytes, bytes: buffers_at + buffers }
    }
}

/// An entry that the device has: the header as it was stored, and how many buffers it names.
#[derive(Clone, Copy, Debug, Default)]
struct Out {
    header: u64,
    buffers: u8,
}

/// A ring of coherent lines in memory `M`.
#[derive(Debug)]
pub struct TxCoherent<M> {
    memory: M,
    identity: TxIdentity,
    config: CoherentConfig,
    layout: Layout,
    entries: u64,
    max_frame_bytes: usize,
    pool: BufferPool,
    /// What stands at each place of the ring, and the buffers that it names.
    out: Box<[Out]>,
    held: Box<[Buffer]>,
    /// Absolute count of entries passed to the device.
    tail: u64,
    /// Absolute count of those that came back.
    head: u64,
}

impl<M: DmaMemory> TxCoherent<M> {
    /// A ring over `memory`, which is zero and has the layout's size.
    ///
    /// # Panics
    /// If the memory is too small for the layout: the port sizes it.
    pub(crate) fn new(
        memory: M,
        identity: TxIdentity,
        config: CoherentConfig,
        max_frame_bytes: usize,
    ) -> Self {
        let layout = Layout::new(&config, max_frame_bytes);
        let (short, long) = (config.short_buffers, config.long_buffers);
        assert!(config.entries.is_power_of_two() && memory.bytes() >= layout.bytes, "memory for {layout:?}");
        let entries = config.entries as usize;
        TxCoherent {
            memory,
            identity,
            config,
            layout,
            entries: entries as u64,
            max_frame_bytes,
            pool: BufferPool::new(layout.buffers_at, short, long, layout.long_bytes),
            out: vec![Out::default(); entries].into_boxed_slice(),
            held: vec![Buffer::default(); entries * buffers_in(layout.entry_bytes)].into_boxed_slice(),
            tail: 0,
            head: 0,
        }
    }

    /// Absolute count of entries passed to the device.
    pub fn passed(&self) -> u64 {
        self.tail
    }

    #[inline]
    fn slot(&self, count: u64) -> usize {
        (count & (self.entries - 1)) as usize
    }

    /// Takes back what the device has done with, oldest first, until an entry that it still has.
    fn reclaim(&mut self) -> Result<(), TxError> {
        while self.head < self.tail {
            let slot = self.slot(self.head);
            let Out { header, buffers } = self.out[slot];
            // Acquire, pairs with the device giving the entry back after its last read of it and its buffers.
            let found = self.memory.load_acquire(slot * self.layout.entry_bytes);
            if found == header {
                return Ok(());
            }
            if found != given_back(header) {
                return Err(TxError::BadReturn { entry: self.head, found, passed: header });
            }
            let first = slot * buffers_in(self.layout.entry_bytes);
            for buffer in &self.held[first..first + usize::from(buffers)] {
                self.pool.give(*buffer);
            }
            self.head += 1;
        }
        Ok(())
    }

    /// Whether the next entry's place is free.
    #[inline]
    fn has_free_entry(&mut self) -> Result<bool, TxError> {
        if self.tail - self.head >= self.entries / 4 {
            self.reclaim()?;
        }
        Ok(self.tail - self.head < self.entries)
    }

    /// A buffer with this frame in it; `None` while there is none.
    #[inline]
    fn fill_buffer(&mut self, frame: &[u8]) -> Result<Option<Buffer>, TxError> {
        let mut buffer = self.pool.take(frame.len());
        if buffer.is_none() {
            self.reclaim()?;
            buffer = self.pool.take(frame.len());
        }
        if let Some(buffer) = buffer {
            self.memory.copy_in(self.pool.offset(buffer), frame);
        }
        Ok(buffer)
    }

    /// Names a filled buffer in the next entry, as number `index` of it.
    #[inline]
    fn name_buffer(&mut self, index: usize, buffer: Buffer, frame_bytes: usize) {
        let slot = self.slot(self.tail);
        let address = self.memory.address() + self.pool.offset(buffer) as u64;
        let named = LineBuffer { length_bytes: frame_bytes as u16, address };
        self.memory.store(slot * self.layout.entry_bytes + (1 + index) * WORD_BYTES, named.encode());
        self.held[slot * buffers_in(self.layout.entry_bytes) + index] = buffer;
    }

    /// Passes the next entry, which is filled, to the device.
    #[inline]
    fn pass(&mut self, kind: LineKind) {
        let slot = self.slot(self.tail);
        let epoch = self.identity.config.epoch;
        let header = LineHeader { kind, epoch, position: position_of(self.tail) }.encode();
        let buffers = if let LineKind::Buffers(count) = kind { count } else { 0 };
        self.out[slot] = Out { header, buffers };
        // Release: a device that sees the header sees the entry and the buffers that it names.
        self.memory.store_watched(slot * self.layout.entry_bytes, header);
        self.tail += 1;
    }

    #[inline]
    fn send_one(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        check_length(frame.len(), self.max_frame_bytes)?;
        if !self.has_free_entry()? {
            return Ok(Sent::Full);
        }
        if frame.len() <= frame_bytes_in(self.layout.entry_bytes) {
            let at = self.slot(self.tail) * self.layout.entry_bytes;
            self.memory.copy_in(at + WORD_BYTES, frame);
            self.pass(LineKind::Whole(frame.len() as u16));
            return Ok(Sent::Sent);
        }
        let Some(buffer) = self.fill_buffer(frame)? else { return Ok(Sent::Full) };
        self.name_buffer(0, buffer, frame.len());
        self.pass(LineKind::Buffers(1));
        Ok(Sent::Sent)
    }

    /// Passes as many of the frames as one entry names and buffers are there for; how many those were. An error only
    /// when there were none.
    fn send_group(&mut self, frames: &[&[u8]]) -> Result<usize, TxError> {
        if !self.has_free_entry()? {
            return Ok(0);
        }
        let mut named = 0;
        for frame in frames.iter().take(buffers_in(self.layout.entry_bytes)) {
            let filled =
                check_length(frame.len(), self.max_frame_bytes).and_then(|()| self.fill_buffer(frame));
            match filled {
                Ok(Some(buffer)) => self.name_buffer(named, buffer, frame.len()),
                Err(error) if named == 0 => return Err(error),
                Ok(None) | Err(_) => break,
            }
            named += 1;
        }
        if named > 0 {
            self.pass(LineKind::Buffers(named as u8));
        }
        Ok(named)
    }
}

impl<M: DmaMemory> QueueHalf for TxCoherent<M> {
    fn queue(&self) -> u32 {
        self.identity.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        set(r::TX_RING_ADDRESS, self.memory.address());
        set(r::TX_RING_ENTRIES, self.entries);
        set(r::ENTRY, u64::from(self.config.entry_lines_log2) << entry::LINES_LOG2_LSB);
    }

    fn control(&self) -> u64 {
        self.identity.control()
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    fn restarted(mut self) -> Self {
        // What the last life's laps left must not look like what is waited for.
        for slot in 0..self.entries as usize {
            self.memory.store(slot * self.layout.entry_bytes, 0);
        }
        self.pool.restart();
        TxCoherent { identity: self.identity.next_epoch(), tail: 0, head: 0, ..self }
    }
}

impl<M: DmaMemory> Transmit for TxCoherent<M> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        self.send_one(frame)
    }

    #[inline]
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        let mut taken = 0;
        while taken < frames.len() {
            let sent = match &frames[taken..] {
                [only] => self.send_one(only).map(|sent| usize::from(sent == Sent::Sent)),
                several => self.send_group(several),
            };
            match sent {
                Ok(0) => break,
                Ok(sent) => taken += sent,
                Err(error) if taken == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(Taken(taken))
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
        Declared { interface: Interface::Coherent, tolerance: None }
    }
}
