//! The ring in which a client tells its owner what it does with its windows, without a packet.
//!
//! The client alone stores into it: an entry, then the count of all that it has told. The owner loads the count, and each entry once.
//! It does not believe either: a count that goes back, or runs further ahead than there are entries, ends the connection, and what an
//! entry says is checked by whoever hears it. An honest client never overwrites an entry that was not heard, since the owner lends a
//! window anew only after it has heard of the last one of that name.
//!
//! Who hears is not told of each entry: the client looks at a word that the owner sets before it sleeps (`crate::protocol`).

use beeline_mmio::{Region, Word, Words};
use beeline_spec::formats::{ARENA_TELLS, arena_client_memory};

use super::options::{CREDIT_BYTES, TELLS_OFFSET};
use super::slots::OutOfPlace;

/// The memory of the ring; a model of it under loom.
pub(super) trait TellMemory {
    /// Loads the count; acquire: pairs with `publish`, so that whoever sees a count sees the entries before it, and what the client
    /// stored before it told of it.
    fn told(&self) -> u64;
    /// Stores the count; release.
    fn publish(&self, told: u64);
    /// Loads the entry of a count; relaxed.
    fn load(&self, at: u64) -> u64;
    /// Stores the entry of a count; relaxed.
    fn store(&self, at: u64, entry: u64);
}

/// The ring in a client's memory.
#[derive(Debug)]
pub(super) struct TellRing {
    told: Word,
    entries: Words,
}

impl TellRing {
    /// The ring behind the credits of a client's memory.
    pub(super) fn of(memory: &Region) -> Self {
        TellRing {
            told: memory.word(CREDIT_BYTES + arena_client_memory::TOLD_OFFSET),
            entries: memory.words(TELLS_OFFSET, ARENA_TELLS),
        }
    }
}

impl TellMemory for TellRing {
    #[inline]
    fn told(&self) -> u64 {
        self.told.load_acquire()
    }

    fn publish(&self, told: u64) {
        self.told.store_release(told);
    }

    fn load(&self, at: u64) -> u64 {
        self.entries.load(at as usize % ARENA_TELLS)
    }

    fn store(&self, at: u64, entry: u64) {
        self.entries.store(at as usize % ARENA_TELLS, entry);
    }
}

/// The client's end.
#[derive(Debug, Default)]
pub(super) struct Teller {
    told: u64,
}

impl Teller {
    pub(super) fn tell(&mut self, memory: &impl TellMemory, entry: u64) {
        memory.store(self.told, entry);
        // Not loaded back: the owner could have changed it.
        self.told = self.told.wrapping_add(1);
        memory.publish(self.told);
    }
}

/// The owner's end.
#[derive(Debug, Default)]
pub(super) struct Hearer {
    heard: u64,
    /// The last count that was loaded.
    told: u64,
}

impl Hearer {
    /// How many entries have been heard.
    pub(super) fn heard(&self) -> u64 {
        self.heard
    }

    /// The next entry, if there is one.
    ///
    /// # Errors
    /// The count is not one that an honest client stores.
    pub(super) fn next(&mut self, memory: &impl TellMemory) -> Result<Option<u64>, OutOfPlace> {
        if self.heard == self.told {
            let told = memory.told();
            if told.wrapping_sub(self.heard) > ARENA_TELLS as u64 {
                return Err(OutOfPlace);
            }
            self.told = told;
        }
        if self.heard == self.told {
            return Ok(None);
        }
        let entry = memory.load(self.heard);
        self.heard = self.heard.wrapping_add(1);
        Ok(Some(entry))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::window::arena::options::CLIENT_BYTES;

    #[test]
    fn entries_come_once_and_in_order_however_often_the_ring_goes_round() {
        let ring = TellRing::of(&Region::private(CLIENT_BYTES));
        let (mut teller, mut hearer) = (Teller::default(), Hearer::default());
        assert_eq!(hearer.next(&ring), Ok(None));
        let (mut told, mut heard) = (0, 0);
        for many in [1, ARENA_TELLS, 7, ARENA_TELLS - 1, ARENA_TELLS] {
            for _ in 0..many {
                told += 1;
                teller.tell(&ring, told);
            }
            while let Some(entry) = hearer.next(&ring).unwrap() {
                heard += 1;
                assert_eq!(entry, heard);
            }
            assert_eq!((heard, hearer.heard()), (told, told));
        }
    }

    #[test]
    fn counts_of_no_honest_client_are_refused() {
        let ring = TellRing::of(&Region::private(CLIENT_BYTES));
        let (mut teller, mut hearer) = (Teller::default(), Hearer::default());
        (0..3).for_each(|entry| teller.tell(&ring, entry));
        while hearer.next(&ring).unwrap().is_some() {}
        for count in [0, 2, u64::MAX, 1 << 63, 4 + ARENA_TELLS as u64] {
            ring.publish(count);
            assert_eq!(hearer.next(&ring), Err(OutOfPlace), "{count}");
        }
        ring.publish(3);
        assert_eq!(hearer.next(&ring), Ok(None));
    }
}

#[cfg(test)]
#[cfg(loom)]
#[path = "tells_loom.rs"]
mod loom_models;
