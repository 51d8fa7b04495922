//! What is made anew in a child of fork: a lock that a thread of its parent held stays locked for ever there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Forks in a row that a family may have; the library does nothing in the child of the last.
const MOST: usize = 256;

/// Forks that led to this process since the library was loaded.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Children that this process has made.
static CHILDREN: AtomicU32 = AtomicU32::new(0);

/// One for each process of a family.
#[derive(Debug)]
pub(crate) struct OfProcess<T>([OnceLock<T>; MOST]);

/// Forks that led to this process.
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// This process is a child of fork, and has one thread.
pub(crate) fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    CHILDREN.store(0, Ordering::Relaxed);
}

/// Children that this process has made, or is about to make.
#[inline]
pub(crate) fn children() -> u32 {
    CHILDREN.load(Ordering::Relaxed)
}

/// This process is about to make a child.
pub(crate) fn before_fork() {
    CHILDREN.fetch_add(1, Ordering::Relaxed);
}

impl<T> OfProcess<T> {
    pub(crate) const fn new() -> Self {
        OfProcess([const { OnceLock::new() }; MOST])
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> Option<&T> {
        Some(self.0.get(forks() as usize)?.get_or_init(make))
    }
}
