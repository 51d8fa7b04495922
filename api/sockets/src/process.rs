//! This process: whether the library does anything in it, and which connections it knows.
//!
//! The library is inert, and all its functions pass what they are given to the real ones, where it cannot work or is not wanted: in programs with other rights than
//! their user's, under a filter of system calls (it may kill for one that the library makes; unless a rule says that it does not), beside `liburing`, where the rules leave the program out, or the domain
//! cannot be opened. A process that restricts itself is the kernel's from then on. Rules and domain are looked at when the program makes its first socket of TCP, so that
//! a program without any pays for nothing.

use core::ffi::{CStr, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig, ROOT_VARIABLE};
use beeline_socket_engine::{Rest, Sockets, has_put_off};
use beeline_socket_rules::{Level, Rules, Why, works_under_filter};

use crate::{cancellation, errno, kernel, origin, put_off, real, told};

/// Nothing begins: before the constructor, while somebody decides, and for ever where the library is inert.
const INERT: u8 = 0;
/// Nothing forbids it so far, and nobody has looked at the rules.
const UNDECIDED: u8 = 1;
const ACTIVE: u8 = 2;
/// The library has left the process, for ever: what it does there it does without a system call, and no thread of it is there.
const LEFT: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(INERT);
/// The engine, once there is one. Connections that it knows stay known when no more begin.
static SOCKETS: AtomicPtr<Sockets> = AtomicPtr::new(null_mut());
/// The process whose connections are in the tables.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// A child of `vfork` that has closed numbers of its parent's connections, or given them to something else; 0 for none.
static BORROWER: AtomicI32 = AtomicI32::new(0);

/// Signals that end calls which they interrupt, a bit each.
static ENDING_SIGNALS: AtomicU64 = AtomicU64::new(0);

/// How long it is waited until the other process of a connection answers that it has back what was not received: where somebody else is about to use it, and before a fork.
const HANDED_OVER_WITHIN: Duration = Duration::from_millis(500);
/// The same for each of many connections, where others have not been.
const HANDED_OVER_AT_ONCE: Duration = Duration::from_millis(20);
const SETTLED_WITHIN: Duration = Duration::from_millis(20);

/// A connection that the engine knows by its number.
#[derive(Clone, Copy)]
pub struct Known {
    pub sockets: &'static Sockets,
    pub socket: BorrowedFd<'static>,
}

/// Run by the dynamic linker before the program's `main`.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
static BEGIN: extern "C" fn() = begin;

/// Run when the program has returned from `main`, or called `exit`.
#[cfg_attr(not(test), used, unsafe(link_section = ".fini_array"))]
static END: extern "C" fn() = end;

extern "C" fn end() {
    if let Some(sockets) = sockets().filter(|_| owns_tables()) {
        sockets.end();
    }
}

extern "C" fn begin() {
    errno::preserved(|| {
        real::find_all();
        PROCESS.store(kernel::process(), Ordering::Relaxed);
        // SAFETY: the functions store numbers, which they may between fork and exec. It fails for want of memory: then the library stays inert.
        let watches_forks =
            unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) } == 0;
        if watches_forks && may_work() {
            told::keep_standard_error();
            STATE.store(UNDECIDED, Ordering::Release);
        }
    });
}

/// The process is about to fork. A connection that another program would get with its number cannot wait until that uses it: nobody would say so here.
pub extern "C" fn before_fork() {
    origin::fork();
    // A child may receive, too, and nobody would say to which of the two a datagram of a window goes.
    let is_of_datagrams = |number: &c_int| sockets().is_some_and(|sockets| sockets.is_of_datagrams(*number));
    known_numbers().filter(is_of_datagrams).for_each(|number| forbid(number, Why::Forked));
    let is_carried = |number: &c_int| sockets().is_some_and(|sockets| sockets.endpoint(*number).is_some());
    let carried: Vec<c_int> = passed_to_programs().filter(is_carried).collect();
    carried.iter().for_each(|number| forbid(*number, Why::Forked));
    // Both find what nobody has received in the socket. Where the other process is stopped, whoever uses it first asks once more.
    let until = Instant::now() + SETTLED_WITHIN;
    for known in carried.into_iter().filter_map(known) {
        guarded(|| known.sockets.hand_over(known.socket, Why::Forked, until));
    }
    if let Some(sockets) = sockets() {
        sockets.before_fork();
    }
}

/// In the parent. A connection that the kernel carries still is the child's from now on, as a server means it that accepts and forks.
pub extern "C" fn after_fork() {
    if let Some(sockets) = sockets() {
        sockets.after_fork();
    }
    for number in passed_to_programs() {
        origin::share(number);
        if let Some(known) = known(number) {
            guarded(|| known.sockets.leave_to_child(known.socket));
        }
    }
}

/// The process is a child of fork, with one thread.
pub extern "C" fn in_child() {
    if has_left() {
        return;
    }
    PROCESS.store(kernel::process(), Ordering::Relaxed);
    if let Some(sockets) = sockets() {
        sockets.in_child();
    }
}

/// Whether nothing is known that forbids it to work in this process.
fn may_work() -> bool {
    // SAFETY: reads a number that the kernel gave the process.
    let has_other_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    let rings = [c"liburing.so.2", c"liburing.so.1"];
    let may_be_filtered = || works_under_filter(std::env::vars_os());
    !has_other_rights && (!kernel::is_filtered() || may_be_filtered()) && !rings.into_iter().any(is_loaded)
}

/// Whether a library is part of the program.
fn is_loaded(library: &CStr) -> bool {
    // SAFETY: `library` is a string of C; nothing is loaded, so no code of it runs.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if !handle.is_null() {
        // SAFETY: the handle is of the call before, and is used no more.
        unsafe { libc::dlclose(handle) };
    }
    !handle.is_null()
}

/// The engine, for what may become a connection of it. The first call decides whether there is one.
pub fn active() -> Option<&'static Sockets> {
    match STATE.load(Ordering::Acquire) {
        ACTIVE => sockets(),
        UNDECIDED => errno::preserved(decide),
        _ => None,
    }
}

/// Of threads that come at once one decides; what the others make meanwhile is the kernel's. So is everything in a child of fork that was made meanwhile.
#[cold]
fn decide() -> Option<&'static Sockets> {
    if !owns_tables()
        || STATE.compare_exchange(UNDECIDED, INERT, Ordering::AcqRel, Ordering::Relaxed).is_err()
    {
        return None;
    }
    let sockets = guarded(engine)?;
    if has_left() {
        return None;
    }
    sockets.set_restarts_calls(ENDING_SIGNALS.load(Ordering::SeqCst) == 0);
    SOCKETS.store(core::ptr::from_ref(sockets).cast_mut(), Ordering::Release);
    // Another thread may have had the library leave meanwhile.
    let is_active = STATE.compare_exchange(INERT, ACTIVE, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    is_active.then_some(sockets)
}

/// Makes the engine, if the rules have this program and the domain can be opened.
fn engine() -> Option<&'static Sockets> {
    let rules = match Rules::read() {
        Ok(rules) => rules,
        Err(error) => {
            say(&error);
            return None;
        }
    };
    let settings = rules.for_this_program();
    if settings.refused().is_some() {
        return None;
    }
    // Now: programs clear their environment (nginx), and the domain is opened later.
    let root = std::env::var_os(ROOT_VARIABLE);
    let domain = DomainConfig { root: root.map(Into::into), name: settings.rules().domain.clone() };
    if settings.rules().other_users && is_one_users(&domain) && settings.rules().log >= Level::Warn {
        told::tell(format_args!(
            "other_users = true meets nobody: BEELINE_ROOT is one folder; name each user's own with %u for the uid"
        ));
    }
    if let Err(error) = Domain::check(&domain) {
        if settings.rules().log >= Level::Error {
            say(&error);
        }
        return None;
    }
    told::begin(settings.rules().log);
    let mut sockets = Sockets::new(settings, domain);
    sockets.set_sleep(cancellation::sleep);
    Some(Box::leak(Box::new(sockets)))
}

/// Whether the folder of the domains is named, and is the same for all users.
fn is_one_users(domain: &DomainConfig) -> bool {
    domain
        .root
        .as_ref()
        .is_some_and(|root| !root.as_os_str().as_encoded_bytes().windows(2).any(|two| two == b"%u"))
}

/// Says on standard error why the library does nothing in this process.
fn say(error: &dyn core::fmt::Display) {
    told::tell(format_args!("the sockets of this program stay with the kernel: {error}"));
}

/// The engine, also where no connection begins any more.
#[inline]
fn sockets() -> Option<&'static Sockets> {
    // SAFETY: null, or the address of an engine that is never freed.
    unsafe { SOCKETS.load(Ordering::Acquire).as_ref() }
}

/// The engine, for calls of the process whose sets and connections it has.
#[inline]
pub fn running() -> Option<&'static Sockets> {
    let sockets = sockets()?;
    // A child of `vfork` makes no calls for its parent.
    (BORROWER.load(Ordering::Relaxed) == 0 || owns_tables()).then_some(sockets)
}

/// The connection of this number, if the engine knows one.
#[inline]
pub fn known(number: c_int) -> Option<Known> {
    let sockets = sockets().filter(|sockets| sockets.is_known(number))?;
    if BORROWER.load(Ordering::Relaxed) != 0 && !owns_tables() {
        // In a child of `vfork`, which has made something else of numbers.
        return None;
    }
    // SAFETY: a number that the engine knows is a descriptor, and the program keeps it open while it makes a call on it. One that another thread of the program closes
    // meanwhile is a number of nothing, or of something else, for the kernel, as it is for the real function; the engine looks for that.
    Some(Known { sockets, socket: unsafe { BorrowedFd::borrow_raw(number) } })
}

/// The connection becomes the kernel's for ever, if the engine knows the number; a socket that may become one never does.
pub fn forbid(number: c_int, why: Why) {
    origin::share(number);
    if let Some(known) = known(number) {
        guarded(|| known.sockets.forbid(known.socket, why));
    }
}

/// As [`forbid`], before somebody uses the socket who does not come to the hooks: what the program has not received of the window is in the socket then. A connection of
/// which that cannot be brought about is reset, since somebody would miss bytes.
pub fn hand_over(number: c_int, why: Why) {
    origin::share(number);
    if let Some(known) = known(number) {
        guarded(|| {
            if !known.sockets.hand_over(known.socket, why, Instant::now() + HANDED_OVER_WITHIN) {
                let _ = known.sockets.reset(known.socket);
            }
        });
    }
}

/// As [`hand_over`], where nobody misses a byte if that cannot be brought about: what the program asks of the socket next, the kernel alone answers.
pub fn settle(number: c_int, why: Why) {
    origin::share(number);
    if let Some(known) = known(number) {
        guarded(|| known.sockets.hand_over(known.socket, why, Instant::now() + HANDED_OVER_WITHIN));
    }
}

/// Waits until what other processes have given back to this one is in its sockets.
pub fn pay_all() {
    if let Some(sockets) = sockets().filter(|_| owns_tables()) {
        guarded(|| sockets.settle());
    }
}

/// As [`pay_all`], of a process that becomes another program.
pub fn leave_for_program() {
    if let Some(sockets) = sockets().filter(|_| owns_tables()) {
        guarded(|| sockets.leave_for_program());
    }
}

/// Says whether a signal ends a call that it interrupts; otherwise the call is made again.
pub fn set_ends_calls(signal: c_int, ends: bool) {
    let bit = 1u64 << (signal.cast_unsigned() % u64::BITS);
    match ends {
        true => ENDING_SIGNALS.fetch_or(bit, Ordering::SeqCst),
        false => ENDING_SIGNALS.fetch_and(!bit, Ordering::SeqCst),
    };
    if let Some(sockets) = sockets() {
        sockets.set_restarts_calls(ENDING_SIGNALS.load(Ordering::SeqCst) == 0);
    }
}

/// As [`hand_over`], of connections that this process may never use: what another one of its family has used since a fork stays as it is. Behind one whose other
/// process has not answered in time the next have less of it: they may be of the same process, which is stopped.
pub fn hand_over_if_unused(numbers: impl Iterator<Item = c_int>, why: Why) {
    let mut within = HANDED_OVER_WITHIN;
    for number in numbers {
        origin::share(number);
        let Some(known) = known(number) else { continue };
        guarded(|| {
            if !known.sockets.hand_over_if_unused(known.socket, why, Instant::now() + within) {
                let _ = known.sockets.reset(known.socket);
                within = (within / 2).max(HANDED_OVER_AT_ONCE);
            }
        });
    }
}

/// Whether the library has left this process.
#[inline]
pub fn has_left() -> bool {
    STATE.load(Ordering::Acquire) == LEFT
}

/// No connection begins from now on. Whether there is something to end in this process.
pub fn begin_leaving() -> bool {
    let is_here = !has_left() && owns_tables();
    if is_here {
        STATE.store(INERT, Ordering::Release);
    }
    is_here
}

/// Behind [`begin_leaving`], and once no set has a bell: every connection becomes the kernel's, and the library leaves the process with its threads.
#[cold]
pub fn leave(why: Why) {
    hand_over_if_unused(known_numbers(), why);
    let rest = if why == Why::Seccomp { Rest::IsLost } else { Rest::IsDone };
    let numbers = 0..origin::end();
    if sockets().is_none_or(|sockets| guarded(|| sockets.leave(numbers.clone(), rest))) {
        numbers.for_each(origin::clear);
        told::end();
        // First: who still sees the engine may use it, since it is never freed.
        STATE.store(LEFT, Ordering::Release);
        SOCKETS.store(null_mut(), Ordering::Release);
    }
}

/// Numbers of connections.
fn known_numbers() -> impl Iterator<Item = c_int> {
    let sockets = sockets();
    let end = if sockets.is_some() { origin::end() } else { 0 };
    (0..end).filter(move |number| sockets.is_some_and(|sockets| sockets.is_known(*number)))
}

/// Numbers of connections that another program would get.
pub fn passed_to_programs() -> impl Iterator<Item = c_int> {
    // A child of `vfork` has closed some of its parent's, which stay what they are.
    let is_passed = |flags: c_int| flags & libc::FD_CLOEXEC == 0;
    known_numbers().filter(move |number| kernel::descriptor_flags(*number).is_ok_and(is_passed))
}

/// Whether this is the process of the tables. A child of `vfork` is not: it has descriptors of its own and its parent's memory.
pub fn owns_tables() -> bool {
    !has_left() && PROCESS.load(Ordering::Relaxed) == kernel::process()
}

/// A child of `vfork` makes something else of its parent's numbers, until it is another program.
pub fn borrow_numbers() {
    BORROWER.store(kernel::process(), Ordering::Relaxed);
}

/// The child of `vfork` is about to be another program, or to end, if this is it.
pub fn end_borrowing() {
    let borrower = BORROWER.load(Ordering::Relaxed);
    if borrower != 0 && borrower == kernel::process() {
        BORROWER.store(0, Ordering::Relaxed);
    }
}

/// Does what handlers have asked for while the thread was in the engine.
#[inline]
fn catch_up() {
    if has_put_off()
        && let Some(sockets) = sockets()
    {
        put_off::catch_up(sockets, |number| known(number).map(|known| known.socket));
    }
}

/// Runs code of the engine, of which a panic must not reach the program: its frames know none. A thread that is cancelled where the engine sleeps unwinds
/// through it, and only there.
#[inline]
pub fn guarded<T>(body: impl FnOnce() -> T) -> T {
    struct Abort;

    impl Drop for Abort {
        fn drop(&mut self) {
            if std::thread::panicking() || !cancellation::has_slept() {
                std::process::abort();
            }
        }
    }

    let abort = Abort;
    let value = body();
    catch_up();
    core::mem::forget(abort);
    value
}

/// As [`guarded`], for code of the engine that calls real functions of the hook's own.
pub struct Cancellable {
    is_in_kernel: core::cell::Cell<bool>,
    has_ended: core::cell::Cell<bool>,
}

impl Cancellable {
    /// A panic ends the process from here on, until [`Cancellable::end`], but in [`Cancellable::kernel`].
    pub fn new() -> Self {
        Cancellable { is_in_kernel: core::cell::Cell::new(false), has_ended: core::cell::Cell::new(false) }
    }

    /// Runs a real function.
    pub fn kernel<T>(&self, call: impl FnOnce() -> T) -> T {
        self.is_in_kernel.set(true);
        let value = call();
        self.is_in_kernel.set(false);
        value
    }

    /// The engine's code has come to its end.
    pub fn end(self) {
        self.has_ended.set(true);
        guarded(|| ());
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        if !self.has_ended.get() && !self.is_in_kernel.get() {
            std::process::abort();
        }
    }
}
