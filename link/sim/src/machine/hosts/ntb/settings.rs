//! What a bridge between two hosts has of each thing, and what it does to the order of writes.

use super::super::HostsError;
use crate::des::Picoseconds;

/// Entries of a kind of register that the map of registers has room for.
pub const REGISTERS_OF_A_KIND: u16 = 512;
/// Doorbells at most: the bit behind the last one tells of the link.
const DOORBELLS: u16 = 63;

/// The parameters of a bridge that is not transparent. Both sides have as much of everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NtbSettings {
    /// Memory windows of each side.
    pub windows: u16,
    /// Bytes of each window, a power of two from a page on.
    pub window_bytes: u64,
    /// What the address of a translation, and its limit, are multiples of: the bits below are not there. A power of two.
    pub align_bytes: u64,
    /// Registers of 32 bits that the other side can write and read.
    pub scratchpads: u16,
    /// Bits that the other side can set, each with a bit that masks it.
    pub doorbells: u16,
    /// Entries of the table of requesters whose requests a side lets through.
    pub requesters: u16,
    /// Whether writes through a window get the attribute of relaxed ordering, and how many that were in front one may then pass: zero keeps
    /// their order.
    pub passes: usize,
    /// From a message-signalled interrupt that the root complex has seen to the first instruction of whoever is interrupted.
    pub interrupt: Picoseconds,
}

impl NtbSettings {
    /// Whether there can be such a bridge.
    pub(in super::super) fn check(&self, span_bytes: u64) -> Result<(), HostsError> {
        let count = |what, found: u16, least, most: u16| {
            let (found, most) = (usize::from(found), usize::from(most));
            let fits = (least..=most).contains(&found);
            if fits { Ok(()) } else { Err(HostsError::Count { what, found, least, most }) }
        };
        count("windows of a bridge", self.windows, 1, REGISTERS_OF_A_KIND)?;
        count("scratchpads of a bridge", self.scratchpads, 0, REGISTERS_OF_A_KIND)?;
        count("requesters of a bridge", self.requesters, 1, REGISTERS_OF_A_KIND)?;
        count("doorbells of a bridge", self.doorbells, 1, DOORBELLS)?;
        let is_size = |bytes: u64| bytes.is_power_of_two() && bytes <= self.window_bytes;
        // Windows and one more of their size for the registers, in half of what a host has of addresses.
        let fits = (u64::from(self.windows) + 1).checked_mul(self.window_bytes);
        let fits = fits.is_some_and(|bytes| bytes <= span_bytes / 2);
        if !(fits && is_size(self.window_bytes) && is_size(self.align_bytes) && self.window_bytes >= 1 << 16)
        {
            return Err(HostsError::Bridge("windows of this size, alignment and number"));
        }
        Ok(())
    }
}
