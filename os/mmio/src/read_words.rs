//! Words of memory that somebody else writes and this side only loads.

use crate::arch::words;
use crate::span::Span;
use crate::sync::{Ordering, fence};

/// A table of words, a power of two of them, as [`crate::Words`] is one, without a method that stores: it can be made of a
/// [`crate::ReadOnlyRegion`]. Clones are the same table.
#[derive(Clone, Debug)]
pub struct ReadWords {
    span: Span,
    mask: usize,
}

impl ReadWords {
    pub(crate) fn new(span: Span) -> Self {
        let words = span.bytes() / 8;
        assert!(words.is_power_of_two(), "a table of {words} words: the number must be a power of two");
        assert!(span.start().addr().is_multiple_of(8));
        ReadWords { span, mask: words - 1 }
    }

    /// Words of the table.
    pub fn count(&self) -> usize {
        self.mask + 1
    }

    /// Loads word `index`, modulo the table; relaxed: nothing may be inferred about other memory.
    #[inline(always)]
    pub fn load(&self, index: usize) -> u64 {
        let place = self.span.start().wrapping_add((index & self.mask) * 8);
        // SAFETY: the masked index is inside the span, which is whole aligned words (`new`).
        unsafe { words::load_word(place) }
    }

    /// Word `index`, modulo the table, by itself.
    pub fn word(&self, index: usize) -> ReadWord {
        ReadWord(self.span.word((index & self.mask) * 8))
    }

    /// Loads word `index`, modulo the table; acquire: pairs with the writer's [`crate::Words::store_release`].
    #[inline(always)]
    pub fn load_acquire(&self, index: usize) -> u64 {
        let word = self.load(index);
        // Pairs with the release of the store that gave the word. A relaxed load and a fence: Rust defines no other order for
        // atomics in memory that cannot be written.
        fence(Ordering::Acquire);
        word
    }
}

/// One word of a [`ReadWords`]. Clones are the same word.
#[derive(Clone, Debug)]
pub struct ReadWord(Span);

impl ReadWord {
    /// Loads the word; acquire: as [`ReadWords::load_acquire`].
    #[inline(always)]
    pub fn load_acquire(&self) -> u64 {
        // SAFETY: the span is one aligned word (`ReadWords::word`).
        let word = unsafe { words::load_word(self.0.start()) };
        // Pairs with the release of the store that gave the word, as in `ReadWords::load_acquire`.
        fence(Ordering::Acquire);
        word
    }
}

#[cfg(test)]
mod tests {
    use crate::Region;

    #[test]
    fn word_by_itself_is_that_of_the_table() {
        let region = Region::private(64);
        let (words, read) = (region.words(0, 8), region.read_words(0, 8));
        let word = read.word(8 + 7);
        words.store_release(7, 9);
        assert_eq!((word.load_acquire(), read.word(6).load_acquire()), (9, 0));
    }

    #[test]
    fn table_shows_what_is_stored_into_the_memory_and_wraps() {
        let region = Region::private(96);
        let (ours, theirs) = (region.words(32, 4), region.read_words(32, 4));
        ours.store(1, 7);
        ours.store_release(2, 1 << 63 | 9);
        assert_eq!((theirs.load(1), theirs.load_acquire(6), theirs.load(0)), (7, 1 << 63 | 9, 0));
        assert_eq!(theirs.clone().count(), 4);
    }

    #[test]
    fn word_that_is_seen_comes_with_what_was_stored_before_it() {
        let region = Region::private(64);
        let (ours, theirs) = (region.words(0, 8), region.read_words(0, 8));
        let rounds = if cfg!(miri) { 20 } else { 10_000 };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for round in 1..=rounds {
                    ours.store(0, round);
                    ours.store_release(1, round);
                }
            });
            loop {
                let seen = theirs.load_acquire(1);
                let before = theirs.load(0);
                assert!(before >= seen, "{before} {seen}");
                if seen == rounds {
                    break;
                }
                std::hint::spin_loop();
            }
        });
    }

    #[test]
    #[should_panic(expected = "must be a power of two")]
    fn table_is_a_power_of_two() {
        Region::private(96).read_words(0, 3);
    }

    #[test]
    #[should_panic(expected = "reach outside")]
    fn table_past_the_end_is_refused() {
        Region::private(96).read_words(64, 8);
    }
}
