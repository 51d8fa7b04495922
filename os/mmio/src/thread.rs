//! Threads of our own, on which no handler of the program's signals ever runs.
//!
//! A program that links us has handlers for its own threads. One that runs on ours interrupts what everybody waits for, may
//! block it, and finds none of the state that it expects. A new thread has the signal mask of the one that starts it, so
//! signals are blocked here for the moment of starting.

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Signals that a thread causes itself by what it does. They stay open: the kernel delivers them to no other thread, and
/// blocking them would only take from the program what it does about them: a stack overflow would end it without a word.
const OWN_FAULTS: [libc::c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Starts a thread in which every signal is blocked but those that report a fault of its own.
///
/// # Errors
/// The process is out of threads or memory.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _blocked = Blocked::new();
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Starts a thread within a scope, with the signals of [`spawn`] blocked.
///
/// # Errors
/// The process is out of threads or memory.
pub fn spawn_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let _blocked = Blocked::new();
    Builder::new().name(name.to_owned()).spawn_scoped(scope, body)
}

/// Has the calling thread run only while a core has nothing else to do (`SCHED_IDLE`), or hardly more where the kernel refuses that. It
/// cannot be taken back.
///
/// # Errors
/// The kernel refuses both.
pub fn run_when_idle() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // The system call, because musl's function of that name refuses. SAFETY: it reads an initialised structure and changes no memory.
    let idle =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const parameters) };
    if idle == 0 {
        return Ok(());
    }
    // SAFETY: changes no memory. For Linux 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The signal mask of the calling thread until all signals were blocked in it; dropping it brings that one back.
struct Blocked(Option<libc::sigset_t>);

impl Blocked {
    fn new() -> Self {
        if cfg!(miri) {
            return Blocked(None);
        }
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigfillset initialises the set it is given, and fails for no valid address.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: as above: it is initialised.
        let mut all = unsafe { all.assume_init() };
        for signal in OWN_FAULTS {
            // SAFETY: an initialised set and the number of a signal.
            unsafe { libc::sigdelset(&raw mut all, signal) };
        }
        let mut before = all;
        // SAFETY: two initialised sets of this function; the call changes the mask of this thread and no memory but `before`.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        Blocked((result == 0).then_some(before))
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: the mask that pthread_sigmask gave; nothing is written.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    /// The blocked signals of the calling thread, a bit each, as the kernel says.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_that_runs_when_idle_has_the_policy_for_that_and_its_starter_has_not() {
        // SAFETY: no memory is involved.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let there = spawn("test", move || {
            run_when_idle().unwrap();
            policy()
        });
        assert_eq!((there.unwrap().join().unwrap(), policy()), (libc::SCHED_IDLE, libc::SCHED_OTHER));
    }

    #[test]
    fn a_thread_of_ours_blocks_every_signal_but_its_own_faults_and_the_starter_none() {
        let before = blocked();
        let there = spawn("test", blocked).unwrap().join().unwrap();
        let within = std::thread::scope(|scope| spawn_in(scope, "test", blocked).unwrap().join().unwrap());
        assert_eq!(blocked(), before, "the mask of the starting thread");
        assert_eq!(within, there);
        let bit = |signal: libc::c_int| 1u64 << (signal - 1);
        for signal in
            [libc::SIGTERM, libc::SIGINT, libc::SIGALRM, libc::SIGPROF, libc::SIGUSR1, libc::SIGCHLD]
        {
            assert_ne!(there & bit(signal), 0, "signal {signal}");
        }
        for signal in OWN_FAULTS {
            assert_eq!(there & bit(signal), before & bit(signal), "signal {signal}");
        }
    }
}
