//! Calls on epoll sets.

use core::ffi::c_int;
use core::slice;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use beeline_socket_engine::Carried;
use beeline_socket_engine::readiness::{Change, Clock, EpollKernel, Set};
use beeline_socket_rules::Why;
use libc::{epoll_event, sigset_t, timespec};
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::hooks::held::{Signals, last_errno};
use crate::process::{
    Cancellable, active, forbid, guarded, hand_over_if_unused, known, owns_tables, running,
};
use crate::{errno, origin, real};

/// # Safety
/// As `epoll_create`.
pub unsafe fn epoll_create(size: c_int) -> c_int {
    // SAFETY: what the program gives.
    created(unsafe { real::epoll_create(size) })
}

/// # Safety
/// As `epoll_create1`.
pub unsafe fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: what the program gives.
    created(unsafe { real::epoll_create1(flags) })
}

fn created(number: c_int) -> c_int {
    if number >= 0
        && let Some(sockets) = active()
        && owns_tables()
    {
        origin::note(number);
        guarded(|| sockets.sets().created(number));
    }
    number
}

/// The set of this process that has the number.
fn set(number: c_int) -> Option<&'static Set<Carried>> {
    running()?.sets().find(number)
}

/// A number that the kernel has just taken for a descriptor, or that a set has.
fn borrowed(number: c_int) -> BorrowedFd<'static> {
    // SAFETY: not -1, which is no descriptor. The program keeps it open while it makes a call on it, as for the real function.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// # Safety
/// As `epoll_ctl`.
pub unsafe fn epoll_ctl(number: c_int, operation: c_int, member: c_int, event: *mut epoll_event) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::epoll_ctl(number, operation, member, event) };
    let change = match operation {
        libc::EPOLL_CTL_ADD => Change::Add,
        libc::EPOLL_CTL_MOD => Change::Modify,
        libc::EPOLL_CTL_DEL => Change::Delete,
        _ => return kernel(),
    };
    let Some(sockets) = running() else { return kernel() };
    let asked = if change == Change::Delete || event.is_null() {
        Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }
    } else {
        // SAFETY: the program gives an event, which the kernel is about to read too.
        let event = unsafe { event.read_unaligned() };
        Event { flags: EventFlags::from_bits_retain(event.events), data: EventData::new_u64(event.u64) }
    };
    if let Some(set) = set(number) {
        guarded(|| set.before_change(borrowed(number), asked));
    }
    let result = kernel();
    if result == 0 && owns_tables() {
        origin::note(member);
        if change == Change::Add {
            share(member, Why::SetNested);
        }
        let watched =
            known(member).and_then(|known| guarded(|| known.sockets.carried_to_wait_for(known.socket)));
        let changed = guarded(|| sockets.sets().changed(borrowed(number), change, member, watched, asked));
        if let Err(refusal) = changed
            && change != Change::Delete
            && known(member).is_some()
        {
            forbid(member, refusal.into());
        }
    }
    result
}

/// A set that others than this process's calls on it may wait for: its connections become the kernel's.
pub fn share(number: c_int, why: Why) {
    if let Some(set) = set(number) {
        give_back_inherited(set);
        guarded(|| set.share(borrowed(number))).into_iter().for_each(|member| forbid(member, why));
    }
}

/// As [`share`], of a set of which the library is to know nothing any more.
pub fn leave(number: c_int, why: Why) {
    share(number, why);
    if let Some(set) = set(number) {
        guarded(|| set.take_bell_out(borrowed(number)));
    }
}

/// A child of fork is about to wait at its parent's set: what nobody has used since is the kernel's before, for all of the family.
fn give_back_inherited(set: &Set<Carried>) {
    hand_over_if_unused(guarded(|| set.inherited_connections()).into_iter(), Why::SetShared);
}

/// Whether a set has the number, or it is one.
#[inline]
pub fn has(number: c_int) -> bool {
    running().is_some_and(|sockets| sockets.sets().has(number))
}

/// The number is about to mean nothing, or means something new.
pub fn closed(number: c_int) {
    if let Some(sockets) = running() {
        guarded(|| sockets.sets().closed(number));
    }
}

/// # Safety
/// As `epoll_wait`.
pub unsafe fn epoll_wait(number: c_int, events: *mut epoll_event, most: c_int, timeout: c_int) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::epoll_wait(number, events, most, timeout) };
    // SAFETY: as for the real function; there is no mask.
    unsafe { wait(number, events, most, Some(limit_of(timeout)), core::ptr::null(), kernel) }
}

/// # Safety
/// As `epoll_pwait`.
pub unsafe fn epoll_pwait(
    number: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::epoll_pwait(number, events, most, timeout, mask) };
    // SAFETY: as for the real function.
    unsafe { wait(number, events, most, Some(limit_of(timeout)), mask, kernel) }
}

/// # Safety
/// As `epoll_pwait2`.
pub unsafe fn epoll_pwait2(
    number: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: what the program gives.
    let kernel = || unsafe { real::epoll_pwait2(number, events, most, timeout, mask) };
    // SAFETY: null, or a time of the program.
    let limit = unsafe { limit_at(timeout) };
    // SAFETY: as for the real function.
    unsafe { wait(number, events, most, limit, mask, kernel) }
}

/// Of milliseconds; a negative number is no limit.
pub fn limit_of(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// Of a time, where none is no limit. `None` for a time that the kernel refuses.
///
/// # Safety
/// `time` is null or a time.
pub unsafe fn limit_at(time: *const timespec) -> Option<Option<Duration>> {
    // SAFETY: null, or a time that the caller has.
    let Some(time) = (unsafe { time.as_ref() }) else { return Some(None) };
    let nanoseconds = u32::try_from(time.tv_nsec).ok().filter(|nanoseconds| *nanoseconds < 1_000_000_000)?;
    Some(Some(Duration::new(u64::try_from(time.tv_sec).ok()?, nanoseconds)))
}

/// # Safety
/// `events` has room for `most`, and `mask` is null or a set of signals.
unsafe fn wait(
    number: c_int,
    events: *mut epoll_event,
    most: c_int,
    limit: Option<Option<Duration>>,
    mask: *const sigset_t,
    kernel: impl FnOnce() -> c_int,
) -> c_int {
    let (Some(sockets), Some(set), Some(limit)) = (running(), set(number), limit) else { return kernel() };
    let room = usize::try_from(most).ok().filter(|room| *room > 0 && *room <= isize::MAX as usize / 64);
    let (Some(room), false) = (room, events.is_null()) else { return kernel() };
    // SAFETY: the program has room for so many events; rustix lays an event out as the kernel does.
    let out = unsafe { slice::from_raw_parts_mut(events.cast::<Event>(), room) };
    give_back_inherited(set);
    let guard = Cancellable::new();
    // SAFETY: null, or a set of signals of the program.
    let signals = unsafe { Signals::new(mask) };
    let mut call = Call { epoll: borrowed(number), signals, guard: &guard };
    let waited = set.wait(&mut call, out, limit, sockets.spin());
    drop(call);
    guard.end();
    errno::answer(waited) as c_int
}

/// One call, as the engine asks the kernel in its name.
struct Call<'a> {
    epoll: BorrowedFd<'static>,
    signals: Signals,
    guard: &'a Cancellable,
}

/// The clock of time-outs.
pub fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is negative.
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}

/// A time of C; one that no time of C can be is for ever.
pub fn time_of(limit: Duration) -> timespec {
    timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    }
}

impl Clock for Call<'_> {
    fn now(&self) -> Duration {
        now()
    }

    fn is_interrupted(&mut self) -> bool {
        self.signals.are_waiting()
    }
}

impl EpollKernel for Call<'_> {
    fn epoll(&self) -> BorrowedFd<'_> {
        self.epoll
    }

    fn look(&mut self, out: &mut [Event]) -> Result<usize, Errno> {
        epoll::wait(self.epoll, out, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
    }

    fn sleep(&mut self, out: &mut [Event], limit: Option<Duration>) -> Result<usize, Errno> {
        use std::os::fd::AsRawFd;
        let mask = self.signals.before_sleep();
        let mask = mask.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let time = limit.map(time_of);
        let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let (number, most) = (self.epoll.as_raw_fd(), out.len() as c_int);
        let events = out.as_mut_ptr().cast::<epoll_event>();
        // SAFETY: as many events as there are in `out`; time and mask live through the call.
        let told = self.guard.kernel(|| unsafe { real::epoll_pwait2(number, events, most, time, mask) });
        match usize::try_from(told).map_err(|_| last_errno()) {
            // Before Linux 5.11.
            Err(Errno::NOSYS) => {
                let milliseconds = limit.map_or(-1, |limit| {
                    c_int::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX)
                });
                // SAFETY: as above.
                let told = self
                    .guard
                    .kernel(|| unsafe { real::epoll_pwait(number, events, most, milliseconds, mask) });
                usize::try_from(told).map_err(|_| last_errno())
            }
            told => told,
        }
    }
}
