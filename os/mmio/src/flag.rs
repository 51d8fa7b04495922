//! 32-bit words that processes sleep on.
//!
//! What must happen before and after a sleep, so that no wake-up is lost, is the business of `os/domain` and
//! [`crate::membarrier`]; this is the word and the system call.

use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;

use crate::span::Span;
use crate::sync::{AtomicU32, Ordering};

/// Why a wait ended. Whatever it is, the caller looks at what it waits for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// A peer woke this sleeper.
    Woken,
    /// The flag did not hold the expected value, so nobody slept.
    Changed,
    /// The bound passed.
    TimedOut,
    /// A signal was handled meanwhile: the program may want to end.
    Interrupted,
}

/// Most flags that one sleep can wait for: the kernel's limit.
pub const MAX_FLAGS: usize = 128;

/// A 32-bit futex word of mapped memory, shared between processes. In the byte order of the machine, because the
/// kernel compares it. Clones are the same word.
#[derive(Clone, Debug)]
pub struct Flag {
    span: Span,
}

impl Flag {
    pub(crate) fn new(span: Span) -> Self {
        debug_assert!(span.bytes() == 4 && span.start().addr().is_multiple_of(4));
        Flag { span }
    }

    #[inline(always)]
    fn atomic(&self) -> &AtomicU32 {
        // SAFETY: the span is 4 bytes, aligned (`Region::flag` checks it) and mapped as long as `self`; other
        // processes and this crate only use atomics on it.
        unsafe { AtomicU32::from_ptr(self.span.start().cast()) }
    }

    /// Where it lies in this process; clones lie at one place, and no two other flags of one mapping do.
    pub fn address(&self) -> usize {
        self.span.start().addr()
    }

    /// Loads the flag; relaxed: a sender's look after its stores, ordered by the sleeper's membarrier.
    #[inline(always)]
    pub fn load(&self) -> u32 {
        self.atomic().load(Ordering::Relaxed)
    }

    /// Stores the flag; relaxed: ordered by the membarrier that the sleeper issues after it.
    #[inline(always)]
    pub fn store(&self, value: u32) {
        self.atomic().store(value, Ordering::Relaxed);
    }

    /// Swaps the flag and gives what it held; acquire and release: pairs with the peer's swap.
    #[inline]
    pub fn swap(&self, value: u32) -> u32 {
        self.atomic().swap(value, Ordering::AcqRel)
    }

    /// Sets bits of the flag; release: pairs with the swap of whoever takes them.
    #[inline]
    pub fn set(&self, bits: u32) {
        self.atomic().fetch_or(bits, Ordering::Release);
    }

    /// Clears bits of the flag; relaxed: who clears them has nothing to say.
    #[inline]
    pub fn clear(&self, bits: u32) {
        self.atomic().fetch_and(!bits, Ordering::Relaxed);
    }

    /// Sleeps while the flag is `expected`, at most `timeout`; one system call.
    pub fn wait(&self, expected: u32, timeout: Duration) -> WaitOutcome {
        // Not private: the sleeper and its waker are different processes.
        match futex::wait(self.atomic(), futex::Flags::empty(), expected, Some(&timespec(timeout))) {
            Ok(()) => WaitOutcome::Woken,
            Err(Errno::TIMEDOUT) => WaitOutcome::TimedOut,
            Err(Errno::INTR) => WaitOutcome::Interrupted,
            Err(error) => {
                debug_assert_eq!(error, Errno::AGAIN, "an aligned word of mapped memory and a valid time");
                WaitOutcome::Changed
            }
        }
    }

    /// Sleeps while every flag of `flags` has the value beside it, at most `timeout`: one system call, `futex_waitv` of
    /// Linux 5.16. Of more than [`MAX_FLAGS`] flags the first ones are slept on. `None`: the kernel has no such call.
    pub fn wait_any(flags: &[(&Flag, u32)], timeout: Duration) -> Option<WaitOutcome> {
        let mut waiters = [futex::Wait::new(); MAX_FLAGS];
        for (waiter, (flag, expected)) in waiters.iter_mut().zip(flags) {
            waiter.val = u64::from(*expected);
            waiter.uaddr = futex::WaitPtr::new(flag.span.start().cast());
            waiter.flags = futex::WaitFlags::SIZE_U32;
        }
        let waiters = &waiters[..flags.len().min(MAX_FLAGS)];
        // The call takes a point in time, not a duration.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let mut until = timespec(timeout);
        until.tv_sec = until.tv_sec.saturating_add(now.tv_sec);
        until.tv_nsec += now.tv_nsec;
        if until.tv_nsec >= NANOS_PER_SECOND {
            until.tv_sec = until.tv_sec.saturating_add(1);
            until.tv_nsec -= NANOS_PER_SECOND;
        }
        let no_flags = futex::WaitvFlags::empty();
        match futex::waitv(waiters, no_flags, Some(&until), futex::ClockId::Monotonic) {
            Ok(_) => Some(WaitOutcome::Woken),
            Err(Errno::TIMEDOUT) => Some(WaitOutcome::TimedOut),
            Err(Errno::INTR) => Some(WaitOutcome::Interrupted),
            Err(Errno::AGAIN) => Some(WaitOutcome::Changed),
            Err(_) => None,
        }
    }

    /// Wakes at most `count` sleepers, of whatever process; says how many. One system call.
    pub fn wake(&self, count: u32) -> u32 {
        // The kernel takes a signed count.
        let count = count.min(i32::MAX as u32);
        let woken = futex::wake(self.atomic(), futex::Flags::empty(), count);
        debug_assert!(woken.is_ok(), "an aligned word of mapped memory: {woken:?}");
        woken.map_or(0, |woken| u32::try_from(woken).unwrap_or(u32::MAX))
    }
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A duration as the kernel takes it.
fn timespec(duration: Duration) -> rustix::time::Timespec {
    rustix::time::Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;

    /// Far longer than any of these tests takes.
    const WATCHDOG: Duration = Duration::from_secs(60);

    #[test]
    fn a_flag_that_changed_is_not_slept_on() {
        let flag = Region::private(64).flag(60);
        flag.store(3);
        assert_eq!(flag.wait(4, WATCHDOG), WaitOutcome::Changed);
        assert_eq!((flag.swap(5), flag.load()), (3, 5));
        flag.set(2);
        flag.clear(4);
        assert_eq!(flag.load(), 3);
        assert_eq!(flag.wake(u32::MAX), 0);
    }

    #[test]
    fn a_wait_has_a_bound() {
        let flag = Region::private(64).flag(0);
        assert_eq!(flag.wait(0, Duration::from_micros(50)), WaitOutcome::TimedOut);
        assert_eq!(flag.wait(0, Duration::ZERO), WaitOutcome::TimedOut);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let region = Region::private(64);
        let (ours, theirs) = (region.flag(4), region.flag(4));
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(move || ours.wait(0, WATCHDOG));
            while theirs.wake(1) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(sleeper.join().unwrap(), WaitOutcome::Woken);
        });
    }

    #[test]
    #[cfg(not(miri))]
    fn a_sleeper_on_several_flags_is_woken_by_any() {
        let region = Region::private(128);
        let flags = [region.flag(0), region.flag(64)];
        let theirs = region.flag(64);
        let Some(outcome) = Flag::wait_any(&[(&flags[0], 0), (&flags[1], 0)], Duration::ZERO) else {
            println!("this kernel, or what stands in for it, knows no futex_waitv");
            return;
        };
        assert_eq!(outcome, WaitOutcome::TimedOut);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(move || Flag::wait_any(&[(&flags[0], 0), (&flags[1], 0)], WATCHDOG));
            while theirs.wake(1) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(sleeper.join().unwrap(), Some(WaitOutcome::Woken));
        });
        theirs.store(1);
        let flags = [region.flag(0), region.flag(64)];
        let changed = Flag::wait_any(&[(&flags[0], 0), (&flags[1], 0)], WATCHDOG);
        assert_eq!(changed, Some(WaitOutcome::Changed));
    }

    /// Two mappings of one memory are two addresses, as in two processes: a private futex would not be woken.
    #[test]
    #[cfg(not(miri))]
    fn a_sleeper_is_woken_through_another_mapping() {
        let memory =
            crate::SharedMemory::create("beeline-test", 4096, crate::MemoryOptions::default()).unwrap();
        let (ours, theirs) = (memory.map().unwrap().flag(8), memory.map().unwrap().flag(8));
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(move || ours.wait(0, WATCHDOG));
            while theirs.wake(1) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(sleeper.join().unwrap(), WaitOutcome::Woken);
        });
    }

    /// A signal with a handler ends the wait, so that a program that is asked to end does.
    #[test]
    #[cfg(not(miri))]
    fn a_signal_interrupts_a_wait() {
        extern "C" fn handler(_signal: libc::c_int) {}
        let handler: extern "C" fn(libc::c_int) = handler;
        // SAFETY: the handler does nothing, and nothing else in this program uses the signal.
        unsafe { libc::signal(libc::SIGUSR2, handler as libc::sighandler_t) };
        let flag = Region::private(64).flag(0);
        let (send_id, id) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            // SAFETY: it gives this thread's own identifier.
            send_id.send(unsafe { libc::pthread_self() }).unwrap();
            flag.wait(0, WATCHDOG)
        });
        let id = id.recv().unwrap();
        while !sleeper.is_finished() {
            // SAFETY: the thread has not been joined, so that its identifier is valid.
            unsafe { libc::pthread_kill(id, libc::SIGUSR2) };
            std::thread::yield_now();
        }
        assert_eq!(sleeper.join().unwrap(), WaitOutcome::Interrupted);
    }
}
