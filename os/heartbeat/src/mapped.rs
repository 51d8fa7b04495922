//! The two lines of a link in memory that both sides map: a plain file, memory that two guests share, a BAR that shows it.

use beeline_contract_link::StatePort;
use beeline_contract_memory::Line;
use beeline_mmio::{Region, WORD_BYTES, Word};
use beeline_spec::formats::link_state;

use crate::line::{LineWords, load_line, store_line};

/// Which of the two lines a side stores. The sides agree on it before they meet, as by their numbers in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    First,
    Second,
}

impl Side {
    /// The side of the peer.
    pub fn other(self) -> Self {
        match self {
            Side::First => Side::Second,
            Side::Second => Side::First,
        }
    }

    fn offset_bytes(self) -> usize {
        match self {
            Side::First => link_state::FIRST_OFFSET,
            Side::Second => link_state::SECOND_OFFSET,
        }
    }
}

/// The lines of a link in mapped memory, as one side uses them. The mapping lives as long as this.
#[derive(Debug)]
pub struct MappedState {
    ours: Words,
    theirs: Words,
}

impl MappedState {
    /// Bytes of the memory, which is all zero before the first side comes.
    pub const BYTES: usize = link_state::BYTES;

    /// The lines at `offset_bytes` of a region, a multiple of 64, as `side` uses them.
    ///
    /// # Panics
    /// If they are not in the region.
    #[track_caller]
    pub fn new(region: &Region, offset_bytes: usize, side: Side) -> Self {
        assert!(offset_bytes.is_multiple_of(64), "offset {offset_bytes} is not a multiple of 64");
        let words = |side: Side| {
            let first = offset_bytes + side.offset_bytes();
            Words(std::array::from_fn(|at| region.word(first + at * WORD_BYTES)))
        };
        MappedState { ours: words(side), theirs: words(side.other()) }
    }
}

impl StatePort for MappedState {
    fn push(&mut self, line: &Line) {
        store_line(&self.ours, line);
    }

    fn look(&mut self) -> Line {
        load_line(&self.theirs)
    }

    fn pushed(&mut self) -> Option<Line> {
        Some(load_line(&self.ours))
    }
}

#[derive(Debug)]
struct Words([Word; 8]);

impl LineWords for Words {
    #[inline]
    fn store(&self, at: usize, word: u64) {
        self.0[at].store(word);
    }

    #[inline]
    fn store_release(&self, at: usize, word: u64) {
        self.0[at].store_release(word);
    }

    #[inline]
    fn load(&self, at: usize) -> u64 {
        self.0[at].load()
    }

    #[inline]
    fn load_acquire(&self, at: usize) -> u64 {
        self.0[at].load_acquire()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn sides_see_each_other_and_nothing_else_is_touched() {
        let region = Region::private(1024);
        region.fill(0, 1024, u64::MAX);
        let mut sides = [Side::First, Side::Second].map(|side| MappedState::new(&region, 512, side));
        sides[0].push(&[1; 8]);
        sides[1].push(&[2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((sides[0].look(), sides[0].pushed()), ([2, 3, 4, 5, 6, 7, 8, 9], Some([1; 8])));
        assert_eq!((sides[1].look(), sides[1].pushed()), ([1; 8], Some([2, 3, 4, 5, 6, 7, 8, 9])));
        let touched = (0..128).filter(|word| region.word(word * 8).load() != u64::MAX).collect::<Vec<_>>();
        assert_eq!(touched, (64..72).chain(80..88).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn lines_outside_the_memory_are_refused() {
        MappedState::new(&Region::private(256), 128, Side::First);
    }
}
