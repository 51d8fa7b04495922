//! `coherent`: entries of lines in host memory that pass from producer to consumer and back with their own header.
//!
//! To send, the host fills the next entry of a ring, header last; the device, which keeps a copy of the line, is told when
//! it changes ([`crate::watch_port`]), takes short frames from the entry itself and fetches those that it names
//! ([`tx_lines`]). To receive, the device fills the next entry of another ring, and a buffer where a frame does not fit
//! ([`rx_lines`]). Each gives an entry back by clearing the owner bit of its header. No doorbell, no tail, no head count,
//! no credit: nothing but the lines is written or read by either side.
//!
//! The rings of entries are small and lines are given back soon, so that they stay in the two caches; buffers are taken
//! last in, first out, so that one used lately is used again.
//!
//! From: changes of watched lines, answers to reads; frames from the wire. To: the egress arbiter, by `FrameSource`; host
//! memory. Schuh et al., ASPLOS'24 (CC-NIC); HotOS'25 §4.2.

mod rx_lines;
#[cfg(test)]
mod tests;
mod tx_lines;

use beeline_spec::LINE_BYTES;
use beeline_spec::coherent::MAX_ENTRY_LINES;

pub(crate) use rx_lines::RxLines;

use crate::engine::Cause;
use crate::fetch::Fetching;

/// The transmit engine of coherent lines.
pub(crate) type CoherentEngine = Fetching<tx_lines::TxLines>;

/// Most entries of a ring.
const MAX_ENTRIES: u32 = 1 << 16;

/// Where the entries of a ring lie.
#[derive(Clone, Copy, Debug)]
struct Entries {
    address: u64,
    entries: u32,
    entry_bytes: usize,
}

impl Entries {
    /// A ring of `entries` of `entry_lines` at `address`, as the host says.
    fn new(address: u64, entries: u32, entry_lines: u32) -> Result<Self, Cause> {
        if !entries.is_power_of_two()
            || !(2..=MAX_ENTRIES).contains(&entries)
            || entry_lines > MAX_ENTRY_LINES
        {
            return Err(Cause::BadLength);
        }
        let entry_bytes = entry_lines as usize * LINE_BYTES;
        let bytes = u64::from(entries) * entry_bytes as u64;
        if !address.is_multiple_of(LINE_BYTES as u64) || address.checked_add(bytes).is_none() {
            return Err(Cause::DmaError);
        }
        Ok(Entries { address, entries, entry_bytes })
    }

    fn count(&self) -> u64 {
        self.entries.into()
    }

    /// Place of entry number `count`.
    #[inline]
    fn slot(&self, count: u64) -> usize {
        (count & u64::from(self.entries - 1)) as usize
    }

    /// Bus address of entry number `count`.
    #[inline]
    fn address_of(&self, count: u64) -> u64 {
        self.address + (self.slot(count) * self.entry_bytes) as u64
    }
}
