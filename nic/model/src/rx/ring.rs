//! The contiguous receive ring: frames one after the other in host memory, no descriptor anywhere.
//!
//! A frame starts on a line with a header word (`rx_ring_header`), its bytes follow, and it may wrap at the ring's end.
//! The device writes the bytes first and the header word last; writes of one device become visible in order, so a host
//! that sees the header sees the frame. The host polls the word at its next start, which is zero until then, because
//! the ring begins as zeros and the host clears the first word of every line it frees. It never reads the device: it
//! pushes the absolute count of freed lines to a doorbell, and that count is checked like any value of a host.
//!
//! From: [`super::RxEngine`], a frame from the wire. To: host memory. HotOS'25 §4.1 ("pushes data directly").

use beeline_spec::formats::rx_ring_header as f;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use super::Delivery;
use crate::engine::{Cause, QueueSettings, Shared};

/// DMA writes that a frame takes at most: two for its bytes, one for the header.
const WRITES: usize = 3;
/// Longest ring: 256 MiB.
const MAX_LINES: u32 = 1 << 22;

/// A started ring. Counts are absolute: `freed <= written <= freed + lines`.
#[derive(Debug)]
pub(super) struct RxRing {
    address: u64,
    lines: u32,
    written: u64,
    freed: u64,
}

impl RxRing {
    /// An empty ring.
    pub(super) fn new(settings: &QueueSettings) -> Result<Self, Cause> {
        let (address, lines) = (settings.rx_ring_address, settings.rx_ring_entries);
        if !lines.is_power_of_two() || lines > MAX_LINES {
            return Err(Cause::BadLength);
        }
        let bytes = u64::from(lines) * LINE_BYTES as u64;
        if !address.is_multiple_of(LINE_BYTES as u64) || address.checked_add(bytes).is_none() {
            return Err(Cause::DmaError);
        }
        Ok(RxRing { address, lines, written: 0, freed: 0 })
    }

    /// The host has freed `freed` lines since the queue was enabled; `false` when that cannot be.
    #[inline]
    pub(super) fn freed(&mut self, freed: u64) -> bool {
        let is_sound = freed >= self.freed && freed <= self.written;
        if is_sound {
            self.freed = freed;
        }
        is_sound
    }

    /// Writes a frame of at least one byte into the ring.
    #[inline]
    pub(super) fn deliver(&mut self, frame: &[u8], shared: &mut Shared) -> Delivery {
        let lines = (WORD_BYTES + frame.len()).div_ceil(LINE_BYTES) as u64;
        if lines > u64::from(self.lines) {
            return Delivery::TooLong;
        }
        if self.written + lines > self.freed + u64::from(self.lines) {
            return Delivery::NoSpace;
        }
        if !shared.dma.has_room(WRITES, frame.len() + WORD_BYTES) {
            return Delivery::Later;
        }
        let start = (self.written & u64::from(self.lines - 1)) as usize * LINE_BYTES;
        let body = start + WORD_BYTES;
        let before_end = self.lines as usize * LINE_BYTES - body;
        let (first, rest) = frame.split_at(frame.len().min(before_end));
        let header = (frame.len() as u64) << (8 * f::LENGTH_BYTES_OFFSET) | 1 << (8 * f::VALID_OFFSET);
        let done = (first.is_empty() || shared.dma.write(self.address + body as u64, first))
            && (rest.is_empty() || shared.dma.write(self.address, rest))
            && shared.dma.write(self.address + start as u64, &header.to_le_bytes());
        debug_assert!(done, "room was asked for");
        self.written += lines;
        Delivery::Done
    }
}
