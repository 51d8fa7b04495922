//! The mappings of this process that are guarded.

use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::table::{Entry, Range, Table};
use crate::PerProcess;
use crate::sync::AtomicPtr;

// SAFETY: null.
static TABLE: Table = unsafe { Table::of(AtomicPtr::new(ptr::null_mut())) };
/// Places that no mapping has. A forked child begins with none: a thread of its parent may have had the lock, or have been about to
/// fill a place that it had taken.
static FREE: PerProcess<Mutex<Vec<&'static Entry>>> = PerProcess::new();

fn free() -> MutexGuard<'static, Vec<&'static Entry>> {
    FREE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mapping that has this address. For a signal handler: loads only.
pub(super) fn find(address: usize) -> Option<(&'static Entry, Range)> {
    TABLE.find(address)
}

/// A mapping in the list, until this is dropped; that must be before the mapping ends.
#[derive(Debug)]
pub(crate) struct Watched(&'static Entry);

impl Watched {
    /// Enters a mapping that nobody accesses yet.
    pub(crate) fn new(range: Range) -> Self {
        let place = free().pop();
        let entry = place.unwrap_or_else(|| TABLE.append());
        entry.write(range);
        Watched(entry)
    }

    /// Whether memory of the mapping was found to be gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Takes the mapping off the list, and returns what enters it again, with the bytes from its start on that it still has.
    pub(crate) fn again(self) -> impl FnOnce(usize) -> Watched {
        let (range, was_lost) = (self.0.read(), self.is_lost());
        move |bytes| {
            let range = range.expect("a mapping's own place changes only when it ends");
            let watched = Watched::new(Range { bytes, ..range });
            if was_lost {
                watched.0.mark_lost();
            }
            watched
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.write(Range::NONE);
        free().push(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicBool, Ordering};

    /// Addresses that nothing is mapped at; a base for each test, because the list is one for the process. Each differs from the
    /// others in all that is noted.
    fn range(base: usize, number: usize) -> Range {
        Range {
            start: base + number * 0x10_0000,
            bytes: (number + 1) * 0x2000,
            page_bytes: 4096 << number,
            is_writable: number.is_multiple_of(2),
        }
    }

    #[test]
    fn address_finds_its_mapping_and_no_other() {
        let ranges: Vec<Range> = (0..5).map(|number| range(0x1_0000_0000, number)).collect();
        let watched: Vec<Watched> = ranges.iter().copied().map(Watched::new).collect();
        for (range, watched) in ranges.iter().zip(&watched) {
            for address in [range.start, range.start + range.bytes - 1] {
                let (entry, found) = find(address).unwrap();
                assert_eq!(found, *range);
                assert!(ptr::eq(entry, watched.0));
            }
            assert!(find(range.start - 1).is_none() && find(range.start + range.bytes).is_none());
        }
        find(ranges[3].start).unwrap().0.mark_lost();
        let lost: Vec<bool> = watched.iter().map(Watched::is_lost).collect();
        assert_eq!(lost, [false, false, false, true, false]);
        drop(watched);
        assert!(ranges.iter().all(|range| find(range.start).is_none()));
    }

    #[test]
    fn place_of_a_lost_mapping_is_intact_for_the_next_one() {
        for _ in 0..3 {
            let range = range(0x2_0000_0000, 1);
            let watched = Watched::new(range);
            assert!(!watched.is_lost());
            find(range.start).unwrap().0.mark_lost();
            assert!(watched.is_lost());
        }
    }

    #[test]
    fn mapping_that_could_not_end_is_watched_as_before() {
        let range = range(0x4_0000_0000, 1);
        let watched = Watched::new(range);
        find(range.start).unwrap().0.mark_lost();
        let again = watched.again();
        assert!(find(range.start).is_none());
        let watched = again(range.bytes);
        assert!(watched.is_lost() && find(range.start).map(|(_, found)| found) == Some(range));
    }

    #[test]
    fn place_that_changes_is_read_whole_or_not_at_all() {
        let (entry, ranges) = (TABLE.append(), [range(0x5_0000_0000, 1), range(0x6_0000_0000, 2)]);
        entry.write(ranges[0]);
        let is_over = AtomicBool::new(false);
        let reads = if cfg!(miri) { 100 } else { 3_000_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Relaxed: nothing is inferred from it.
                while !is_over.load(Ordering::Relaxed) {
                    entry.write(ranges[1]);
                    entry.write(ranges[0]);
                }
            });
            let mut torn = None;
            for _ in 0..reads {
                torn = torn.or(entry.read().filter(|found| !ranges.contains(found)));
            }
            // Relaxed: as above.
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(torn, None);
        });
        entry.write(Range::NONE);
    }

    /// A handler that walks the list while mappings come and go finds what stays, and never a mix of two mappings.
    #[test]
    fn list_is_walked_while_mappings_come_and_go() {
        let stays = range(0x3_0000_0000, 0);
        let _stays = Watched::new(stays);
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|scope| {
            for thread in 1..=2 {
                scope.spawn(move || {
                    for round in 0..rounds {
                        let base = 0x3_0000_0000 + thread * 0x1000_0000;
                        let _ends =
                            [Watched::new(range(base, round % 7)), Watched::new(range(base, 7 + round % 5))];
                    }
                });
            }
            for round in 0..rounds {
                assert_eq!(find(stays.start).map(|(_, found)| found), Some(stays));
                let base = 0x3_0000_0000 + 0x1000_0000;
                if let Some((_, found)) = find(base + round % 7 * 0x10_0000) {
                    assert_eq!(found, range(base, round % 7));
                }
            }
        });
    }
}
