//! Where in the bank segments lie: upwards, and nowhere twice.
//!
//! The bank is one sparse memory of the member. An offset that is not used again cannot alias: a member that stores late into a
//! segment that was removed stores into nobody's memory.

/// Segments begin at multiples of this, the largest page that kernels use for such memory.
const ALIGN: u64 = 64 << 10;
/// Bytes of a member's bank: the largest sparse file that every kernel makes, with room to round up.
pub const BANK_BYTES: u64 = 1 << 46;

#[derive(Debug)]
pub(crate) struct Bank {
    next: u64,
    /// The size of the memory.
    end: u64,
}

impl Default for Bank {
    fn default() -> Self {
        Bank { next: 0, end: BANK_BYTES }
    }
}

impl Bank {
    /// Gives out nothing that ends behind `bytes`.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.end = self.end.min(bytes);
    }

    /// The offset of `bytes` that nobody has or had; `None` if the bank is used up.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        let end = self.next.checked_add(bytes)?.checked_next_multiple_of(ALIGN)?;
        let offset = self.next;
        (end <= self.end).then(|| {
            self.next = end;
            offset
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_lie_one_behind_the_other_and_none_beyond_the_bank() {
        let mut bank = Bank::default();
        assert_eq!(bank.take(1), Some(0));
        assert_eq!(bank.take(ALIGN + 1), Some(ALIGN));
        assert_eq!(bank.take(BANK_BYTES), None);
        assert_eq!(bank.take(u64::MAX), None);
        assert_eq!(bank.take(BANK_BYTES - 3 * ALIGN), Some(3 * ALIGN));
        assert_eq!(bank.take(1), None);
    }

    #[test]
    fn segments_of_a_smaller_bank_end_inside_it() {
        let mut bank = Bank::default();
        bank.limit(3 * ALIGN + 1);
        assert_eq!(bank.take(3 * ALIGN + 1), None);
        assert_eq!(bank.take(3 * ALIGN), Some(0));
        assert_eq!(bank.take(1), None);
    }
}
