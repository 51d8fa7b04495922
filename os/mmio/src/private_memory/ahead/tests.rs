use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};

use super::*;
use crate::PrivateMemory;
use crate::child;
use crate::private_memory::tests::resident_pages;

const MIB: usize = 1 << 20;

/// Memory of which this thread brings pieces in, so that a test says when.
struct Stepped {
    memory: PrivateMemory,
    shared: Shared,
    progress: Progress,
}

impl Stepped {
    fn new(bytes: usize) -> Self {
        let memory = PrivateMemory::zeroed(bytes).unwrap();
        let span = Mutex::new(Some(Span { start: memory.start, bytes }));
        Stepped {
            memory,
            shared: Shared { span, used_bytes: AtomicUsize::new(0) },
            progress: Progress::default(),
        }
    }

    /// Brings in what there is to bring in when so many bytes are used.
    fn with_used(&mut self, used_bytes: usize) {
        self.shared.used_bytes.store(used_bytes, Ordering::Relaxed);
        while let Ok(false) = self.progress.piece(&self.shared) {}
    }

    /// Which pages are there, of those that may be touched.
    fn pages(&self) -> Vec<bool> {
        resident_pages(&self.memory, self.shared.span().unwrap().bytes)
    }

    /// The first page that is not there, in bytes from the start.
    fn end(&self) -> usize {
        self.pages().iter().position(|there| !there).map_or(self.memory.bytes, |page| page * PAGE_BYTES)
    }

    fn count(&self) -> usize {
        self.pages().into_iter().filter(|there| *there).count()
    }
}

#[test]
fn as_much_as_was_said_is_there_beyond_what_is_used_and_no_more() {
    if !TOUCHES {
        return;
    }
    let mut stepped = Stepped::new(256 * MIB);
    assert_eq!(stepped.count(), 0);
    for used_bytes in [0, 2 * MIB, 4 * MIB, 5 * MIB, 18 * MIB] {
        stepped.with_used(used_bytes);
        let end = stepped.end();
        // To the end of a piece.
        let wanted = used_bytes + AHEAD_BYTES..used_bytes + AHEAD_BYTES + PIECE_BYTES;
        assert!(wanted.contains(&end), "{end} bytes with {used_bytes} used");
        assert_eq!(stepped.count() * PAGE_BYTES, end);
    }
    assert!(stepped.memory.bytes().iter().all(|byte| *byte == 0));
}

#[test]
fn nothing_is_touched_beyond_the_end() {
    if !TOUCHES {
        return;
    }
    for bytes in [PAGE_BYTES, 100, 3 * MIB, 20 * MIB + PAGE_BYTES + 5] {
        // The pages behind it end this process when somebody writes to them.
        let behind = 4 * MIB;
        let mut stepped = Stepped::new(bytes.next_multiple_of(PAGE_BYTES) + behind);
        let end = stepped.memory.start.as_ptr().wrapping_add(bytes.next_multiple_of(PAGE_BYTES));
        // SAFETY: a part of our own mapping, which nobody accesses but the code under test.
        assert_eq!(unsafe { libc::mprotect(end.cast(), behind, libc::PROT_NONE) }, 0);
        stepped.shared.span().as_mut().unwrap().bytes = bytes;
        for used_bytes in [0, bytes, bytes + 2 * MIB, usize::MAX] {
            stepped.with_used(used_bytes);
        }
        let there = if bytes > 20 * MIB { 12 * MIB } else { bytes };
        assert!(stepped.count() * PAGE_BYTES >= there, "{} pages of {bytes} bytes", stepped.count());
    }
}

/// Whoever uses memory faster than it is brought in is not met in a piece: both would clear it.
#[test]
fn pieces_that_are_in_use_are_left_alone() {
    if !TOUCHES {
        return;
    }
    let mut stepped = Stepped::new(256 * MIB);
    stepped.with_used(0);
    let before = stepped.end();
    stepped.with_used(64 * MIB);
    let pages = stepped.pages();
    let first =
        pages.iter().skip(before / PAGE_BYTES).position(|there| *there).unwrap() * PAGE_BYTES + before;
    assert!((64 * MIB + 1..=66 * MIB).contains(&first), "the first one is at {first}");
    let last = (pages.iter().rposition(|there| *there).unwrap() + 1) * PAGE_BYTES;
    assert!((80 * MIB..82 * MIB).contains(&last), "the last one ends at {last}");
}

#[test]
fn what_others_store_meanwhile_stays() {
    if !TOUCHES {
        return;
    }
    let byte = AtomicU8::new(0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // SAFETY: a byte that lives as long as the scope; everybody else accesses it by atomics.
                unsafe { touch(byte.as_ptr()) };
            }
        });
        let started = Instant::now();
        let (mut value, mut is_kept) = (0u8, true);
        while is_kept && started.elapsed() < Duration::from_secs(1) {
            value = value.wrapping_add(1);
            byte.store(value, Ordering::Relaxed);
            // As often as what was stored last takes to reach the other core and to come back.
            is_kept = (0..2000).all(|_| byte.load(Ordering::Relaxed) == value);
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(is_kept);
    });
}

/// Memory goes while its thread is anywhere, and what lies there afterwards is not written to.
#[test]
fn memory_may_go_while_its_thread_works() {
    for turn in 0..300 {
        let mut memory = PrivateMemory::zeroed(64 * MIB).unwrap();
        memory.bring_in_ahead().unwrap();
        memory.bytes_mut()[0] = 1;
        for used in 0..turn % 7 {
            memory.note_use(used * MIB);
            std::thread::yield_now();
        }
        let (start, bytes) = (memory.start.as_ptr(), memory.bytes);
        drop(memory);
        // Read-only, so that a write ends this process; elsewhere if somebody else has taken the place.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh range, where the kernel likes it.
        let there = unsafe { libc::mmap(start.cast(), bytes, libc::PROT_READ, flags, -1, 0) };
        assert_ne!(there, libc::MAP_FAILED);
        std::thread::yield_now();
        // SAFETY: the range of just now, which nobody else knows.
        assert_eq!(unsafe { libc::munmap(there, bytes) }, 0);
    }
}

/// The child has no such thread, and a copy of its lock that may be held for ever.
#[test]
fn child_of_fork_lets_memory_go() {
    child::succeeds("private_memory::ahead::tests::child_of_fork_lets_memory_go", || {
        let mut memory = PrivateMemory::zeroed(64 * MIB).unwrap();
        memory.bring_in_ahead().unwrap();
        let shared = Arc::clone(&memory.ahead.as_ref().unwrap().shared);
        let held = shared.span();
        // SAFETY: the child calls what a child of a process with threads may call, and ends.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: as in `child::run`.
                unsafe { libc::alarm(60) };
                memory.bytes_mut()[5 * MIB] = 3;
                memory.note_use(6 * MIB);
                drop(memory);
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) }
            }
            pid => {
                let mut status = 0;
                // SAFETY: waits for our own child.
                assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
                assert_eq!(status, 0);
            }
        }
        drop(held);
    });
}
