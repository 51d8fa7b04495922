//! Calls that a client has taken back: a word for each of its slots, in the server's memory.
//!
//! A message that says "cancelled" would be read after the request it is about, too late. So the client stores the
//! call's number where the server's thread looks before it calls the handler, and where a handler may look in the
//! middle: one load of a line that stays in the server's cache until something is cancelled. It is a hint: a store that
//! comes late cancels nothing, and a wild one cancels only calls of the client that stored it.

use beeline_mmio::{Region, Words};
use beeline_spec::WORD_BYTES;

/// Bytes of the table, whole pages.
pub(crate) fn table_bytes(slots: u32) -> usize {
    (slots as usize * WORD_BYTES).next_multiple_of(4096)
}

/// One end of the table.
#[derive(Clone, Debug)]
pub(crate) struct Cancels {
    words: Words,
}

impl Cancels {
    /// `slots` words of `region`, a power of two.
    pub(crate) fn new(region: &Region, slots: u32) -> Self {
        Cancels { words: region.words(0, slots as usize) }
    }

    /// Whether the call of this number was taken back.
    #[inline(always)]
    pub(crate) fn has(&self, number: u32) -> bool {
        // The slot is the low bits of the number, and the table wraps.
        self.words.load(number as usize) == marked(number)
    }

    /// Marks a call as cancelled.
    pub(crate) fn set(&self, number: u32, slot: usize) {
        self.words.store(slot, marked(number));
    }

    /// The call was answered; its number may come again when the slot has been used 2^32 / slots times.
    pub(crate) fn clear(&self, slot: usize) {
        self.words.store(slot, 0);
    }
}

/// A call as the table has it; never 0.
#[inline(always)]
fn marked(number: u32) -> u64 {
    u64::from(number) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_taken_back_and_no_other() {
        let cancels = Cancels::new(&Region::private(table_bytes(8)), 8);
        assert!((0..64).all(|number| !cancels.has(number)));
        cancels.set(8 * 5 + 3, 3);
        assert!(cancels.has(43) && !cancels.has(35) && !cancels.has(42));
        cancels.clear(3);
        assert!(!cancels.has(43));
    }
}
