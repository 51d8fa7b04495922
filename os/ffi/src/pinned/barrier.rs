//! What removers ask of the kernel: a barrier on all cores of this process, and to sleep until a pin ends.

use core::sync::atomic::AtomicU32;

use rustix::thread::futex;
use rustix::thread::{MembarrierCommand, membarrier};

/// How long a remover sleeps without looking again: where the barrier is refused after it was granted, nobody wakes it.
const LOOK_AGAIN_NANOS: i64 = 10_000_000;

/// Asks for the barrier of this process, and says whether it is to be had. Doing it again is harmless.
pub(super) fn register() -> bool {
    // Miri has no such system call.
    !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

/// A full barrier on every core that runs a thread of this process. `false` if the kernel refuses it.
pub(super) fn on_all_cores() -> bool {
    // The second time for a child of a process that has registered, where the kernel does not take that over.
    membarrier(MembarrierCommand::PrivateExpedited).is_ok()
        || register() && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Sleeps while `word` is `seen`, until it is woken or a bound has passed.
pub(super) fn sleep(word: &AtomicU32, seen: u32) {
    let timeout = futex::Timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN_NANOS };
    // Whatever the outcome is, the caller looks again.
    let _ = futex::wait(word, futex::Flags::PRIVATE, seen, Some(&timeout));
}

/// Wakes all that sleep on `word`. A signal handler may do this.
pub(super) fn wake(word: &AtomicU32) {
    // It fails for a bad address only.
    let _ = futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32);
}
