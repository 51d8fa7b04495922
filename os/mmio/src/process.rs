//! Which process this is, also after a fork, and what each process keeps for itself: without a lock, because a thread of the
//! parent that the child does not have may hold it.
//!
//! A child of `fork` inherits memory as it was at one moment. A `Mutex` that another thread held then is locked in the child for
//! ever, and so is a `OnceLock` that was being filled. [`PerProcess`] is a list that only grows, by one atomic step: at every
//! moment it is whole, and what an ancestor put in is passed over.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::AtomicPtr;

use crate::sync::{AtomicU64, Ordering};

/// A process, as long as it lives: a child of fork is another one, whatever process id it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThisProcess {
    /// The kernel gives the number of a process that has ended to another, which may be its grandchild.
    pid: u32,
    /// So processes of one family are counted too; 0 where the kernel cannot tell a child.
    generation: u64,
}

impl ThisProcess {
    /// Returns the process that calls. One system call.
    pub fn get() -> Self {
        ThisProcess { pid: std::process::id(), generation: generation() }
    }

    /// Whether it is the process that calls. One system call.
    pub fn is_this(self) -> bool {
        self == Self::get()
    }

    /// Returns its process id.
    pub fn pid(self) -> u32 {
        self.pid
    }
}

/// A word that the kernel sets to zero in every child of fork; null until it is first asked for.
static MARK: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
/// Generations given out in this process and its ancestors; a child goes on counting from its copy.
static LAST: AtomicU64 = AtomicU64::new(0);

fn generation() -> u64 {
    let Some(mark) = mark() else { return 0 };
    // Relaxed: the word is compared with values of the same process, and orders nothing.
    let found = mark.load(Ordering::Relaxed);
    if found != 0 {
        return found;
    }
    let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    // Of several threads that come first in a new process one names it.
    mark.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|named| named, |_| new)
}

/// The word, made if need be; `None` where the kernel does not clear memory in children (before Linux 4.14).
fn mark() -> Option<&'static AtomicU64> {
    // Acquire: pairs with the exchange below, so that the page is mapped and marked.
    let mut page = MARK.load(Ordering::Acquire);
    if page.is_null() {
        let new = map_mark()?;
        page = match MARK.compare_exchange(page, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(first) => {
                unmap_mark(new);
                first
            }
        };
    }
    // SAFETY: a whole page from `map_mark`, aligned and zeroed, that is never unmapped once it is in `MARK`.
    Some(unsafe { &*page })
}

#[cfg(all(target_os = "linux", not(miri)))]
const MARK_BYTES: usize = 4096;

#[cfg(all(target_os = "linux", not(miri)))]
fn map_mark() -> Option<*mut AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), MARK_BYTES, protection, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: the mapping of above, which nobody else knows; the advice changes it in children only.
    match unsafe { madvise(page, MARK_BYTES, Advice::LinuxWipeOnFork) } {
        Ok(()) => Some(page.cast()),
        Err(_) => {
            unmap_mark(page.cast());
            None
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn unmap_mark(page: *mut AtomicU64) {
    // SAFETY: from `map_mark`, and never published.
    let _ = unsafe { rustix::mm::munmap(page.cast(), MARK_BYTES) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn map_mark() -> Option<*mut AtomicU64> {
    None
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn unmap_mark(_page: *mut AtomicU64) {}

/// A value that each process makes for itself when it first asks. A child does not see its parent's, and no call waits for
/// another thread.
pub struct PerProcess<T> {
    /// The latest entry, which points to the one before. Entries are taken out only when all are.
    latest: AtomicPtr<Entry<T>>,
    owns: PhantomData<Box<Entry<T>>>,
}

struct Entry<T> {
    process: ThisProcess,
    value: T,
    before: *mut Entry<T>,
}

// SAFETY: it owns its values, as a `Box` does; the pointers lead nowhere else.
unsafe impl<T: Send> Send for PerProcess<T> {}
// SAFETY: shared access gives `&T` alone, and moves a `T` in from whichever thread made it.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// Makes one in which no process has a value yet.
    pub const fn new() -> Self {
        PerProcess { latest: AtomicPtr::new(std::ptr::null_mut()), owns: PhantomData }
    }

    /// Returns the value of this process, if it has one.
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the exchange in `get_or_try_init`, which published the entry.
        self.find(self.latest.load(Ordering::Acquire), ThisProcess::get())
    }

    fn find(&self, mut entry: *mut Entry<T>, process: ThisProcess) -> Option<&T> {
        while !entry.is_null() {
            // SAFETY: published entries are whole and live as long as `self`.
            let found = unsafe { &*entry };
            if found.process == process {
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
        let made = Box::into_raw(Box::new(Entry { process, value: make()?, before: std::ptr::null_mut() }));
        loop {
            // Acquire: pairs with the exchange below.
            let latest = self.latest.load(Ordering::Acquire);
            if let Some(first) = self.find(latest, process) {
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

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess::new()
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
        let mut entry = *self.latest.get_mut();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn process_is_itself_and_has_one_value() {
        let this = ThisProcess::get();
        assert!(this.is_this() && this.pid() == std::process::id());
        assert!(!ThisProcess { generation: this.generation + 1, ..this }.is_this());
        assert!(!ThisProcess { pid: this.pid + 1, ..this }.is_this());
        let values = PerProcess::new();
        assert_eq!(values.get(), None);
        assert_eq!(values.get_or_try_init(|| Err("no")), Err("no"));
        assert_eq!((values.get_or_init(|| 1), values.get_or_init(|| 2)), (&1, &1));
        assert_eq!(format!("{values:?}"), "PerProcess(Some(1))");
    }

    #[test]
    fn of_threads_that_come_at_once_all_get_one_value_and_all_are_dropped() {
        let made = Arc::new(());
        for _ in 0..if cfg!(miri) { 5 } else { 200 } {
            let values = PerProcess::new();
            let addresses: Vec<_> = std::thread::scope(|scope| {
                let get = || std::ptr::from_ref(values.get_or_init(|| Arc::clone(&made))).addr();
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(addresses.iter().all(|address| *address == addresses[0]));
            assert_eq!(Arc::strong_count(&made), 2);
        }
        assert_eq!(Arc::strong_count(&made), 1);
    }

    #[test]
    #[cfg_attr(miri, ignore = "leaves a value where it is, on purpose")]
    fn values_of_other_processes_are_passed_over_and_left_alone() {
        let made = Arc::new(());
        let values = PerProcess::new();
        values.get_or_init(|| Arc::clone(&made));
        // As a child finds it.
        let entry = values.latest.load(Ordering::Relaxed);
        // SAFETY: nobody else reads the entry meanwhile.
        unsafe { (*entry).process.generation += 1 };
        assert!(values.get().is_none());
        values.get_or_init(|| Arc::clone(&made));
        assert_eq!(Arc::strong_count(&made), 3);
        drop(values);
        assert_eq!(Arc::strong_count(&made), 2);
    }
}
