//! What a store has done, counted without an atomic operation: each thread has a line of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::protocol::{MAGIC, bytes_of, words};

/// Counts of a store's operations, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvStats {
    /// Keys that have a value.
    pub items: u64,
    /// Memory in use, in bytes, as the bound counts it.
    pub used_bytes: u64,
    pub max_memory_bytes: u64,
    /// Longest value, in bytes.
    pub max_value_bytes: u64,
    /// Threads that answer.
    pub workers: u64,
    /// GETs that found a value.
    pub hits: u64,
    /// GETs that found none.
    pub misses: u64,
    /// Values stored.
    pub sets: u64,
    /// SETs refused: the store was full, or the value too long.
    pub refused: u64,
    /// Keys removed.
    pub deletes: u64,
}

const WORDS: usize = 11;

impl KvStats {
    pub(crate) fn encode(&self) -> impl AsRef<[u8]> {
        bytes_of::<WORDS>([
            MAGIC,
            self.items,
            self.used_bytes,
            self.max_memory_bytes,
            self.max_value_bytes,
            self.workers,
            self.hits,
            self.misses,
            self.sets,
            self.refused,
            self.deletes,
        ])
    }

    /// Reads the answer to STATS; `None` if it is not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let [
            magic,
            items,
            used_bytes,
            max_memory_bytes,
            max_value_bytes,
            workers,
            hits,
            misses,
            sets,
            refused,
            deletes,
        ] = words::<WORDS>(bytes)?;
        (magic == MAGIC).then_some(KvStats {
            items,
            used_bytes,
            max_memory_bytes,
            max_value_bytes,
            workers,
            hits,
            misses,
            sets,
            refused,
            deletes,
        })
    }
}

/// What one thread has done. Only that thread writes; others read whenever they like.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) sets: Counter,
    pub(crate) refused: Counter,
    pub(crate) deletes: Counter,
}

/// A number with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// One more. Only by the thread whose counter it is.
    #[inline(always)]
    pub(crate) fn count(&self) {
        // Relaxed, and no read-modify-write: one thread writes, and nothing is read by the number.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        // Relaxed: as in `count`.
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Adds what this thread has done.
    pub(crate) fn add_to(&self, stats: &mut KvStats) {
        stats.hits += self.hits.get();
        stats.misses += self.misses.get();
        stats.sets += self.sets.get();
        stats.refused += self.refused.get();
        stats.deletes += self.deletes.get();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_parsed_and_other_answers_are_refused() {
        let counters = Counters::default();
        counters.hits.count();
        counters.refused.count();
        let mut stats = KvStats { items: 1, max_memory_bytes: u64::MAX, workers: 3, ..KvStats::default() };
        counters.add_to(&mut stats);
        counters.add_to(&mut stats);
        assert_eq!((stats.hits, stats.refused, stats.misses), (2, 2, 0));
        let bytes = stats.encode();
        assert_eq!(KvStats::decode(bytes.as_ref()), Some(stats));
        let mut other = bytes.as_ref().to_vec();
        other[7] ^= 1;
        assert_eq!(KvStats::decode(&other), None);
        assert_eq!(KvStats::decode(&bytes.as_ref()[8..]), None);
        assert_eq!(KvStats::decode(&[]), None);
    }
}
