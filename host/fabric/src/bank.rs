//! Where in the bank segments lie: upwards, and nowhere twice.
//!
//! The bank is one sparse memory of the member. An offset that is not used again cannot alias: a member that stores late into a
//! segment that was removed stores into nobody's memory.
//!
//! A bank that is a part of a file or a BAR is small, and is used again. What somebody had connected to who was lost by silence is not: a
//! process that was stopped still has it mapped, and goes on to store. So it is only where the program says that it stands such stores, and only
//! when nothing else is left.

use alloc::collections::{BTreeMap, BTreeSet};

/// Segments begin at multiples of this, the largest page that kernels use for such memory.
const ALIGN: u64 = 64 << 10;
/// Bytes of a member's bank: the largest sparse file that every kernel makes, with room to round up.
pub const BANK_BYTES: u64 = 1 << 46;

#[derive(Debug)]
pub(crate) struct Bank {
    next: u64,
    /// The size of the memory.
    end: u64,
    /// What is free again, by its offset; `None` if nothing is used again.
    free: Option<BTreeMap<u64, u64>>,
    /// Offsets of memory that is not used again.
    kept: BTreeSet<u64>,
    /// What of it was given back, by its offset, for when nothing else is left; `None` if it is not used then either.
    last: Option<BTreeMap<u64, u64>>,
}

impl Default for Bank {
    fn default() -> Self {
        Bank { next: 0, end: BANK_BYTES, free: None, kept: BTreeSet::new(), last: None }
    }
}

impl Bank {
    /// Gives out nothing that ends behind `bytes`.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.end = self.end.min(bytes);
    }

    /// Gives out again what is given back.
    pub(crate) fn reuse(&mut self) {
        self.free = Some(BTreeMap::new());
    }

    /// Returns the offset from which on somebody else may have stored into what is not given out, of a bank that is used again: where nothing was
    /// given out; everywhere, if what was kept is used again.
    pub(crate) fn untouched(&self) -> Option<u64> {
        self.free.as_ref().map(|_| if self.last.is_some() { 0 } else { self.next })
    }

    /// Does not give out again what begins here, whenever it is given back.
    pub(crate) fn keep(&mut self, offset: u64) {
        self.kept.insert(offset);
    }

    /// Gives out again what is kept, too, rather than nothing.
    pub(crate) fn reuse_kept(&mut self) {
        self.last = Some(BTreeMap::new());
    }

    /// Takes back what nobody has mapped any more, unless it is to be kept.
    pub(crate) fn give_back(&mut self, offset: u64, bytes: u64) {
        if self.kept.contains(&offset) {
            self.last.as_mut().map(|last| last.insert(offset, bytes));
            return;
        }
        let Some(free) = &mut self.free else { return };
        let (mut start, mut end) = (offset, offset + bytes.next_multiple_of(ALIGN));
        if let Some((before, bytes)) =
            free.range(..start).next_back().map(|(before, bytes)| (*before, *bytes))
            && before + bytes == start
        {
            free.remove(&before);
            start = before;
        }
        if let Some(bytes) = free.remove(&end) {
            end += bytes;
        }
        free.insert(start, end - start);
    }

    /// A part of what was given back.
    fn take_again(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.checked_next_multiple_of(ALIGN)?;
        let free = self.free.as_mut()?;
        let (offset, found) =
            free.iter().find(|(_, found)| **found >= bytes).map(|(at, found)| (*at, *found))?;
        free.remove(&offset);
        if found > bytes {
            free.insert(offset + bytes, found - bytes);
        }
        Some(offset)
    }

    /// The offset of `bytes` that nobody has; `None` if the bank is used up.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        if let Some(offset) = self.take_again(bytes) {
            return Some(offset);
        }
        let end = self.next.checked_add(bytes)?.checked_next_multiple_of(ALIGN)?;
        if end > self.end {
            return self.take_kept(bytes);
        }
        Some(core::mem::replace(&mut self.next, end))
    }

    /// A part of what was given back, and of what was kept.
    fn take_kept(&mut self, bytes: u64) -> Option<u64> {
        for (offset, bytes) in self.last.as_mut().map(core::mem::take)? {
            self.kept.remove(&offset);
            self.give_back(offset, bytes);
        }
        self.take_again(bytes)
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
        bank.give_back(0, 3 * ALIGN);
        assert_eq!(bank.take(1), None, "a bank does not use memory again unless it is told so");
    }

    #[test]
    fn neighbours_that_are_given_back_are_one_again_and_what_is_kept_is_not_given_out() {
        let mut bank = Bank::default();
        bank.limit(4 * ALIGN);
        bank.reuse();
        let all = [1, ALIGN, 2 * ALIGN - 1].map(|bytes| bank.take(bytes).unwrap());
        assert_eq!((all, bank.take(1)), ([0, ALIGN, 2 * ALIGN], None));
        bank.give_back(0, 1);
        bank.give_back(2 * ALIGN, 2 * ALIGN - 1);
        assert_eq!(bank.take(3 * ALIGN), None);
        bank.give_back(ALIGN, ALIGN);
        assert_eq!(bank.take(3 * ALIGN), Some(0));
        assert_eq!(bank.take(u64::MAX), None);
        bank.keep(0);
        bank.give_back(0, 3 * ALIGN);
        assert_eq!((bank.take(1), bank.take(1)), (Some(3 * ALIGN), None));
    }

    #[test]
    fn memory_that_was_kept_is_given_out_when_nothing_else_is_left_if_it_may_be() {
        for is_used in [false, true] {
            let mut bank = Bank::default();
            bank.limit(3 * ALIGN);
            bank.reuse();
            if is_used {
                bank.reuse_kept();
            }
            let all = [1, ALIGN].map(|bytes| bank.take(bytes).unwrap());
            assert_eq!(all, [0, ALIGN]);
            assert_eq!(bank.untouched(), Some(if is_used { 0 } else { 2 * ALIGN }));
            bank.keep(0);
            bank.keep(ALIGN);
            bank.give_back(0, 1);
            assert_eq!(bank.take(1), Some(2 * ALIGN));
            assert_eq!(bank.take(1), is_used.then_some(0));
            assert_eq!(bank.take(1), None, "what somebody has is not given out");
            bank.give_back(0, 1);
            bank.give_back(ALIGN, ALIGN);
            assert_eq!(bank.take(2 * ALIGN), is_used.then_some(0), "neighbours are one again");
        }
    }
}
