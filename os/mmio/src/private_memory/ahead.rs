//! The thread that brings memory in ahead of its use.
//!
//! It writes to pages without changing them ([`touch`]), and asks for no system call that does so: that would hold the lock of the address
//! space while the kernel clears a huge page, and this thread may wait for a core meanwhile, because it takes none from
//! anybody. A page fault holds the lock of its mapping alone (since Linux 6.4), to read, and so do page faults of others.
//!
//! Where it has come too late, pages stay small: of two who touch a huge page first, both clear one, and to clear one may take
//! milliseconds. Where it is seen to take less, pages are huge even then.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use rustix::mm::{Advice, madvise};
use rustix::time::{ClockId, clock_gettime};

use crate::ThisProcess;
use crate::arch::{TOUCHES, touch};
use crate::sync::{AtomicUsize, Ordering};
use crate::thread::{run_when_idle, spawn};

/// A huge page of most machines. Where they are larger, their parts are touched one after the other.
pub(super) const PIECE_BYTES: usize = 2 << 20;
/// What is brought in beyond what is used: more than is used until the thread has been woken, and little enough to have it idle.
pub(super) const AHEAD_BYTES: usize = 16 << 20;
/// What the kernel may take for a piece while somebody waits for a page of it.
const MOST_TIME: Duration = Duration::from_micros(500);
/// After so many pieces in a row that took less, the next ones are expected to.
const QUICK_PIECES: u32 = 8;
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
    /// What lies before this may have huge pages.
    settled: usize,
    /// Pieces in a row that were brought in within [`MOST_TIME`].
    quick_pieces: u32,
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
        // Small pages that were used before this thread came: the kernel may make huge ones of them when it finds the time.
        let passed = span.start_of_piece(used.saturating_sub(PIECE_BYTES)).min(self.next);
        if passed > self.settled {
            shared.advise(self.settled, passed, Advice::LinuxHugepage)?;
            self.settled = passed;
        }
        let end = span.end_of_piece(self.next);
        shared.advise(self.next, end, Advice::LinuxHugepage)?;
        if self.settled == self.next {
            self.settled = end;
        }
        let before = thread_time();
        while self.next < end && shared.used_bytes() <= self.next {
            shared.touch(self.next)?;
            self.next += PAGE_BYTES;
        }
        let (is_whole, time) = (self.next >= end, thread_time().saturating_sub(before));
        self.next = end;
        if let Some(advice) = is_whole.then(|| self.judge(time)).flatten() {
            shared.advise(end, span.bytes, advice)?;
        }
        Ok(false)
    }

    /// What memory that has not been brought in is to have from now on, after a piece that took so long.
    fn judge(&mut self, time: Duration) -> Option<Advice> {
        let were_quick = self.quick_pieces >= QUICK_PIECES;
        self.quick_pieces = if time <= MOST_TIME { self.quick_pieces.saturating_add(1) } else { 0 };
        match (were_quick, self.quick_pieces >= QUICK_PIECES) {
            (false, true) => Some(Advice::LinuxHugepage),
            (true, false) => Some(Advice::LinuxNoHugepage),
            _ => None,
        }
    }
}

/// Time that this thread had a core, which it may wait for.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Shared {
    /// Asks for huge pages, or for small ones. A wish, so that its lack is no error.
    fn advise(&self, from: usize, to: usize, advice: Advice) -> Result<(), Over> {
        let span = self.span();
        let Some(Span { start, .. }) = *span else { return Err(Over) };
        let start = start.as_ptr().wrapping_add(from);
        // SAFETY: a part of the span, which is mapped as long as its lock is held; no byte of it changes.
        let _ = unsafe { madvise(start.cast(), to - from, advice) };
        Ok(())
    }

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

    fn start_of_piece(self, offset: usize) -> usize {
        let address = self.start.addr().get();
        ((address + offset) / PIECE_BYTES * PIECE_BYTES).saturating_sub(address)
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests;
