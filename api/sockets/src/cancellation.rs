//! Threads that are cancelled (`pthread_cancel`): a call that waits in the engine is a point where they are, as the function of C is.
//!
//! The C library unwinds such a thread from its own function, by frames of the engine and of the hook, whose values are dropped. So the engine sleeps in a
//! function of the C library, and holds nothing there that is not undone by a drop. A call that has bytes at once never sleeps: it looks before it begins
//! whether the thread is to end, once the program has cancelled any.

use core::cell::Cell;
use core::ffi::c_long;
use core::sync::atomic::{AtomicBool, Ordering};

use libc::{nfds_t, pollfd, timespec};
use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;

use crate::hooks::held::last_errno;
use crate::real;

/// Whether the program has cancelled a thread.
static ARE_CANCELLED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the thread is in the real function in which the engine sleeps.
    static SLEEPS: Cell<bool> = const { Cell::new(false) };
}

const _: () = assert!(size_of::<PollFd<'_>>() == size_of::<pollfd>());

unsafe extern "C-unwind" {
    safe fn pthread_testcancel();
}

/// Notes that this program cancels threads, before the first is: from then on each call looks for that before it begins.
pub fn before_cancel(_arguments: [c_long; 3]) {
    // Relaxed: a call that another thread has begun may end before it is cancelled.
    ARE_CANCELLED.store(true, Ordering::Relaxed);
}

/// Where a function of C would end a thread that is cancelled, before it does anything.
#[inline]
pub fn point() {
    if ARE_CANCELLED.load(Ordering::Relaxed) {
        pthread_testcancel();
    }
}

/// Sleeps in the function of C. Unwinds where the thread is cancelled.
pub fn sleep(watched: &mut [PollFd<'_>], left: Option<&Timespec>) -> Result<usize, Errno> {
    let time = left.map(|left| timespec { tv_sec: left.tv_sec, tv_nsec: left.tv_nsec });
    let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let (list, count) = (watched.as_mut_ptr().cast::<pollfd>(), watched.len() as nfds_t);
    // In a handler it is so already.
    let before = SLEEPS.replace(true);
    // SAFETY: as many entries as there are, each laid out as C has it; the time lives through the call, and a null mask is none.
    let told = unsafe { real::ppoll(list, count, time, core::ptr::null()) };
    SLEEPS.set(before);
    usize::try_from(told).map_err(|_| last_errno())
}

/// Whether the thread unwinds from [`sleep`]; for once.
pub fn has_slept() -> bool {
    SLEEPS.take()
}
