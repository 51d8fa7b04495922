//! The memory of a store with one thread: pages of one size, all of which lie in one mapping.
//!
//! Whatever a page was used for, it can be used for anything else, so nothing that is free is ever out of reach, and what the
//! store takes from the system is the mapping at most. Pages take memory at the start, or ahead of their first use by a thread of
//! the mapping's own; where that has come too late, a page takes memory when it is used first.

use beeline_mmio::{MapError, PrivateMemory};

pub(crate) const PAGE_BYTES: usize = 4096;
/// No page, no block.
pub(crate) const NONE: u32 = u32::MAX;
/// Most pages: each of their lines has a number of 32 bits.
const MAX_PAGES: u64 = 1 << 26;
/// Pages after each of which the mapping is told how many are used.
const NOTE_PAGES: u32 = (PrivateMemory::NOTE_BYTES / PAGE_BYTES) as u32;
/// What a store has at most.
pub(crate) const MAX_BYTES: u64 = MAX_PAGES * PAGE_BYTES as u64;

/// Pages, by number.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: PrivateMemory,
    pages: u32,
    /// Pages that were used at least once.
    used: u32,
    /// The first page that was given back, which holds the number of the next one in its first word.
    given_back: u32,
    given_back_count: u32,
}

impl Arena {
    /// As many pages as fit `max_bytes`, none of which is in use.
    pub(crate) fn new(max_bytes: u64) -> Result<Self, MapError> {
        let pages = (max_bytes / PAGE_BYTES as u64).clamp(1, MAX_PAGES) as u32;
        let memory = PrivateMemory::zeroed(pages as usize * PAGE_BYTES)?;
        Ok(Arena { memory, pages, used: 0, given_back: NONE, given_back_count: 0 })
    }

    /// Has every page take its memory now, and not when it is used first.
    pub(crate) fn populate(&mut self) -> Result<(), MapError> {
        self.memory.populate()
    }

    /// Has pages take their memory before they are used, as many as soon may be. Without threads to spare they do when they are used.
    pub(crate) fn bring_in_ahead(&mut self) {
        let _ = self.memory.bring_in_ahead();
    }

    /// Pages there are, used or not.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    /// Pages that are not in use.
    pub(crate) fn free_pages(&self) -> u32 {
        self.given_back_count + (self.pages - self.used)
    }

    /// A page whose bytes may be anything.
    pub(crate) fn take_page(&mut self) -> Option<u32> {
        if self.given_back != NONE {
            let page = self.given_back;
            self.given_back = self.word(page as usize * PAGE_BYTES);
            self.given_back_count -= 1;
            return Some(page);
        }
        if self.used == self.pages {
            return None;
        }
        if self.used.is_multiple_of(NOTE_PAGES) {
            self.note_use();
        }
        self.used += 1;
        Some(self.used - 1)
    }

    /// Says that the next pages are about to be used.
    #[cold]
    fn note_use(&self) {
        self.memory.note_use((self.used + NOTE_PAGES) as usize * PAGE_BYTES);
    }

    /// Gives a page back, which nothing leads to any more.
    pub(crate) fn give_page(&mut self, page: u32) {
        self.set_word(page as usize * PAGE_BYTES, self.given_back);
        self.given_back = page;
        self.given_back_count += 1;
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }

    /// The four bytes at this offset.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes_at(at))
    }

    #[inline(always)]
    pub(crate) fn set_word(&mut self, at: usize, word: u32) {
        self.bytes_mut()[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    /// `N` bytes at this offset.
    #[inline(always)]
    pub(crate) fn bytes_at<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.bytes()[at..].first_chunk().expect("offsets are those of pages")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_given_once_and_again_when_it_came_back() {
        let mut arena = Arena::new(5 * PAGE_BYTES as u64 + 100).unwrap();
        assert_eq!((arena.pages(), arena.free_pages()), (5, 5));
        let pages: Vec<u32> = std::iter::from_fn(|| arena.take_page()).collect();
        assert_eq!((pages, arena.free_pages()), (vec![0, 1, 2, 3, 4], 0));
        for page in [3, 0] {
            arena.give_page(page);
        }
        assert_eq!(arena.free_pages(), 2);
        assert_eq!([arena.take_page(), arena.take_page(), arena.take_page()], [Some(0), Some(3), None]);
    }
}
