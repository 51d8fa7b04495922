//! What each process keeps for itself, without a lock.
//!
//! Loom runs this very file (`tests/loom_per_process.rs`), so it knows the atomics of `crate::sync`, `crate::process`, and nothing
//! else of this crate.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use crate::process::ThisProcess;
use crate::sync::{AtomicPtr, Ordering};

/// A value that each process makes for itself when it first asks. A child does not see its parent's, and no call waits for
/// another thread.
pub struct PerProcess<T> {
    /// The latest entry, which points to the one before. Entries are taken out only when all are.
    latest: AtomicPtr<Entry<T>>,
    owns: PhantomData<Box<Entry<T>>>,
}

pub(crate) struct Entry<T> {
    process: ThisProcess,
    value: T,
    before: *mut Entry<T>,
}

// SAFETY: it owns its values, as a `Box` does; the pointers lead nowhere else.
unsafe impl<T: Send> Send for PerProcess<T> {}
// SAFETY: shared access gives `&T` alone, and moves a `T` in from whichever thread made it.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// Makes a list of what `latest` leads to.
    ///
    /// # Safety
    /// It is null, and nobody else has it.
    pub(crate) const unsafe fn of(latest: AtomicPtr<Entry<T>>) -> Self {
        PerProcess { latest, owns: PhantomData }
    }

    /// Returns the value of this process, if it has one.
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the exchange in `get_or_try_init`, which published the entry.
        self.find(self.latest.load(Ordering::Acquire))
    }

    fn find(&self, mut entry: *mut Entry<T>) -> Option<&T> {
        while !entry.is_null() {
            // SAFETY: published entries are whole and live as long as `self`.
            let found = unsafe { &*entry };
            if found.process.is_this() {
                return Some(&found.value);
            }
            entry = found.before;
        }
        None
    }

    /// Returns the value of this process; makes it if there is none. Of threads that make one at the same time the first
    /// to finish wins, and the others' are dropped.
    ///
    /// # Errors
    /// What `make` said.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let process = ThisProcess::get();
        let made = Box::into_raw(Box::new(Entry { process, value: make()?, before: ptr::null_mut() }));
        loop {
            // Acquire: pairs with the exchange below.
            let latest = self.latest.load(Ordering::Acquire);
            if let Some(first) = self.find(latest) {
                // SAFETY: from `Box::into_raw` above, and not published.
                drop(unsafe { Box::from_raw(made) });
                return Ok(first);
            }
            // SAFETY: not published yet, so nobody else reads it.
            unsafe { (*made).before = latest };
            // Release: publishes the entry to the loads above.
            let published = self.latest.compare_exchange(latest, made, Ordering::Release, Ordering::Relaxed);
            if published.is_ok() {
                // SAFETY: published above, so it lives as long as `self`.
                let entry = unsafe { &*made };
                return Ok(&entry.value);
            }
        }
    }

    /// Returns the value of this process; makes it, as [`PerProcess::get_or_try_init`] does, if there is none.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let made: Result<&T, std::convert::Infallible> = self.get_or_try_init(|| Ok(make()));
        match made {
            Ok(value) => value,
        }
    }
}

#[cfg(all(test, not(loom)))]
impl<T> PerProcess<T> {
    /// Leaves the latest value as a child of this process finds it.
    pub(super) fn as_in_a_child(&mut self) {
        let latest = self.latest.load(Ordering::Relaxed);
        // SAFETY: a published entry, which nobody else reads meanwhile: `self` is borrowed exclusively.
        let process = unsafe { &mut (*latest).process };
        *process = process.child();
    }
}

impl<T: fmt::Debug> fmt::Debug for PerProcess<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("PerProcess").field(&self.get()).finish()
    }
}

impl<T> Drop for PerProcess<T> {
    /// Leaves the values of ancestors where they are: to drop one may take a lock that a thread of the ancestor held.
    fn drop(&mut self) {
        let process = ThisProcess::get();
        // Relaxed: nobody borrows from `self` any more, and whoever did is ordered before this.
        let mut entry = self.latest.load(Ordering::Relaxed);
        while !entry.is_null() {
            // SAFETY: from `Box::into_raw`, published once, and nobody borrows from `self` any more.
            let Entry { process: made_by, value, before } = *unsafe { Box::from_raw(entry) };
            if made_by != process {
                std::mem::forget(value);
            }
            entry = before;
        }
    }
}
