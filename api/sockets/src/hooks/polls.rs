//! `poll`, `select` and their kind.

use core::ffi::{c_int, c_long};
use core::slice;
use std::time::Duration;

use beeline_socket_engine::OwnBell;
use beeline_socket_engine::readiness::{Clock, Connections, PollEntry, PollKernel, SelectKernel, Selection};
use beeline_socket_engine::{Sockets, readiness};
use beeline_socket_rules::Why;
use libc::{FD_SETSIZE, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use syscalls::{Sysno, raw_syscall};

use crate::hooks::held::{Signals, last_errno};
use crate::hooks::sets::{limit_at, limit_of, now, share, time_of};
use crate::process::{Cancellable, guarded, known, running};
use crate::{errno, kernel, real};

const _: () = assert!(size_of::<PollEntry>() == size_of::<pollfd>());
const _: () = assert!(size_of::<c_long>() == size_of::<usize>());

/// # Safety
/// As `poll`.
pub unsafe fn poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::poll(list, count, timeout) };
    // SAFETY: as for the real function; there is no mask.
    unsafe { poll_list(list, count, Some(limit_of(timeout)), core::ptr::null(), kernel) }
}

/// # Safety
/// As `poll`, for a list that has `room` bytes.
pub unsafe fn __poll_chk(list: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::__poll_chk(list, count, timeout, room) };
    if room / size_of::<pollfd>() < count as usize {
        return kernel();
    }
    // SAFETY: as for the real function; there is no mask.
    unsafe { poll_list(list, count, Some(limit_of(timeout)), core::ptr::null(), kernel) }
}

/// # Safety
/// As `ppoll`.
pub unsafe fn ppoll(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::ppoll(list, count, timeout, mask) };
    // SAFETY: null, or a time of the program.
    let limit = unsafe { limit_at(timeout) };
    // SAFETY: as for the real function.
    unsafe { poll_list(list, count, limit, mask, kernel) }
}

/// # Safety
/// As `ppoll`, for a list that has `room` bytes.
pub unsafe fn __ppoll_chk(
    list: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::__ppoll_chk(list, count, timeout, mask, room) };
    if room / size_of::<pollfd>() < count as usize {
        return kernel();
    }
    // SAFETY: null, or a time of the program.
    let limit = unsafe { limit_at(timeout) };
    // SAFETY: as for the real function.
    unsafe { poll_list(list, count, limit, mask, kernel) }
}

/// The engine, if it may know connections.
fn with_connections() -> Option<&'static Sockets> {
    running().filter(|sockets| sockets.are_any())
}

fn own_bell() -> Option<std::sync::Arc<OwnBell>> {
    OwnBell::of_this_thread().ok()
}

/// A set that is polled is shared; a connection behind a fork is claimed.
fn before_poll(number: c_int) {
    share(number, Why::Poll);
    if let Some(known) = known(number) {
        guarded(|| known.sockets.carried_to_wait_for(known.socket));
    }
}

/// Whether the kernel takes a list of this length. If not it says so before it looks at the list, which may be shorter.
fn is_allowed(count: usize) -> bool {
    const ALWAYS: usize = 64;
    count <= ALWAYS || getrlimit(Resource::Nofile).current.is_none_or(|most| count as u64 <= most)
}

/// # Safety
/// `list` has `count` entries, and `mask` is null or a set of signals.
unsafe fn poll_list(
    list: *mut pollfd,
    count: nfds_t,
    limit: Option<Option<Duration>>,
    mask: *const sigset_t,
    kernel: impl Fn() -> c_int,
) -> c_int {
    let (Some(sockets), Some(limit)) = (with_connections(), limit) else { return kernel() };
    let count = usize::try_from(count).ok().filter(|count| *count > 0 && is_allowed(*count));
    let (Some(count), false) = (count, list.is_null()) else { return kernel() };
    // SAFETY: the program has so many entries, and an entry is laid out as the kernel has it.
    let entries = unsafe { slice::from_raw_parts_mut(list.cast::<PollEntry>(), count) };
    entries.iter().for_each(|entry| before_poll(entry.number));
    let guard = Cancellable::new();
    // SAFETY: null, or a set of signals of the program.
    let signals = unsafe { Signals::new(mask) };
    let mut call = Call { signals, guard: &guard, select: || -1, is_selected: false };
    let polled = readiness::poll(sockets, entries, &mut call, limit, sockets.spin(), own_bell);
    drop(call);
    guard.end();
    errno::answer(polled) as c_int
}

/// One call, as the engine asks the kernel in its name.
struct Call<'a, F> {
    signals: Signals,
    guard: &'a Cancellable,
    /// The program's own call, where it is a select.
    select: F,
    is_selected: bool,
}

impl<F: Fn() -> c_int> Clock for Call<'_, F> {
    fn now(&self) -> Duration {
        now()
    }

    fn is_interrupted(&mut self) -> bool {
        self.signals.are_waiting()
    }
}

impl<F: Fn() -> c_int> PollKernel for Call<'_, F> {
    fn look(&mut self, entries: &mut [PollEntry]) -> Result<usize, Errno> {
        let at_once = timespec { tv_sec: 0, tv_nsec: 0 };
        let (list, count, time) = (entries.as_mut_ptr(), entries.len(), &raw const at_once);
        // SAFETY: the kernel writes to `count` entries, and reads a time that lives through the call; a null mask is none.
        let told = unsafe { raw_syscall!(Sysno::ppoll, list, count, time, 0, 0) };
        syscalls::Errno::from_ret(told).map_err(|errno| Errno::from_raw_os_error(errno.into_raw()))
    }

    fn sleep(&mut self, entries: &mut [PollEntry], limit: Option<Duration>) -> Result<usize, Errno> {
        let mask = self.signals.before_sleep();
        let mask = mask.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let time = limit.map(time_of);
        let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let (list, count) = (entries.as_mut_ptr().cast::<pollfd>(), entries.len() as nfds_t);
        // SAFETY: as many entries as there are; time and mask live through the call.
        let told = self.guard.kernel(|| unsafe { real::ppoll(list, count, time, mask) });
        usize::try_from(told).map_err(|_| last_errno())
    }
}

impl<F: Fn() -> c_int> SelectKernel for Call<'_, F> {
    fn select(&mut self) -> Result<usize, Errno> {
        self.is_selected = true;
        let told = self.guard.kernel(|| (self.select)());
        usize::try_from(told).map_err(|_| last_errno())
    }
}

/// # Safety
/// As `select`.
pub unsafe fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::select(count, read, write, except, timeout) };
    // SAFETY: null, or a time of the program.
    let time = unsafe { kernel::time_at(timeout) };
    // SAFETY: null, or what was made of it for this thread.
    let limit = unsafe { limit_at(time) };
    let start = now();
    // SAFETY: as for the real function; there is no mask.
    let (told, is_selected) =
        unsafe { select_sets(count, [read, write, except], limit, core::ptr::null(), kernel) };
    // Linux leaves there what is left of the time.
    if !is_selected && let Some(Some(limit)) = limit {
        let left = limit.saturating_sub(now() - start);
        // SAFETY: not null, since there is a limit; the program has a time there.
        unsafe {
            timeout.write(timeval { tv_sec: left.as_secs() as _, tv_usec: left.subsec_micros().into() })
        };
    }
    told
}

/// # Safety
/// As `pselect`.
pub unsafe fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::pselect(count, read, write, except, timeout, mask) };
    // SAFETY: null, or a time of the program.
    let limit = unsafe { limit_at(timeout) };
    // SAFETY: as for the real function.
    unsafe { select_sets(count, [read, write, except], limit, mask, kernel) }.0
}

/// What a select gives, and whether the real one was called.
///
/// # Safety
/// Each set is null or has bits for `count` numbers, and `mask` is null or a set of signals.
unsafe fn select_sets(
    count: c_int,
    sets: [*mut fd_set; 3],
    limit: Option<Option<Duration>>,
    mask: *const sigset_t,
    kernel: impl Fn() -> c_int,
) -> (c_int, bool) {
    let (Some(connections), Some(limit)) = (with_connections(), limit) else { return (kernel(), true) };
    let Ok(numbers) = usize::try_from(count) else { return (kernel(), true) };
    let numbers = if numbers > FD_SETSIZE { numbers.min(room_for_numbers()) } else { numbers };
    // SAFETY: what the caller says.
    let mut selection = unsafe { selection(sets, numbers) };
    selection.numbers().for_each(before_poll);
    let guard = Cancellable::new();
    // SAFETY: null, or a set of signals of the program.
    let signals = unsafe { Signals::new(mask) };
    let mut call = Call { signals, guard: &guard, select: kernel, is_selected: false };
    let mut told =
        readiness::select(connections, &mut selection, &mut call, limit, connections.spin(), own_bell);
    if told == Err(Errno::BADF) && !call.is_selected {
        // The kernel does not look at numbers that no descriptor of the process could have so far.
        selection.numbers = numbers.min(room_for_numbers());
        told = readiness::select(connections, &mut selection, &mut call, limit, connections.spin(), own_bell);
    }
    let is_selected = call.is_selected;
    drop(call);
    guard.end();
    (errno::answer(told) as c_int, is_selected)
}

/// # Safety
/// Each set is null or has bits for so many numbers.
unsafe fn selection(sets: [*mut fd_set; 3], numbers: usize) -> Selection<'static> {
    let words = numbers.div_ceil(usize::BITS as usize);
    let sets = sets.map(|set| {
        // SAFETY: not null, and the program has bits for so many numbers there, in words, however long `fd_set` is.
        (!set.is_null()).then(|| unsafe { slice::from_raw_parts_mut(set.cast::<usize>(), words) })
    });
    Selection { sets, numbers }
}

/// How many numbers the kernel has room for, which grows with the highest that was used.
#[cold]
fn room_for_numbers() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    size.and_then(|size| size.trim().parse().ok()).unwrap_or(FD_SETSIZE)
}
