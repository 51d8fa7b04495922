//! A handler of bus errors for mappings whose memory can go away, for programs that ask for it.
//!
//! An access to a page that a file no longer has, or to a device that was removed, is SIGBUS, which ends the process. The guard
//! puts a zeroed page of this process in the place of the lost one, notes that the mapping has lost memory, and lets the access
//! go on; the program learns of it when it looks ([`crate::MappedSegment::is_intact`]). Every other SIGBUS goes to the handler
//! that was there before.
//!
//! Nothing installs it but [`FaultGuard::install`]: a handler is one for the whole process, and which it has is for the program
//! to say (decision 0029). Not here: faults inside system calls, which fail with
//! `EFAULT` and lose nothing, and threads that block SIGBUS, which the kernel ends with their process.

mod table;
mod watched;

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;

use crate::PerProcess;
use crate::segment::GuardError;
use crate::sync::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

pub(crate) use table::Range;
pub(crate) use watched::Watched;

/// Says that the process's handler of bus errors is the guard's; made by [`FaultGuard::install`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultGuard(());

/// The handler before the guard's: an address, or `SIG_DFL` or `SIG_IGN`; and its flags.
static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);
/// Whether the guard was ever installed, by this process or by one that it was forked from.
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Locked while the guard is installed. A forked child has its own: a thread of its parent may have had that one.
static INSTALLING: PerProcess<Mutex<()>> = PerProcess::new();

impl FaultGuard {
    /// Makes the guard the process's handler of SIGBUS, once; the handler until now is called for what is not the guard's, with
    /// the mask and, but for the stack, with the flags that it had. There is no way back: handlers that are installed later may
    /// call this one.
    ///
    /// Install it when every other handler of SIGBUS is there. Threads that access guarded memory must not block SIGBUS.
    ///
    /// # Errors
    /// [`GuardError::Replaced`] if it was installed and is not the handler now, [`GuardError::Refused`].
    pub fn install() -> Result<Self, GuardError> {
        let _installing =
            INSTALLING.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let before = action(None)?;
        if is_ours(&before) {
            // A child that was forked in the middle of an installation has the handler and not yet the word for it.
            // Relaxed, here and below: with the lock.
            INSTALLED.store(true, Ordering::Relaxed);
            return Ok(FaultGuard(()));
        }
        if INSTALLED.load(Ordering::Relaxed) {
            // Once more would make a circle of a handler that calls the one before it.
            return Err(GuardError::Replaced);
        }
        remember(&before);
        let mut ours = before;
        ours.sa_sigaction = handler_address();
        // The mask and the flags are those of the handler before, so that the kernel does for it what it asked for. Its own stack
        // is used where a thread has one, as handlers of languages with small stacks ask for.
        let kept = before.sa_flags & (libc::SA_RESTART | libc::SA_NODEFER);
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | kept;
        // A handler that came in between is the one to be called.
        remember(&action(Some(&ours))?);
        INSTALLED.store(true, Ordering::Relaxed);
        Ok(FaultGuard(()))
    }

    /// Whether the process's handler of SIGBUS still is the guard's own. A handler that was installed after it and calls it for
    /// what is not its own is a `false` too.
    pub fn is_first(self) -> bool {
        action(None).is_ok_and(|action| is_ours(&action))
    }
}

/// Whether a lost page at this address would be replaced.
#[cfg(all(test, not(miri)))]
pub(crate) fn is_watched(address: usize) -> bool {
    watched::find(address).is_some()
}

fn handler_address() -> libc::sighandler_t {
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    handler as *const () as libc::sighandler_t
}

fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == handler_address()
}

fn remember(before: &libc::sigaction) {
    // Relaxed: the kernel delivers a signal to the guard after it has taken the action of this thread, or of a later one.
    PREVIOUS_FLAGS.store(before.sa_flags, Ordering::Relaxed);
    PREVIOUS.store(before.sa_sigaction, Ordering::Relaxed);
}

/// The process's action for SIGBUS, and sets another one.
fn action(new: Option<&libc::sigaction>) -> Result<libc::sigaction, GuardError> {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null or an action whose handler is a function for `SA_SIGINFO`, or was there before; `before` has room for
    // one, which the kernel's call fills.
    let done = unsafe { libc::sigaction(libc::SIGBUS, new, before.as_mut_ptr()) };
    if done != 0 {
        let errno = Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL);
        return Err(GuardError::Refused { errno });
    }
    // SAFETY: the call has succeeded, and so filled it.
    Ok(unsafe { before.assume_init() })
}

/// The handler. Everything that it calls is async-signal-safe: loads and stores of atomics, `mmap` (a bare system call on Linux),
/// `sigaction`, `raise`.
extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: libc has an errno for each thread, and this is its address.
    let errno_at = unsafe { libc::__errno_location() };
    // SAFETY: the address of this thread's errno.
    let errno = unsafe { errno_at.read() };
    // SAFETY: the kernel gives a handler with `SA_SIGINFO` the information, which lives until the handler returns.
    let about = unsafe { &*info };
    let code = about.si_code;
    // SAFETY: the kernel fills the address in for all codes of SIGBUS that come from a fault; for others it is not used.
    let address = unsafe { about.si_addr() }.addr();
    // Only what is not there. A misaligned access and broken memory (`BUS_MCEERR_AR`) are no loss of a page.
    if code != libc::BUS_ADRERR || !replace(address) {
        call_previous(signal, code, info, context);
    }
    // SAFETY: the address of this thread's errno.
    unsafe { errno_at.write(errno) };
}

/// Puts zeroed memory in the place of a guarded mapping's lost page; `false` if none has the address, or it cannot be had.
fn replace(address: usize) -> bool {
    let Some((entry, range)) = watched::find(address) else { return false };
    // Before the page is there, so that who loads from the page finds the mark.
    entry.mark_lost();
    let page = address - (address - range.start) % range.page_bytes;
    // All of the mapping where a page more would be a mapping more than the process may have.
    map_zeroed(page, range.page_bytes, range.is_writable)
        || map_zeroed(range.start, range.bytes, range.is_writable)
}

fn map_zeroed(start: usize, bytes: usize, is_writable: bool) -> bool {
    let protection = libc::PROT_READ | if is_writable { libc::PROT_WRITE } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let place = ptr::without_provenance_mut::<c_void>(start);
    // SAFETY: whole pages of a guarded mapping, which exists: an access to it brought us here, and whoever unmaps a segment
    // promises that nobody accesses it. What replaces the pages has the same protection.
    let mapped = unsafe { libc::mmap(place, bytes, protection, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// Does what would have been done without the guard.
fn call_previous(signal: c_int, code: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // Relaxed: stored before the guard became the handler.
    let flags = PREVIOUS_FLAGS.load(Ordering::Relaxed);
    let once = flags & libc::SA_RESETHAND != 0;
    // Relaxed: as above; of two threads only one gets a handler that is to be called once.
    let previous =
        if once { PREVIOUS.swap(libc::SIG_DFL, Ordering::Relaxed) } else { PREVIOUS.load(Ordering::Relaxed) };
    let is_sent = code <= 0;
    match previous {
        // The kernel lets nobody ignore a fault.
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => end(signal, is_sent),
        handler if flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the program installed this address as a handler with `SA_SIGINFO`, whose type this is.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the program installed this address as a handler without `SA_SIGINFO`, whose type this is.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Ends the process by the signal, at the access that failed: the default action is put back, and the access is made again when
/// the handler returns. A signal that somebody sent is sent again.
fn end(signal: c_int, is_sent: bool) {
    // SAFETY: an action of zeros has an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = libc::SIG_DFL;
    // SAFETY: the default action needs nothing to be there.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    if is_sent {
        // SAFETY: it is delivered when the handler returns, or now.
        unsafe { libc::raise(signal) };
    }
}

#[cfg(test)]
#[cfg(all(not(miri), not(target_arch = "aarch64")))]
mod tests;
