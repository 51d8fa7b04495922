//! Single words of mapped memory: credits, doorbells, registers.

use crate::span::Span;
use crate::sync::{AtomicU64, Ordering};

/// A 64-bit word of mapped memory, little-endian, single-copy atomic. Clones are the same word.
///
/// On a BAR use loads and stores only: a device takes part in no atomic read-modify-write.
#[derive(Clone, Debug)]
pub struct Word {
    span: Span,
}

impl Word {
    pub(crate) fn new(span: Span) -> Self {
        debug_assert!(span.bytes() == 8 && span.start().addr().is_multiple_of(8));
        Word { span }
    }

    #[inline(always)]
    fn atomic(&self) -> &AtomicU64 {
        // SAFETY: the span is 8 bytes, aligned (`Region::word` checks it) and mapped as long as `self`; other
        // processes and this crate only use atomics and asm on it.
        unsafe { AtomicU64::from_ptr(self.span.start().cast()) }
    }

    /// Loads the word; relaxed: nothing may be inferred about other memory.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        u64::from_le(self.atomic().load(Ordering::Relaxed))
    }

    /// Loads the word; acquire: pairs with the peer's [`Word::store_release`].
    #[inline(always)]
    pub fn load_acquire(&self) -> u64 {
        u64::from_le(self.atomic().load(Ordering::Acquire))
    }

    /// Stores the word; relaxed.
    #[inline(always)]
    pub fn store(&self, value: u64) {
        self.atomic().store(value.to_le(), Ordering::Relaxed);
    }

    /// Stores the word; release: pairs with the peer's [`Word::load_acquire`]. It orders cached stores; after
    /// non-temporal ones it needs [`crate::fence::order_stores`] before it.
    #[inline(always)]
    pub fn store_release(&self, value: u64) {
        self.atomic().store(value.to_le(), Ordering::Release);
    }

    /// Swaps the word and gives what it held; acquire and release: pairs with the peer's swap.
    #[inline]
    pub fn swap(&self, value: u64) -> u64 {
        u64::from_le(self.atomic().swap(value.to_le(), Ordering::AcqRel))
    }

    /// Stores `new` if the word holds `current`; otherwise gives what it holds. Acquire and release: pairs with the
    /// peer's.
    #[inline]
    pub fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
        self.atomic()
            .compare_exchange(current.to_le(), new.to_le(), Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(u64::from_le)
    }
}

/// A table of words, a power of two of them, as [`Word`] is one. One handle for all: a handle a word costs 24 bytes and a
/// count.
#[derive(Clone, Debug)]
pub struct Words {
    span: Span,
    mask: usize,
}

impl Words {
    pub(crate) fn new(span: Span) -> Self {
        let words = span.bytes() / 8;
        assert!(words.is_power_of_two(), "a table of {words} words: the number must be a power of two");
        Words { span, mask: words - 1 }
    }

    /// Words of the table.
    pub fn count(&self) -> usize {
        self.mask + 1
    }

    #[inline(always)]
    fn atomic(&self, index: usize) -> &AtomicU64 {
        let place = self.span.start().wrapping_add((index & self.mask) * 8);
        // SAFETY: the masked index is inside the span, which is aligned (`Region::words` checks it) and mapped as long
        // as `self`; other processes and this crate only use atomics and asm on it.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// Loads word `index`, modulo the table; relaxed.
    #[inline(always)]
    pub fn load(&self, index: usize) -> u64 {
        u64::from_le(self.atomic(index).load(Ordering::Relaxed))
    }

    /// Loads word `index`, modulo the table; acquire: pairs with the peer's [`Words::store_release`].
    #[inline(always)]
    pub fn load_acquire(&self, index: usize) -> u64 {
        u64::from_le(self.atomic(index).load(Ordering::Acquire))
    }

    /// Stores word `index`, modulo the table; relaxed.
    #[inline(always)]
    pub fn store(&self, index: usize, value: u64) {
        self.atomic(index).store(value.to_le(), Ordering::Relaxed);
    }

    /// Stores word `index`, modulo the table; release: pairs with the peer's [`Words::load_acquire`] and
    /// [`crate::ReadWords::load_acquire`].
    #[inline(always)]
    pub fn store_release(&self, index: usize, value: u64) {
        self.atomic(index).store(value.to_le(), Ordering::Release);
    }

    /// Raises word `index`, modulo the table, by one; no other raise is lost. Release: pairs with the peer's [`Words::load_acquire`]
    /// and [`crate::ReadWords::load_acquire`].
    #[inline]
    pub fn raise_release(&self, index: usize) {
        if cfg!(target_endian = "little") {
            self.atomic(index).fetch_add(1, Ordering::Release);
            return;
        }
        // The machine adds in its own byte order.
        let mut found = self.atomic(index).load(Ordering::Relaxed);
        loop {
            let raised = u64::from_le(found).wrapping_add(1).to_le();
            let stored =
                self.atomic(index).compare_exchange(found, raised, Ordering::Release, Ordering::Relaxed);
            match stored {
                Ok(_) => return,
                Err(now) => found = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Region;

    #[test]
    fn a_table_is_words_side_by_side_and_wraps() {
        let region = Region::private(96);
        let words = region.words(32, 4);
        words.store(1, 7);
        words.store(6, 9);
        assert_eq!((region.word(40).load(), region.word(48).load()), (7, 9));
        assert_eq!((words.load(5), words.load(2), words.load(0), words.count()), (7, 9, 0, 4));
        words.store_release(7, 3);
        assert_eq!((words.load_acquire(3), region.word(56).load()), (3, 3));
    }

    #[test]
    fn word_that_two_threads_raise_loses_no_raise() {
        let rounds = if cfg!(miri) { 50 } else { 2_000_000 };
        let region = Region::private(64);
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (words, both) = (region.words(0, 8), &both);
                scope.spawn(move || {
                    both.wait();
                    (0..rounds).for_each(|_| words.raise_release(11));
                });
            }
        });
        assert_eq!((region.word(24).load(), region.word(32).load()), (2 * rounds, 0));
        region.word(0).store(u64::MAX);
        region.words(0, 8).raise_release(0);
        assert_eq!(region.word(0).load(), 0);
    }

    #[test]
    #[should_panic(expected = "must be a power of two")]
    fn a_table_is_a_power_of_two() {
        Region::private(96).words(0, 3);
    }

    #[test]
    fn a_word_is_little_endian_in_memory() {
        let region = Region::private(64);
        region.word(8).store(0x0807_0605_0403_0201);
        let mut bytes = [0; 8];
        region.copy_out(8, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
        let word = region.word(8);
        assert_eq!(word.swap(5), 0x0807_0605_0403_0201);
        assert_eq!(word.compare_exchange(4, 6), Err(5));
        assert_eq!(word.compare_exchange(5, 6), Ok(()));
        assert_eq!((word.load(), word.load_acquire()), (6, 6));
    }

    #[test]
    fn a_word_outlives_its_region() {
        let region = Region::private(4096);
        let word = region.word(4088);
        drop(region);
        word.store_release(9);
        assert_eq!(word.clone().load_acquire(), 9);
    }

    #[test]
    #[should_panic(expected = "8 bytes at offset 64 reach outside a region of 64 bytes")]
    fn a_word_past_the_end_is_refused() {
        Region::private(64).word(64);
    }

    #[test]
    #[should_panic(expected = "offset 4 is not a multiple of 8")]
    fn a_word_across_words_is_refused() {
        Region::private(64).word(4);
    }

    /// Two threads store words whose halves agree; a third sees no word whose halves do not.
    #[test]
    fn a_word_is_single_copy_atomic() {
        let rounds = if cfg!(miri) { 200 } else { 300_000 };
        let region = Region::private(64);
        std::thread::scope(|scope| {
            for base in [1u64, 1 << 31] {
                let word = region.word(24);
                scope.spawn(move || {
                    for i in 0..rounds {
                        let half = base + i;
                        word.store(half << 32 | half);
                    }
                });
            }
            let word = region.word(24);
            for _ in 0..rounds {
                let value = word.load();
                assert_eq!(value >> 32, value & 0xffff_ffff, "torn word {value:#x}");
            }
        });
    }
}
