//! 32-bit words that processes sleep on.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;

use crate::region::Span;
use crate::sync::{AtomicU32, Ordering};

/// Why a wait ended. Whatever it is, the caller looks at its condition again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// Somebody woke this sleeper.
    Woken,
    /// The flag did not hold the expected value, so nobody slept.
    Changed,
    /// The bound passed.
    TimedOut,
    /// A signal was handled meanwhile.
    Interrupted,
}

/// A 32-bit futex word in mapped memory, shared between processes of this machine, in its byte order.
#[derive(Clone, Debug)]
pub struct Flag {
    span: Span,
}

impl Flag {
    pub(crate) fn new(span: Span) -> Self {
        Flag { span }
    }

    #[inline(always)]
    fn atomic(&self) -> &AtomicU32 {
        // SAFETY: the span is 4 bytes, aligned and mapped as long as `self`; everybody uses atomics on it.
        unsafe { AtomicU32::from_ptr(self.span.start().cast()) }
    }

    /// Loads the flag; relaxed: the sleeper's membarrier orders it (`membarrier`).
    #[inline]
    pub fn load(&self) -> u32 {
        self.atomic().load(Ordering::Relaxed)
    }

    /// Stores the flag; relaxed: the sleeper's membarrier orders it (`membarrier`).
    #[inline]
    pub fn store(&self, value: u32) {
        self.atomic().store(value, Ordering::Relaxed);
    }

    /// Swaps the flag; acquire and release, pairs with the peer's `swap`.
    #[inline]
    pub fn swap(&self, value: u32) -> u32 {
        self.atomic().swap(value, Ordering::AcqRel)
    }

    /// Sleeps while the flag is `expected`, at most `timeout`.
    pub fn wait(&self, expected: u32, timeout: Duration) -> WaitOutcome {
        match futex::wait(self.atomic(), futex::Flags::empty(), expected, Some(&timespec(timeout))) {
            Ok(()) => WaitOutcome::Woken,
            Err(Errno::TIMEDOUT) => WaitOutcome::TimedOut,
            Err(Errno::INTR) => WaitOutcome::Interrupted,
            Err(_) => WaitOutcome::Changed,
        }
    }

    /// Wakes at most `count` sleepers; says how many.
    pub fn wake(&self, count: u32) -> u32 {
        let woken = futex::wake(self.atomic(), futex::Flags::empty(), count).unwrap_or(0);
        u32::try_from(woken).unwrap_or(u32::MAX)
    }
}

/// A duration as the kernel takes it.
fn timespec(duration: Duration) -> rustix::time::Timespec {
    rustix::time::Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
