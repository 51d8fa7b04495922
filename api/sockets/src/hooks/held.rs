//! Signals that wait while a call spins, so that the kernel's sleep ends by them as it would have.

use rustix::io::Errno;
use syscalls::{Sysno, raw_syscall};

/// The kernel's set of signals: bit `n - 1` for signal `n`.
const SET_BYTES: usize = size_of::<u64>();
static AT_ONCE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
/// What a thread's own mistake raises: blocked, it would end the process without its handler.
const OWN_MISTAKES: u64 = bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGILL)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGSYS)
    | bit(libc::SIGABRT);
/// What does nothing where no handler is installed.
const IGNORED: u64 = bit(libc::SIGCHLD) | bit(libc::SIGCONT) | bit(libc::SIGURG) | bit(libc::SIGWINCH);

/// The set of one signal.
pub const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signals of one call.
pub struct Signals {
    /// What the call blocks while it sleeps; none where it has no mask of its own.
    mask: Option<u64>,
    /// What the thread had blocked before.
    held: Option<u64>,
}

impl Signals {
    /// # Safety
    /// `mask` is null or a set of signals of C.
    pub unsafe fn new(mask: *const libc::sigset_t) -> Self {
        // SAFETY: null, or a set, of which the first word has the signals that there are.
        let mask = (!mask.is_null()).then(|| unsafe { mask.cast::<u64>().read_unaligned() });
        Signals { mask, held: None }
    }

    /// Has signals wait from now on. Whether one waits that the call lets through, and that does something.
    pub fn are_waiting(&mut self) -> bool {
        let held = *self.held.get_or_insert_with(|| change_mask(libc::SIG_BLOCK, !OWN_MISTAKES));
        let mut waiting = pending() & !self.mask.unwrap_or(held);
        while waiting != 0 {
            let signal = waiting.trailing_zeros() as i32 + 1;
            if does_something(signal) {
                return true;
            }
            waiting &= !bit(signal);
        }
        false
    }

    /// Before the kernel's sleep: the mask to sleep with, if it is another than the thread's.
    ///
    /// A signal that is ignored waits as well while it is blocked, and would end the sleep; it is gone once the mask is the thread's own.
    pub fn before_sleep(&mut self) -> Option<libc::sigset_t> {
        if self.held.is_some() && !self.are_waiting() {
            self.release();
        }
        self.mask.or(self.held).map(set)
    }

    fn release(&mut self) {
        if let Some(held) = self.held.take() {
            change_mask(libc::SIG_SETMASK, held);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.release();
    }
}

/// A set of C with the signals of a word.
fn set(word: u64) -> libc::sigset_t {
    let mut set = core::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: a set of C is longer than a word, and begins with the signals that there are.
    unsafe { set.as_mut_ptr().cast::<u64>().write(word) };
    // SAFETY: every bit was written: zero, or of the word.
    unsafe { set.assume_init() }
}

/// Changes which signals this thread blocks, as `sigprocmask` does, and leaves `errno` alone. Those that it blocked before.
pub fn change_mask(how: i32, word: u64) -> u64 {
    let mut before = 0u64;
    let (new, old) = (&raw const word, &raw mut before);
    // SAFETY: the kernel reads one set and writes the other; both live through the call.
    unsafe { raw_syscall!(Sysno::rt_sigprocmask, how, new, old, SET_BYTES) };
    before
}

/// Signals that wait for this thread or the process.
pub fn pending() -> u64 {
    let mut signals = 0u64;
    let out = &raw mut signals;
    // SAFETY: the kernel writes one set, which lives through the call.
    unsafe { raw_syscall!(Sysno::rt_sigpending, out, SET_BYTES) };
    signals
}

/// Takes one of these signals, which the thread blocks, if one waits: it has no effect then.
pub fn take(signals: u64) {
    let (set, at_once) = (&raw const signals, &raw const AT_ONCE);
    // SAFETY: the kernel reads a set and a time, which live through the call, and writes nothing for a null pointer.
    unsafe { raw_syscall!(Sysno::rt_sigtimedwait, set, 0, at_once, SET_BYTES) };
}

fn does_something(signal: i32) -> bool {
    // The handler is the first word of the kernel's structure, which has four.
    let mut action = [0u64; 4];
    let out = action.as_mut_ptr();
    // SAFETY: the kernel writes its structure, which is not longer, and changes nothing.
    let result = unsafe { raw_syscall!(Sysno::rt_sigaction, signal, 0, out, SET_BYTES) };
    match action[0] as usize {
        libc::SIG_IGN => false,
        libc::SIG_DFL => result == 0 && bit(signal) & IGNORED == 0,
        _ => true,
    }
}

/// What a function of C that failed left.
pub fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_of_a_word_has_its_signals() {
        let set = set(bit(libc::SIGUSR1));
        // SAFETY: a set, and a signal that there is.
        let has = |signal| unsafe { libc::sigismember(&raw const set, signal) };
        assert_eq!((has(libc::SIGUSR1), has(libc::SIGUSR2)), (1, 0));
    }

    #[test]
    fn ignored_signal_that_waits_ends_no_call() {
        // SAFETY: no mask.
        let mut signals = unsafe { Signals::new(core::ptr::null()) };
        assert!(!signals.are_waiting());
        // SAFETY: a signal that nobody handles, to this thread.
        unsafe { libc::raise(libc::SIGWINCH) };
        assert_ne!(pending() & bit(libc::SIGWINCH), 0);
        assert!(!signals.are_waiting());
        assert!(signals.before_sleep().is_none());
        assert_eq!(pending(), 0);
    }
}
