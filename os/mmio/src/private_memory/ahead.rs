//! The thread that brings memory in ahead of its use.
//!
//! It writes to pages without changing them ([`touch`]), and asks for no system call that does so: that would hold the lock of the address
//! space while the kernel clears a huge page, and this thread may wait for a core meanwhile, because it takes none from
//! anybody. A page fault holds the lock of its mapping alone (since Linux 6.4), to read, and so do page faults of others.
//!
//! Where it has come too late it leaves the piece in use and the next one alone: of two who touch a huge page first, both clear one.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use crate::ThisProcess;
use crate::arch::{TOUCHES, touch};
use crate::sync::{AtomicUsize, Ordering};
use crate::thread::{run_when_idle, spawn};

/// A huge page of most machines. Where they are larger, their parts are touched one after the other.
pub(super) const PIECE_BYTES: usize = 2 << 20;
/// What is brought in beyond what was noted, to the end of the piece in which it lies: more than is used until the thread has been
/// woken, and little enough to have it idle.
pub(super) const AHEAD_BYTES: usize = 16 << 20;
/// Bytes of the smallest pages. Where pages are larger, each is touched several times.
const PAGE_BYTES: usize = 4096;

/// What the owner of the memory has of the thread.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    thread: Thread,
    /// A child of fork has no such thread, and finds its lock in whatever state it was.
    process: ThisProcess,
}

#[derive(Debug)]
struct Shared {
    /// `None` from when the memory may go.
    span: Mutex<Option<Span>>,
    used_bytes: AtomicUsize,
}

/// Memory of which pages may be touched.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: whoever made it said that its pages may be touched by another thread (`Ahead::start`), and nothing else is done to them.
unsafe impl Send for Span {}

impl Ahead {
    /// # Safety
    /// From `start`, the start of a page, on there are so many mapped and writable bytes of this process alone until
    /// [`end`](Self::end).
    pub(super) unsafe fn start(start: NonNull<u8>, bytes: usize) -> io::Result<Self> {
        let span = Mutex::new(Some(Span { start, bytes }));
        let shared = Arc::new(Shared { span, used_bytes: AtomicUsize::new(0) });
        let body = {
            let shared = Arc::clone(&shared);
            move || {
                if TOUCHES && run_when_idle().is_ok() {
                    Progress::default().run(&shared);
                }
            }
        };
        // Never joined: it may wait for a core for long, and nobody waits for that.
        let thread = spawn("beeline-memory", body)?.thread().clone();
        Ok(Ahead { shared, thread, process: ThisProcess::get() })
    }

    pub(super) fn note_use(&self, bytes: usize) {
        // Relaxed: no byte of the memory is read by it. That the thread sees it before it sleeps is what `unpark` is for.
        self.shared.used_bytes.store(bytes, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// The thread touches nothing from here on. Waits for one page at most.
    pub(super) fn end(self) {
        if self.process.is_this() {
            *self.shared.span() = None;
            self.thread.unpark();
        }
    }
}

impl Shared {
    fn span(&self) -> MutexGuard<'_, Option<Span>> {
        self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used_bytes(&self) -> usize {
        // Relaxed: as in `note_use`.
        self.used_bytes.load(Ordering::Relaxed)
    }
}

/// How far the thread has come.
#[derive(Debug, Default)]
struct Progress {
    /// What lies before this has been brought in, by this thread or by who used it.
    next: usize,
}

/// The memory is gone.
struct Over;

impl Progress {
    fn run(mut self, shared: &Shared) {
        while let Ok(is_ahead) = self.piece(shared) {
            if is_ahead {
                std::thread::park();
            }
        }
    }

    /// Brings the next piece in, unless enough is there: whether that is so.
    fn piece(&mut self, shared: &Shared) -> Result<bool, Over> {
        let span = (*shared.span()).ok_or(Over)?;
        let used = shared.used_bytes().min(span.bytes);
        if used > self.next {
            // Too late for this piece and maybe for the next one: whoever is using them would clear a huge page at the same time.
            self.next = span.end_of_piece(used);
        }
        if self.next >= span.bytes.min(used.saturating_add(AHEAD_BYTES)) {
            return Ok(true);
        }
        let end = span.end_of_piece(self.next);
        while self.next < end && shared.used_bytes() <= self.next {
            shared.touch(self.next)?;
            self.next += PAGE_BYTES;
        }
        self.next = end;
        Ok(false)
    }
}

impl Shared {
    fn touch(&self, offset: usize) -> Result<(), Over> {
        let span = self.span();
        let Some(Span { start, .. }) = *span else { return Err(Over) };
        // SAFETY: a byte of the span, which is mapped as long as its lock is held.
        unsafe { touch(start.as_ptr().wrapping_add(offset)) };
        Ok(())
    }
}

impl Span {
    /// Where the piece ends that has this byte: all lie where huge pages do, the first and the last may be shorter.
    fn end_of_piece(self, offset: usize) -> usize {
        let address = self.start.addr().get();
        ((address + offset + 1).next_multiple_of(PIECE_BYTES) - address).min(self.bytes)
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests;
