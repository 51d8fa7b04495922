//! Where the entries of a ring lie.

use beeline_spec::LINE_BYTES;
use beeline_spec::coherent::MAX_ENTRY_LINES;

use crate::engine::Cause;

/// Most entries of a ring.
const MAX_ENTRIES: u32 = 1 << 16;

/// Where the entries of a ring lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    address: u64,
    pub(super) entries: u32,
    pub(super) entry_bytes: usize,
}

impl Entries {
    /// A ring of `entries` of `entry_lines` at `address`, as the host says.
    pub(super) fn new(address: u64, entries: u32, entry_lines: u32) -> Result<Self, Cause> {
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

    pub(super) fn count(&self) -> u64 {
        self.entries.into()
    }

    /// Index of entry number `count`.
    #[inline]
    pub(super) fn slot(&self, count: u64) -> usize {
        (count & u64::from(self.entries - 1)) as usize
    }

    /// Bus address of entry number `count`.
    #[inline]
    pub(super) fn address_of(&self, count: u64) -> u64 {
        self.address + (self.slot(count) * self.entry_bytes) as u64
    }
}
