//! A list of memory ranges that a signal handler may walk while they come and go: no lock, no allocation, nothing ever freed.
//!
//! Loom runs this very file (`tests/loom_table.rs`), so it knows the atomics of `crate::sync` and nothing else of this crate.

use std::ptr;

use crate::sync::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

/// What is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: usize,
    /// A number of whole pages; 0 of a place that is free.
    pub(crate) bytes: usize,
    /// Bytes of a page, the least that can be mapped anew.
    pub(crate) page_bytes: usize,
    pub(crate) is_writable: bool,
}

impl Range {
    /// What stands in a place that is free: no address is in it.
    pub(crate) const NONE: Range = Range { start: 0, bytes: 0, page_bytes: 0, is_writable: false };
}

/// The list.
#[derive(Debug)]
pub(crate) struct Table {
    first: AtomicPtr<Entry>,
}

/// A mapping, or the place of one that has ended. Places are used again and never freed, so that a handler that walks the list
/// while a mapping ends finds memory there.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Odd while the fields below change.
    version: AtomicUsize,
    start: AtomicUsize,
    bytes: AtomicUsize,
    page_bytes: AtomicUsize,
    is_writable: AtomicBool,
    is_lost: AtomicBool,
    next: AtomicPtr<Entry>,
}

impl Table {
    /// Makes a list of what `first` leads to.
    ///
    /// # Safety
    /// It is null, and nobody else has it.
    pub(crate) const unsafe fn of(first: AtomicPtr<Entry>) -> Self {
        Table { first }
    }

    /// A new place at the head of the list.
    pub(crate) fn append(&self) -> &'static Entry {
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            page_bytes: AtomicUsize::new(0),
            is_writable: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            entry.next.store(first, Ordering::Relaxed);
            // Release: pairs with the acquire of `find`, which sees the entry's fields.
            match self.first.compare_exchange(
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

    /// The mapping that has this address. For a signal handler: loads only.
    pub(crate) fn find(&self, address: usize) -> Option<(&'static Entry, Range)> {
        // Acquire: pairs with the release of `append`.
        let mut next = self.first.load(Ordering::Acquire);
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
}

impl Entry {
    /// Changes the fields. Only whoever took the place from the free list, or is about to put it there, does.
    pub(crate) fn write(&self, range: Range) {
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
    pub(crate) fn read(&self) -> Option<Range> {
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

    /// Notes that memory of the mapping was found to be gone.
    pub(crate) fn mark_lost(&self) {
        // Release: pairs with the acquire of `is_lost`.
        self.is_lost.store(true, Ordering::Release);
    }

    /// Whether memory of the mapping was found to be gone.
    pub(crate) fn is_lost(&self) -> bool {
        // Acquire: pairs with the handler's release in `mark_lost`. Bytes that were loaded before from the page that the handler
        // put there are loaded after its store.
        self.is_lost.load(Ordering::Acquire)
    }
}
