//! Bells: a flag for each interrupt of a member, in memory that all who may trigger one store into.
//!
//! There is nothing in that memory but flags. A peer that stores anything into it wakes somebody for nothing, or lets somebody
//! sleep on for [`MAX_SLEEP`]; what is taken is somewhere else.

use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, compiler_fence, fence};
use std::time::Duration;

use beeline_fabric::{Bell, Slot};
use beeline_mmio::{Flag, MemoryOptions, Region, SharedMemory, membarrier};

use crate::words::WordsError;

/// The longest sleep. A peer that takes a flag down and wakes nobody costs who waits so long.
pub(crate) const MAX_SLEEP: Duration = Duration::from_secs(1);

/// A line for each flag, and a flag for each entry of a board.
const STRIDE_BYTES: usize = 64;
/// Bytes of the memory.
pub(crate) const BELLS_BYTES: usize = STRIDE_BYTES << 16;

/// The flags of one member, mapped.
#[derive(Clone, Debug)]
pub(crate) struct Bells(Region);

impl Bells {
    /// The flags of this member, and what others map of them.
    pub(crate) fn create() -> Result<(Self, SharedMemory), WordsError> {
        let memory = SharedMemory::create("beeline-bells", BELLS_BYTES, MemoryOptions::default())?;
        Ok((Self::map(&memory)?, memory))
    }

    /// Those of another member, which has passed them.
    pub(crate) fn of(fd: OwnedFd) -> Result<Self, WordsError> {
        Self::map(&SharedMemory::from_fd(fd, BELLS_BYTES)?)
    }

    fn map(memory: &SharedMemory) -> Result<Self, WordsError> {
        Ok(Bells(map_for_itself(memory)?))
    }

    pub(crate) fn flag(&self, slot: Slot) -> Flag {
        self.0.flag(usize::from(slot.0) * STRIDE_BYTES)
    }

    /// The flag that threads sleep on which wait for one of several things. It is in the line of the last entry, which is used last.
    pub(crate) fn watchers(&self) -> Flag {
        self.0.flag(BELLS_BYTES - STRIDE_BYTES / 2)
    }
}

/// Maps memory that children of fork do not have.
pub(crate) fn map_for_itself(memory: &SharedMemory) -> Result<Region, WordsError> {
    let region = memory.map_sparse().map_err(WordsError::Memory)?;
    region.dont_fork().map_err(|errno| WordsError::Fork(errno.into()))
}

/// One flag, as a thread uses it.
#[derive(Clone, Debug)]
pub(crate) struct FlagBell {
    flag: Flag,
    /// What who waits for one of several sleeps on; nothing where nobody does who has this flag watched.
    watchers: Option<Flag>,
    /// Whether whoever triggers passes a fence. Nobody has to where both sides have membarrier.
    is_fenced: bool,
    /// The longest sleep of this thread.
    limit: Duration,
}

impl FlagBell {
    /// For who triggers an interrupt.
    pub(crate) fn of_triggerer(flag: Flag, watchers: Flag, is_fenced: bool) -> Self {
        FlagBell { flag, watchers: Some(watchers), is_fenced, limit: Duration::ZERO }
    }

    /// For who sleeps, at most `limit`.
    pub(crate) fn of_sleeper(flag: Flag, limit: Duration) -> Self {
        FlagBell { flag, watchers: None, is_fenced: false, limit: limit.min(MAX_SLEEP) }
    }

    /// For who sleeps on a flag that threads of this process alone take down, after a system call or a fence, and for these.
    pub(crate) fn of_rung(flag: Flag) -> Self {
        FlagBell { flag, watchers: None, is_fenced: true, limit: MAX_SLEEP }
    }

    /// Makes each sleep at most so long.
    pub(crate) fn at_most(self, limit: Duration) -> Self {
        FlagBell { limit: limit.min(self.limit), ..self }
    }
}

impl Bell for FlagBell {
    #[inline]
    fn load(&self) -> u32 {
        self.flag.load()
    }

    fn swap(&self, value: u32) -> u32 {
        self.flag.swap(value)
    }

    fn sleep(&self, expected: u32) {
        self.flag.wait(expected, self.limit);
    }

    fn wake(&self) {
        self.flag.wake(u32::MAX);
    }

    fn wake_watchers(&self) {
        if let Some(watchers) = &self.watchers
            && watchers.load() != 0
            && watchers.swap(0) != 0
        {
            watchers.wake(u32::MAX);
        }
    }

    #[inline]
    fn light(&self) {
        if self.is_fenced {
            // Pairs with the fence in `heavy`.
            fence(Ordering::SeqCst);
        } else {
            // Keeps the compiler from moving the load of the flag up; the membarrier of `heavy` does it for the CPU.
            compiler_fence(Ordering::SeqCst);
        }
    }

    fn heavy(&self) {
        if !self.is_fenced {
            // Whoever triggers and is not reached by it knows that, and passes a fence.
            let _refused = membarrier::global_expedited();
        }
        // Pairs with the fence in `light`.
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use beeline_mmio::MapError;

    use super::*;

    #[test]
    fn flags_of_the_first_and_the_last_entry_are_the_same_for_who_has_the_memory() {
        let (own, memory) = Bells::create().unwrap();
        let theirs = Bells::of(memory.into_fd()).unwrap();
        for slot in [Slot(0), Slot(u16::MAX)] {
            own.flag(slot).store(7);
            assert_eq!(theirs.flag(slot).load(), 7);
        }
        assert_eq!(theirs.flag(Slot(1)).load(), 0);
        let other = SharedMemory::create("beeline-test", 4096, MemoryOptions::default()).unwrap();
        let refused = Bells::of(other.into_fd());
        assert!(matches!(refused, Err(WordsError::Memory(MapError::WrongSize { .. }))), "{refused:?}");
    }
}
