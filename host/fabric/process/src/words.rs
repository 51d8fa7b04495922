//! Boards and claims as memory: one process stores, others have it mapped for reading.
//!
//! The kernel refuses every other process a mapping that stores, so what a member publishes is its own
//! ([`ReadOnlyMemory`]). Nothing of it is inherited by children of fork, which would publish in their parent's name.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

use beeline_contract_adapter::{Adapter, CountPort, PublishPort, Unconfirmed, ViewPort};
use beeline_fabric::{BOARD_WORDS, USE_WORDS};
use beeline_mmio::{MapError, ReadOnlyMemory, ReadWord, ReadWords, Words};

/// Words of a table that has a board: tables are powers of two.
pub(crate) const BOARD: usize = (BOARD_WORDS as usize).next_power_of_two();
/// Words of a table that has claims, and counts of triggers.
pub(crate) const CLAIMS: usize = (USE_WORDS as usize).next_power_of_two();

/// Why words of a board or of claims are not to be had.
#[derive(Debug, thiserror::Error)]
pub enum WordsError {
    /// There is no memory for them, or they are not what they should be.
    #[error(transparent)]
    Memory(#[from] MapError),
    /// Children of fork would have them, too.
    #[error("cannot keep memory from children of fork: {0}")]
    Fork(io::Error),
}

/// Words that this process publishes.
#[derive(Clone, Debug)]
pub(crate) struct Published(Words);

/// Words that another member publishes, or this one to itself.
#[derive(Clone, Debug)]
pub(crate) struct View(ReadWords);

/// Members that have memory in common.
#[derive(Debug)]
pub(crate) struct Coherent;

impl Adapter for Coherent {
    type Board = Published;
    type Claims = Published;
    type View = View;
}

impl Published {
    /// A table of zeros: the words, this process's own view of them, and what others map.
    pub(crate) fn new(name: &str, words: usize) -> Result<(Self, View, ReadOnlyMemory), WordsError> {
        let (region, memory) = ReadOnlyMemory::create_sparse(name, words * 8)?;
        let region = region.dont_fork().map_err(|errno| WordsError::Fork(errno.into()))?;
        Ok((Published(region.words(0, words)), View(region.read_words(0, words)), memory))
    }
}

impl PublishPort for Published {
    fn publish(&mut self, word: u32, value: u64) {
        // Pairs with the load of `View`.
        self.0.store_release(word as usize, value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        // Pairs with the barrier of the other side's words.
        fence(Ordering::SeqCst);
        Ok(())
    }
}

impl CountPort for Published {
    fn raise(&self, word: u32) {
        // Pairs with the load of `View`.
        self.0.raise_release(word as usize);
    }
}

impl View {
    /// A table of so many words that another process has passed.
    pub(crate) fn of(fd: OwnedFd, words: usize) -> Result<Self, WordsError> {
        let region = ReadOnlyMemory::from_fd(fd, words * 8)?.map_sparse()?;
        let region = region.dont_fork().map_err(|errno| WordsError::Fork(errno.into()))?;
        Ok(View(region.read_words(0, words)))
    }
}

impl View {
    /// For who looks at one word again and again: its place is found once.
    pub(crate) fn word(&self, word: u32) -> ReadWord {
        self.0.word(word as usize)
    }
}

impl ViewPort for View {
    #[inline]
    fn load(&self, word: u32) -> u64 {
        // Pairs with the store of `Published`.
        self.0.load_acquire(word as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_publishes_others_see_and_cannot_store() {
        let (mut own, own_view, memory) = Published::new("beeline-test", CLAIMS).unwrap();
        let passed = || memory.fd().try_clone_to_owned().unwrap();
        let view = View::of(passed(), CLAIMS).unwrap();
        let last = USE_WORDS - 1;
        assert_eq!((view.load(0), view.load(last)), (0, 0));
        own.publish(last, 7);
        own.barrier().unwrap();
        assert_eq!((view.load(last), own_view.load(last), view.load(0)), (7, 7, 0));
        own.clone().raise(last);
        assert_eq!(view.load(last), 8);
        let written = beeline_mmio::SharedMemory::from_fd(passed(), CLAIMS * 8);
        assert!(matches!(written, Err(MapError::ReadOnly { .. })), "{written:?}");
        assert!(matches!(View::of(passed(), BOARD / 2), Err(WordsError::Memory(MapError::WrongSize { .. }))));
    }
}
