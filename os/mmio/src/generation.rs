//! Processes of one family, counted.
//!
//! Loom runs this very file (`tests/loom_per_process.rs`), so it knows the atomics of `crate::sync` and nothing else of this crate.

use crate::sync::{AtomicU64, Ordering};

/// The number of this process among its ancestors and itself. `mark` holds it once it has one, and is zero in a new process; `last` is
/// the latest number that was given, also in ancestors.
#[inline]
pub(crate) fn current(mark: &AtomicU64, last: &AtomicU64) -> u64 {
    // Relaxed: the word is compared with values of the same process, and orders nothing.
    let found = mark.load(Ordering::Relaxed);
    if found != 0 {
        return found;
    }
    let new = last.fetch_add(1, Ordering::Relaxed) + 1;
    // Of several threads that come first in a new process one names it.
    mark.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|named| named, |_| new)
}
