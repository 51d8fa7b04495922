//! Threads of our own, on which no handler of the program's signals ever runs.
//!
//! A program that links us has handlers for its own threads. One that runs on ours interrupts what everybody waits for, may
//! block it, and finds none of the state that it expects. A new thread has the signal mask of the one that starts it, so
//! signals are blocked here for the moment of starting.
//!
//! [`start`] has the C library start one, not the standard library: where that has installed its handler for stack overflows, which
//! it has in every program in Rust, each of its threads takes a lock for it as it begins and as it ends. In a child that is forked while another
//! thread of its parent has that lock, every thread that the standard library starts waits for it for ever.

mod started;

use std::any::Any;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle, ThreadId};

pub use started::wait_until_gone;

/// Signals that a thread causes itself by what it does. They stay open: the kernel delivers them to no other thread, and
/// blocking them would only take from the program what it does about them: a stack overflow would end it without a word.
const OWN_FAULTS: [libc::c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Starts a thread in which every signal is blocked but those that report a fault of its own; in a child of fork too, whatever threads
/// its parent had. A stack overflow of the thread ends the program without the sentence about it.
///
/// # Errors
/// The process is out of threads or memory; the name has a zero.
pub fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Running<T>> {
    let ended = Arc::new(Ended { id: OnceLock::new(), result: Mutex::new(None) });
    let name = CString::new(&name.as_bytes()[..name.len().min(LONGEST_NAME)])?;
    let beginning = started::Beginning::new();
    let main = {
        let ended = Arc::clone(&ended);
        move || {
            beginning.runs();
            // SAFETY: no memory is involved.
            let this = unsafe { libc::pthread_self() };
            // SAFETY: the thread's own number, and a string of C that is not too long.
            unsafe { libc::pthread_setname_np(this, name.as_ptr()) };
            let _ = ended.id.set(std::thread::current().id());
            let result = catch_unwind(AssertUnwindSafe(body));
            *ended.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    let _blocked = Blocked::new();
    Ok(Running { number: create(Box::new(main))?, is_joined: false, ended })
}

/// As [`start`], by the standard library, for who has to unpark it: in no child of fork.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let _blocked = Blocked::new();
    Builder::new().name(name.to_owned()).spawn(body)
}

/// A thread that [`start`] has started; dropping this leaves it to itself. In a child of fork it is to be forgotten: the thread is not there.
pub struct Running<T> {
    number: Number,
    is_joined: bool,
    ended: Arc<Ended<T>>,
}

struct Ended<T> {
    /// Once the thread runs.
    id: OnceLock<ThreadId>,
    result: Mutex<Option<Result<T, Box<dyn Any + Send>>>>,
}

/// How the C library knows a thread. For some it is a pointer, which any thread may have.
struct Number(libc::pthread_t);

// SAFETY: the functions that take it may be called by any thread.
unsafe impl Send for Number {}
// SAFETY: as above; by reference nothing is done with it.
unsafe impl Sync for Number {}

impl<T> Running<T> {
    /// Waits until it has ended. The error is what it panicked with.
    ///
    /// # Errors
    /// What the thread panicked with.
    pub fn join(mut self) -> Result<T, Box<dyn Any + Send>> {
        self.is_joined = true;
        // SAFETY: a thread that was started, and neither joined nor detached.
        unsafe { libc::pthread_join(self.number.0, std::ptr::null_mut()) };
        let result = self.ended.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.expect("a thread leaves its result before it ends")
    }

    /// Whether it has done all that it was to do.
    pub fn is_finished(&self) -> bool {
        self.ended.result.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether it is the thread that calls.
    pub fn is_this_thread(&self) -> bool {
        self.ended.id.get() == Some(&std::thread::current().id())
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if !self.is_joined {
            // SAFETY: a thread that was started, and neither joined nor detached.
            unsafe { libc::pthread_detach(self.number.0) };
        }
    }
}

impl<T> fmt::Debug for Running<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Running").field("thread", &self.ended.id.get()).finish_non_exhaustive()
    }
}

/// Bytes of a name that the kernel keeps, without the zero.
const LONGEST_NAME: usize = 15;
/// As much as threads of the standard library have.
const STACK_BYTES: usize = 2 << 20;

type Main = Box<dyn FnOnce() + Send>;

/// Starts a thread, which `main` does not unwind.
fn create(main: Main) -> io::Result<Number> {
    extern "C" fn begin(main: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the box of `create`, which has left it to this thread.
        let main = unsafe { Box::from_raw(main.cast::<Main>()) };
        main();
        std::ptr::null_mut()
    }

    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: initialises them, which fails for want of memory alone.
    check(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
    // SAFETY: initialised; the size is more than the least, and of whole pages.
    let sized = check(unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES) });
    let main = Box::into_raw(Box::new(main));
    let mut number = MaybeUninit::<libc::pthread_t>::uninit();
    let created = sized.and_then(|()| {
        // SAFETY: initialised attributes; `begin` takes the box.
        check(unsafe { libc::pthread_create(number.as_mut_ptr(), attributes.as_ptr(), begin, main.cast()) })
    });
    // SAFETY: initialised, and not used any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if let Err(error) = created {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(main) });
        return Err(error);
    }
    // SAFETY: the thread was started, so its number was written.
    Ok(Number(unsafe { number.assume_init() }))
}

fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Starts a thread within a scope, with the signals of [`start`] blocked.
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
        let there = start("test", move || {
            run_when_idle().unwrap();
            policy()
        });
        assert_eq!((there.unwrap().join().unwrap(), policy()), (libc::SCHED_IDLE, libc::SCHED_OTHER));
    }

    #[test]
    fn thread_gives_what_it_ends_with_and_is_known_by_its_name() {
        let thread = start("a-name-that-is-too-long", || std::fs::read_to_string("/proc/thread-self/comm"));
        let thread = thread.unwrap();
        assert!(!thread.is_this_thread());
        assert_eq!(thread.join().unwrap().unwrap(), "a-name-that-is-\n");
        assert!(start("test", || panic!("on purpose")).unwrap().join().is_err());
        let (to, from) = std::sync::mpsc::channel::<()>();
        let thread = start("test", move || from.recv().is_err()).unwrap();
        assert!(!thread.is_finished());
        drop(to);
        assert!(thread.join().unwrap());
    }

    #[test]
    fn a_thread_of_ours_blocks_every_signal_but_its_own_faults_and_the_starter_none() {
        let before = blocked();
        let there = start("test", blocked).unwrap().join().unwrap();
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
