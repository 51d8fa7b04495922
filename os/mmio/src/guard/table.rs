//! The mappings that are guarded, in a list that a signal handler may walk: no lock, no allocation, nothing ever freed.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::sync::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

/// A mapping, or the place of one that has ended. Places are used again and never freed, so that a handler that walks the list
/// while a mapping ends finds memory there.
#[derive(Debug)]
pub(super) struct Entry {
    /// Odd while the fields below change.
    version: AtomicUsize,
    start: AtomicUsize,
    /// A number of whole pages; 0 for a place that is free.
    bytes: AtomicUsize,
    page_bytes: AtomicUsize,
    is_writable: AtomicBool,
    is_lost: AtomicBool,
    next: AtomicPtr<Entry>,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
static FREE: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

/// What is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: usize,
    /// A number of whole pages.
    pub(crate) bytes: usize,
    /// Bytes of a page, the least that can be mapped anew.
    pub(crate) page_bytes: usize,
    pub(crate) is_writable: bool,
}

/// A mapping in the list, until this is dropped; that must be before the mapping ends.
#[derive(Debug)]
pub(crate) struct Watched(&'static Entry);

impl Watched {
    /// Enters a mapping that nobody accesses yet.
    pub(crate) fn new(range: Range) -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let entry = free.unwrap_or_else(append);
        entry.write(range);
        Watched(entry)
    }

    /// Whether memory of the mapping was found to be gone.
    pub(crate) fn is_lost(&self) -> bool {
        // Acquire: pairs with the handler's release in `mark_lost`. Bytes that were loaded before from the page that the handler
        // put there are loaded after its store.
        self.0.is_lost.load(Ordering::Acquire)
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
        self.0.write(Range { start: 0, bytes: 0, page_bytes: 0, is_writable: false });
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// A new place at the head of the list.
fn append() -> &'static Entry {
    let entry: &'static Entry = Box::leak(Box::new(Entry {
        version: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        page_bytes: AtomicUsize::new(0),
        is_writable: AtomicBool::new(false),
        is_lost: AtomicBool::new(false),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    let mut first = FIRST.load(Ordering::Relaxed);
    loop {
        entry.next.store(first, Ordering::Relaxed);
        // Release: pairs with the acquire of `find`, which sees the entry's fields.
        match FIRST.compare_exchange(
            first,
            ptr::from_ref(entry).cast_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            Ok(_) => return entry,
            Err(found) => first = found,
        }
    }
}

impl Entry {
    /// Changes the fields. Only whoever took the place from the free list, or is about to put it there, does.
    fn write(&self, range: Range) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        // Release: who sees a field below sees the odd version too; pairs with the acquire fence of `read`.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.bytes.store(range.bytes, Ordering::Relaxed);
        self.page_bytes.store(range.page_bytes, Ordering::Relaxed);
        self.is_writable.store(range.is_writable, Ordering::Relaxed);
        self.is_lost.store(false, Ordering::Relaxed);
        // Release: who sees the even version sees the fields; pairs with the acquire of `read`.
        self.version.store(version + 2, Ordering::Release);
    }

    /// The fields, unless they are changing: then the mapping begins or ends and nobody accesses it.
    fn read(&self) -> Option<Range> {
        // Acquire: pairs with the release of `write`.
        let before = self.version.load(Ordering::Acquire);
        let range = Range {
            start: self.start.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            page_bytes: self.page_bytes.load(Ordering::Relaxed),
            is_writable: self.is_writable.load(Ordering::Relaxed),
        };
        // Acquire: the loads above are made before that of the version; pairs with the release fence of `write`.
        fence(Ordering::Acquire);
        let after = self.version.load(Ordering::Relaxed);
        (before == after && before.is_multiple_of(2)).then_some(range)
    }

    pub(super) fn mark_lost(&self) {
        // Release: pairs with the acquire of `Watched::is_lost`.
        self.is_lost.store(true, Ordering::Release);
    }
}

/// The mapping that has this address. For a signal handler: loads only.
pub(super) fn find(address: usize) -> Option<(&'static Entry, Range)> {
    // Acquire: pairs with the release of `append`.
    let mut next = FIRST.load(Ordering::Acquire);
    // SAFETY: entries are leaked boxes, so that each pointer of the list is null or points to one forever.
    while let Some(entry) = unsafe { next.as_ref() } {
        if let Some(range) = entry.read()
            && address.wrapping_sub(range.start) < range.bytes
        {
            return Some((entry, range));
        }
        // Relaxed: stored before the entry was published.
        next = entry.next.load(Ordering::Relaxed);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (entry, ranges) = (append(), [range(0x5_0000_0000, 1), range(0x6_0000_0000, 2)]);
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
        entry.write(Range { start: 0, bytes: 0, page_bytes: 0, is_writable: false });
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
