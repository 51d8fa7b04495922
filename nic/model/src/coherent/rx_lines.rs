//! One receive ring of coherent lines: frames in entries, or in buffers that entries name.
//!
//! A frame that fits goes into the next entry; a longer one into a free buffer, and the entry names it. The header is
//! written last, so a host that sees it sees the frame. The host gives the entry back by clearing the header's owner bit,
//! in order, and the buffer with it: which one that was is known here, nothing the host writes is believed. Buffers are
//! a stack: the one given back last is filled next, and most of the rest are never touched.
//!
//! The device looks for entries that came back when a quarter of the ring or every buffer is out, one after the other;
//! sooner would take the line from a host that is still reading it, later would let the ring outgrow the caches.
//!
//! From: [`crate::rx`], a frame from the wire. To: host memory. Schuh et al., ASPLOS'24 (inlined signals, recycling of
//! buffers).

use beeline_contract_device::{QueueId, WatchEnd};
use beeline_spec::coherent::{LineBuffer, LineHeader, LineKind, frame_bytes_in, given_back, position_of};
use beeline_spec::formats::line_buffer;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use super::entries::Entries;
use crate::engine::{Cause, QueueSettings, Shared};
use crate::rx::Delivery;
use crate::watch_port::{Direction, Watch};

/// DMA writes that a frame takes at most: the frame, the word that names its buffer, the header.
const WRITES: usize = 3;
/// Most buffers.
const MAX_BUFFERS: u32 = 1 << 16;

/// An entry that is out.
#[derive(Clone, Copy, Debug, Default)]
struct Out {
    header: u64,
    buffer: Option<u32>,
}

/// A started ring. Counts of entries are absolute: `back <= written <= back + entries`.
#[derive(Debug)]
pub(crate) struct RxLines {
    id: QueueId,
    ring: Entries,
    buffers_address: u64,
    buffer_bytes: u64,
    /// 0: what does not fit an entry is not received.
    buffers: u32,
    /// Buffers that no entry names, the one given back last on top.
    free: Vec<u32>,
    /// What stands at each place of the ring.
    out: Box<[Out]>,
    written: u64,
    back: u64,
    is_watching: bool,
}

impl RxLines {
    /// An empty ring for frames of up to `longest_frame_bytes`.
    pub(crate) fn new(
        id: QueueId,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause> {
        let lines = settings.rx_entry_lines;
        let ring = Entries::new(settings.rx_ring_address, settings.rx_ring_entries, lines)?;
        let (buffers_address, buffers) = (settings.rx_completion_address, settings.rx_notify_entries);
        if buffers > MAX_BUFFERS {
            return Err(Cause::BadLength);
        }
        let buffer_bytes = u64::from(longest_frame_bytes).next_multiple_of(LINE_BYTES as u64);
        let end = buffers_address.checked_add(buffer_bytes * u64::from(buffers));
        let is_nameable = |end: u64| end / LINE_BYTES as u64 <= line_buffer::ADDRESS_LINES_MASK;
        if !buffers_address.is_multiple_of(LINE_BYTES as u64) || !end.is_some_and(is_nameable) {
            return Err(Cause::DmaError);
        }
        Ok(RxLines {
            id,
            ring,
            buffers_address,
            buffer_bytes,
            buffers,
            free: (0..buffers).rev().collect(),
            out: vec![Out::default(); ring.entries as usize].into_boxed_slice(),
            written: 0,
            back: 0,
            is_watching: false,
        })
    }

    /// Looks for the oldest entry to come back, if it is time.
    #[inline]
    pub(crate) fn watch(&mut self, shared: &mut Shared) {
        let out = self.written - self.back;
        let is_time = out > self.ring.count() / 4 || out > 0 && self.free.is_empty() && self.buffers > 0;
        if self.is_watching || !is_time {
            return;
        }
        self.is_watching = true;
        let known = self.out[self.ring.slot(self.back)].header;
        let address = self.ring.address_of(self.back);
        let watch = Watch { address, known, bytes: WORD_BYTES as u32 };
        shared.watches.watch(self.id, Direction::Receive, watch);
    }

    /// The oldest entry has changed. The cause when that is not what gives it back.
    pub(crate) fn line_changed(&mut self, data: Result<&[u8], WatchEnd>) -> Result<(), Cause> {
        self.is_watching = false;
        let word = data.ok().and_then(|data| <[u8; WORD_BYTES]>::try_from(data).ok());
        let word = word.map(u64::from_le_bytes).ok_or(Cause::DmaError)?;
        let out = &mut self.out[self.ring.slot(self.back)];
        if word != given_back(out.header) {
            return Err(Cause::BadHeader);
        }
        self.free.extend(out.buffer.take());
        self.back += 1;
        Ok(())
    }

    /// Puts a frame of at least one byte into the next entry.
    #[inline]
    pub(crate) fn deliver(&mut self, frame: &[u8], shared: &mut Shared) -> Delivery {
        let fits = frame.len() <= frame_bytes_in(self.ring.entry_bytes);
        if frame.len() as u64 > self.buffer_bytes || !fits && self.buffers == 0 {
            return Delivery::TooLong;
        }
        if self.written == self.back + self.ring.count() || !fits && self.free.is_empty() {
            return Delivery::NoSpace;
        }
        if !shared.dma.has_room(WRITES, frame.len() + 2 * WORD_BYTES) {
            return Delivery::Later;
        }
        let address = self.ring.address_of(self.written);
        let buffer = if fits { None } else { self.free.pop() };
        let kind = match buffer {
            None => LineKind::Whole(frame.len() as u16),
            Some(_) => LineKind::Buffers(1),
        };
        let header = LineHeader { kind, epoch: 0, position: position_of(self.written) }.encode();
        let has_body = match buffer {
            None => shared.dma.write(address + WORD_BYTES as u64, frame),
            Some(buffer) => {
                let at = self.buffers_address + u64::from(buffer) * self.buffer_bytes;
                let named = LineBuffer { length_bytes: frame.len() as u16, address: at }.encode();
                shared.dma.write(at, frame)
                    && shared.dma.write(address + WORD_BYTES as u64, &named.to_le_bytes())
            }
        };
        let done = has_body && shared.dma.write(address, &header.to_le_bytes());
        debug_assert!(done, "room was asked for");
        self.out[self.ring.slot(self.written)] = Out { header, buffer };
        self.written += 1;
        self.watch(shared);
        Delivery::Done
    }
}
