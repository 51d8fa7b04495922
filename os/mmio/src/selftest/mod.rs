//! What a mapping really is, measured and told in words.
//!
//! A BAR that was asked for write-combining may have been mapped uncached, a kernel may not be what its vendor says:
//! these are the questions `doctor` answers about a mapping before anybody relies on it. [`mapping`] tells cached,
//! write-combining and uncached apart by what loads and stores cost (HotOS'25 §2.1 relies on it being the second);
//! [`whole_lines`] watches from a second core whether lines leave whole (kPIO+WC §III.A relies on it).

mod lines;

use core::fmt;

pub use lines::{CannotWatch, WholeLines, whole_lines};

use crate::clock::{Calibration, now_ticks};
use crate::{LINE_BYTES, Region, fence};

/// How the CPU treats a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryType {
    /// Loads and stores end in the cache.
    Cached,
    /// Loads go all the way; stores gather in buffers of a line.
    WriteCombining,
    /// Loads and stores go all the way, one by one.
    Uncached,
}

/// What loads and stores of a mapping cost, and what it therefore is. Prints as a sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MappingReport {
    pub memory_type: MemoryType,
    /// Nanoseconds of a load of a word that was just loaded.
    pub load_ns: f64,
    /// Nanoseconds of a store of a word, many to one line in a row.
    pub store_ns: f64,
    /// Nanoseconds of storing a line and waiting until the core's buffers are empty.
    pub flushed_line_ns: f64,
}

/// Above this a load has not come from a cache: second-level caches answer in 5 ns, memory and devices in 60 or more.
const CACHED_LOAD_NS: f64 = 25.0;
/// Above this a store has been a transaction of its own: gathered ones take less than 2 ns, posted ones a device's
/// pace, tens of nanoseconds at least.
const GATHERED_STORE_NS: f64 = 8.0;

/// Measures the mapping by loading and storing one line: `offset_bytes` (a multiple of 64) must be a line that may
/// hold anything, on a device one whose stores mean nothing. Takes about a millisecond, on a slow device some ten.
#[track_caller]
pub fn mapping(region: &Region, offset_bytes: usize) -> MappingReport {
    let words: [_; 8] = core::array::from_fn(|i| region.word(offset_bytes + i * 8));
    assert!(
        offset_bytes.is_multiple_of(LINE_BYTES),
        "offset {offset_bytes} is not a multiple of {LINE_BYTES}"
    );
    let clock = Calibration::measure();
    let load_ns = best_ns(&clock, || {
        words.iter().for_each(|word| {
            core::hint::black_box(word.load());
        });
    }) / 8.0;
    let store_ns = best_ns(&clock, || words.iter().for_each(|word| word.store(1))) / 8.0;
    let flushed_line_ns = best_ns(&clock, || {
        words.iter().for_each(|word| word.store(2));
        fence::flush_write_combining();
    });
    MappingReport { memory_type: memory_type(load_ns, store_ns), load_ns, store_ns, flushed_line_ns }
}

/// A run is at least this many ticks, so that a coarse counter can tell.
const RUN_TICKS: u64 = if cfg!(miri) { 1 } else { 500 };
/// Rounds of the shortest run, which a slow device need not be made to exceed.
const ROUNDS: u32 = if cfg!(miri) { 2 } else { 64 };

/// Nanoseconds of a round in the best of several runs: an interrupted run says nothing about the mapping.
fn best_ns(clock: &Calibration, mut round: impl FnMut()) -> f64 {
    let mut run = |rounds: u32| {
        let start = now_ticks();
        (0..rounds).for_each(|_| round());
        now_ticks() - start
    };
    let mut rounds = ROUNDS;
    while run(rounds) < RUN_TICKS && rounds < 1 << 24 {
        rounds *= 2;
    }
    let best = (0..15).map(|_| run(rounds)).min().unwrap_or(u64::MAX);
    // At least a tick: nothing is free.
    clock.to_ns(best.max(1)) / f64::from(rounds)
}

fn memory_type(load_ns: f64, store_ns: f64) -> MemoryType {
    if load_ns < CACHED_LOAD_NS {
        MemoryType::Cached
    } else if store_ns < GATHERED_STORE_NS {
        MemoryType::WriteCombining
    } else {
        MemoryType::Uncached
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            MemoryType::Cached => "cached",
            MemoryType::WriteCombining => "write-combining",
            MemoryType::Uncached => "uncached",
        })
    }
}

impl fmt::Display for MappingReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MappingReport { memory_type, load_ns, store_ns, flushed_line_ns } = self;
        let so = match memory_type {
            MemoryType::Cached => "stores land in the cache and move by coherence",
            MemoryType::WriteCombining => "stores gather to lines and leave in no order",
            MemoryType::Uncached => "every store leaves by itself, in order, and lines never leave whole",
        };
        write!(
            out,
            "this mapping is {memory_type}: {so} (a load takes {load_ns:.1} ns, a store {store_ns:.1} ns, a line out of \
             the core's buffers {flushed_line_ns:.0} ns)"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_cached() {
        let region = Region::private(4096);
        let report = mapping(&region, 64);
        if !cfg!(miri) {
            assert_eq!(report.memory_type, MemoryType::Cached, "{report}");
        }
        assert!(report.load_ns > 0.0 && report.store_ns > 0.0 && report.flushed_line_ns > 0.0, "{report}");
        assert_eq!((region.word(0).load(), region.word(64).load(), region.word(128).load()), (0, 2, 0));
    }

    /// Figures of the three types: this CPU's memory, and a PCIe 4.0 NIC's BAR (HotOS'25 §2.1 gives 650 ns for a load).
    #[test]
    fn types_are_told_apart_by_what_accesses_cost() {
        assert_eq!(memory_type(0.4, 0.4), MemoryType::Cached);
        assert_eq!(memory_type(650.0, 0.6), MemoryType::WriteCombining);
        assert_eq!(memory_type(650.0, 60.0), MemoryType::Uncached);
        assert_eq!(memory_type(90.0, 40.0), MemoryType::Uncached);
    }

    #[test]
    fn a_report_is_a_sentence() {
        let report = MappingReport {
            memory_type: MemoryType::WriteCombining,
            load_ns: 651.04,
            store_ns: 0.62,
            flushed_line_ns: 95.5,
        };
        let text = report.to_string();
        assert!(text.starts_with("this mapping is write-combining: stores gather to lines"), "{text}");
        assert!(
            text.ends_with("(a load takes 651.0 ns, a store 0.6 ns, a line out of the core's buffers 96 ns)"),
            "{text}"
        );
    }
}
