//! Who has taken which message, and what is free again: the lock-free part of a shared window.
//!
//! Positions are absolute, so no two states of the ledger look alike and a compare-and-swap on a position cannot be
//! fooled by a lap (no ABA). Messages are taken in order and finished in any order: a finished one is noted where it
//! started, and whoever finds the earliest unfinished one noted moves `freed` over it. Credits are pushed by one thread
//! at a time, since an absolute count that two threads store could run backwards; who finds that thread at work goes on
//! without waiting for it.

use alloc::boxed::Box;

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

use beeline_contract_memory::CreditSink;

/// Bit of `claim` that says: one receiver takes all messages from here on (see [`Ledger::take`]). No window lives for
/// 2^63 lines.
pub(crate) const KEPT: u64 = 1 << 63;

/// On cache lines of its own, two since cores fetch them in pairs: each word here is written by every thread.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

/// What the receivers of one window have in common.
#[derive(Debug)]
pub(crate) struct Ledger<S> {
    /// Position of the first message that nobody has taken, and [`KEPT`].
    claim: Apart<AtomicU64>,
    /// Every line before this position is free.
    freed: Apart<AtomicU64>,
    /// As last pushed to the sender. Written by the thread that has `sink`; apart, because every poll reads what follows.
    published: Apart<AtomicU64>,
    sink: Apart<Mutex<S>>,
    failed: AtomicBool,
    /// For a message that started at line `i` of the window and is finished: the position after it. What an earlier lap
    /// left there is not past the message's own start, so nothing is ever cleared.
    done: Box<[AtomicU64]>,
    mask: u64,
    coalesce_lines: u64,
    /// Whether there is one receiver for good: then nothing is swapped and nothing noted.
    pub(crate) is_sole: bool,
}

impl<S: CreditSink> Ledger<S> {
    pub(crate) fn new(sink: S, lines: u32, coalesce_lines: u32, is_sole: bool) -> Self {
        let noted = if is_sole { 0 } else { lines };
        Ledger {
            claim: Apart(AtomicU64::new(0)),
            freed: Apart(AtomicU64::new(0)),
            published: Apart(AtomicU64::new(0)),
            sink: Apart(Mutex::new(sink)),
            failed: AtomicBool::new(false),
            done: (0..noted).map(|_| AtomicU64::new(0)).collect(),
            mask: u64::from(lines) - 1,
            coalesce_lines: u64::from(coalesce_lines.clamp(1, (lines / 2).max(1))),
            is_sole,
        }
    }

    /// The first message that nobody has taken. Acquire: pairs with `take`, so that who goes on from a position knows
    /// what its predecessor knew.
    #[inline(always)]
    pub(crate) fn claim(&self) -> u64 {
        self.claim.0.load(Ordering::Acquire)
    }

    /// Lines before this position are free. Acquire: pairs with `move_freed` and `finish`: these lines are seen blank,
    /// or with what the sender stored since, never as they were a lap ago.
    #[inline(always)]
    pub(crate) fn freed(&self) -> u64 {
        self.freed.0.load(Ordering::Acquire)
    }

    /// Takes the message at `claim` (as [`Ledger::claim`] gave it); `next` is the position after it, with [`KEPT`] when
    /// no other receiver shall take the following ones. `false`: another receiver was faster.
    #[inline(always)]
    pub(crate) fn take(&self, claim: u64, next: u64) -> bool {
        // A receiver that is alone, or that keeps the window, has no rival. One predicted branch saves such a one a
        // locked instruction for every message.
        if self.is_sole || claim & KEPT != 0 {
            // Release: pairs with `claim`.
            self.claim.0.store(next, Ordering::Release);
            return true;
        }
        // Release and acquire: pair with `claim` of others. Relaxed on failure: nothing of it is used.
        self.claim.0.compare_exchange(claim, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Lets the other receivers go on. Only for the one that keeps the window; one that has failed stays as it is.
    pub(crate) fn give_up(&self) {
        if self.has_failed() {
            return;
        }
        // Nobody else takes while the window is kept, and a failure only sets a bit that is set. Release: pairs with
        // `claim`.
        let claim = self.claim();
        self.claim.0.store(claim & !KEPT, Ordering::Release);
        if self.has_failed() {
            self.fail();
        }
    }

    /// The message from `start` to `end` is finished: its lines are blank.
    #[inline(always)]
    pub(crate) fn finish(&self, start: u64, end: u64) {
        let freed = if self.is_sole {
            // Release: pairs with `freed`, and with the acquire in `push`.
            self.freed.0.store(end, Ordering::Release);
            end
        } else {
            // Release: pairs with `move_freed`: who moves over it has seen its lines blank.
            self.done[(start & self.mask) as usize].store(end, Ordering::Release);
            self.move_freed()
        };
        // Relaxed: a hint; `push` looks again under the lock.
        if freed >= self.published.0.load(Ordering::Relaxed) + self.coalesce_lines {
            self.push();
        }
    }

    /// Moves `freed` over every finished message that no unfinished one is before. Two threads that finish neighbours at
    /// the same time may each miss the other's note; every later look, also an idle one, finds it.
    pub(crate) fn move_freed(&self) -> u64 {
        let mut freed = self.freed();
        if self.is_sole {
            return freed;
        }
        loop {
            // Acquire: pairs with `finish`.
            let end = self.done[(freed & self.mask) as usize].load(Ordering::Acquire);
            if end <= freed {
                return freed;
            }
            // Release and acquire: pair with `freed`, and carry what other threads blanked. A stale `freed` fails here,
            // whatever a later lap has noted in the meantime.
            match self.freed.0.compare_exchange(freed, end, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => freed = end,
                Err(now) => freed = now,
            }
        }
    }

    /// Pushes the credits of everything that is free, unless another thread is at it; that one, or the next idle look,
    /// pushes the rest.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&self) {
        loop {
            let Ok(mut sink) = self.sink.0.try_lock() else { return };
            let freed = self.freed();
            // Relaxed: only stored under the lock.
            if freed > self.published.0.load(Ordering::Relaxed) {
                self.published.0.store(freed, Ordering::Relaxed);
                sink.publish(freed);
            }
            drop(sink);
            // Somebody who freed more meanwhile may have found the lock taken, and gone on.
            if self.freed() == freed {
                return;
            }
        }
    }

    /// There was nothing to take: what is held back for the sender is pushed.
    #[inline]
    pub(crate) fn idle(&self) {
        // Relaxed: a hint, as in `finish`.
        if self.move_freed() != self.published.0.load(Ordering::Relaxed) {
            self.push();
        }
    }

    /// Ends the window for every receiver.
    pub(crate) fn fail(&self) {
        // Relaxed: nothing else is read by it.
        self.failed.store(true, Ordering::Relaxed);
        // Nobody takes anything any more, as if somebody kept the window. Release: pairs with `claim`.
        self.claim.0.fetch_or(KEPT, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn has_failed(&self) -> bool {
        // Relaxed: see `fail`.
        self.failed.load(Ordering::Relaxed)
    }
}
