//! Numbers of threads, and whether a thread has ended.

use core::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::edge::{Failure, Outcome};
use crate::status;

/// Of no thread. Zero, so that a table without owners is all zero.
pub(crate) const NOBODY: u64 = 0;
/// Number of a thread that has asked for none yet, or is ending; nothing belongs to it.
const UNNUMBERED: u64 = u64::MAX;

/// Numbers of threads; none is given twice: so many threads are never made.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Says that its thread has ended.
struct Mark(Arc<AtomicBool>);

impl Drop for Mark {
    fn drop(&mut self) {
        // What destructors of this thread do from here on counts as another thread's.
        NUMBER.set(UNNUMBERED);
        // Release: whatever this thread did with its handles comes before; pairs with the load in `has_ended`.
        self.0.store(true, Ordering::Release);
    }
}

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(UNNUMBERED) };
    static MARK: Mark = Mark(Arc::new(AtomicBool::new(false)));
}

/// The calling thread's number.
#[inline(always)]
pub(crate) fn number() -> u64 {
    NUMBER.get()
}

/// A thread, as others see it.
#[derive(Debug)]
pub(crate) struct Thread(Arc<AtomicBool>);

impl Thread {
    /// The calling thread, which has a number from here on.
    pub(crate) fn current() -> Outcome<Thread> {
        let mark = MARK.try_with(|mark| Arc::clone(&mark.0)).map_err(|_| {
            Failure::new(status::WRONG_THREAD, "this thread is ending and takes no handle any more")
        })?;
        if NUMBER.get() == UNNUMBERED {
            // Relaxed: only that numbers differ matters.
            NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        Ok(Thread(mark))
    }

    /// Whether it has ended. After `true`, what it did with its handles is visible.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire: pairs with `Mark::drop`.
        self.0.load(Ordering::Acquire)
    }
}
