//! Which process this is, also after a fork: a child is another one, whatever process id it is given.

use crate::generation;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

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

    /// Whether it is the process that calls: one load, and a system call where the kernel cannot tell a child.
    #[inline]
    pub fn is_this(self) -> bool {
        // A child counts on from the copy that it has of its parent's count, so within a family the number says it all, and a value
        // of this type is never seen by another family. It is in no shared memory.
        match self.generation {
            0 => self.pid == std::process::id(),
            own => own == generation(),
        }
    }

    /// As [`ThisProcess::is_this`] by two loads and no call; `false` also where the kernel cannot tell a child.
    #[inline(always)]
    pub fn is_surely_this(self) -> bool {
        // Acquire: as in `mark`.
        let page = MARK.load(Ordering::Acquire);
        // SAFETY: null, or a page as in `mark`.
        let Some(mark) = (unsafe { page.as_ref() }) else { return false };
        // Relaxed: as in `generation::current`. In a child it is 0, which a generation that counts is not.
        self.generation != 0 && mark.load(Ordering::Relaxed) == self.generation
    }

    /// The process that a fork of this one makes, as it would be told from this one.
    #[cfg(test)]
    pub(crate) fn child(self) -> Self {
        ThisProcess { generation: self.generation + 1, ..self }
    }

    /// Returns its process id.
    pub fn pid(self) -> u32 {
        self.pid
    }
}

/// Ends a child of fork at once, as `_exit` does: nothing is dropped or flushed, and no handler of the end of a process runs. What Rust runs there takes a
/// lock that a thread of the parent may have held at the fork, and then the child never ends.
pub fn end_child(code: i32) -> ! {
    // SAFETY: it has no conditions, and never returns.
    unsafe { libc::_exit(code) }
}

/// A word that the kernel sets to zero in every child of fork; null until it is first asked for.
static MARK: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());
/// Generations given out in this process and its ancestors; a child goes on counting from its copy.
static LAST: AtomicU64 = AtomicU64::new(0);

#[inline]
fn generation() -> u64 {
    mark().map_or(0, |mark| generation::current(mark, &LAST))
}

/// The word, made if need be; `None` where the kernel does not clear memory in children (before Linux 4.14).
#[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(miri))]
    fn child_ends_without_what_runs_at_the_end_of_a_process() {
        extern "C" fn end_otherwise() {
            end_child(9);
        }
        let test = "process::tests::child_ends_without_what_runs_at_the_end_of_a_process";
        let ended = crate::child::run(test, || {
            // SAFETY: the function is there as long as the program is.
            unsafe { libc::atexit(end_otherwise) };
            end_child(3)
        });
        assert!(ended.is_none_or(|ended| ended.code() == Some(3)), "{ended:?}");
    }

    #[test]
    fn process_is_itself_and_no_other() {
        let this = ThisProcess::get();
        assert!(this.is_this() && this.pid() == std::process::id());
        assert!(!this.child().is_this() && !this.child().is_surely_this());
        let can_tell_children = this.generation != 0;
        assert_eq!(this.is_surely_this(), can_tell_children);
        let by_pid = ThisProcess { generation: 0, ..this };
        assert!(by_pid.is_this() && !ThisProcess { pid: this.pid + 1, ..by_pid }.is_this());
    }
}
