//! The handler of bus errors: what it takes, what it leaves to others, and that nobody has it who did not ask.
//!
//! A handler is one for the process, so each test is a process of its own.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::*;
use crate::child::{self, Full};
use crate::{Access, CopyError, MappedSegment, OnLoss, SegmentError, SegmentOptions};

const PAGE_BYTES: usize = 4096;

/// A file of some pages full of sevens, and all of it mapped.
fn mapped(pages: usize, on_loss: OnLoss, access: Access) -> (File, MappedSegment) {
    let file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut &file, &vec![7; pages * PAGE_BYTES]).unwrap();
    let options = SegmentOptions { on_loss, access, ..SegmentOptions::default() };
    let segment = MappedSegment::file(file.as_fd(), &options).unwrap();
    (file, segment)
}

fn guarded(pages: usize) -> (File, MappedSegment) {
    mapped(pages, OnLoss::Guarded(FaultGuard::install().unwrap()), Access::ReadWrite)
}

fn page(segment: &MappedSegment, number: usize) -> (Result<(), CopyError>, Vec<u8>) {
    let mut bytes = vec![1; PAGE_BYTES];
    (segment.copy_out(number * PAGE_BYTES, &mut bytes), bytes)
}

/// Accesses memory of a file that has gone, which nobody guards.
fn fault() {
    let (file, segment) = mapped(2, OnLoss::Fatal, Access::ReadWrite);
    file.set_len(0).unwrap();
    page(&segment, 1).0.unwrap();
}

fn is_killed_by_bus_error(status: Option<ExitStatus>) -> bool {
    status.is_none_or(|status| status.signal() == Some(libc::SIGBUS))
}

#[test]
fn lost_page_reads_as_zero_and_the_segment_is_no_longer_intact() {
    child::succeeds("guard::tests::lost_page_reads_as_zero_and_the_segment_is_no_longer_intact", || {
        let ((file, segment), (_other_file, other)) = (guarded(4), guarded(1));
        assert_eq!(page(&segment, 2), (Ok(()), vec![7; PAGE_BYTES]));
        file.set_len(PAGE_BYTES as u64).unwrap();
        assert_eq!(page(&segment, 0), (Ok(()), vec![7; PAGE_BYTES]), "what the file still has");
        assert!(segment.is_intact(), "nobody has met what is gone");
        // SAFETY: libc has an errno for each thread, and this is its address.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: the address of this thread's errno.
        unsafe { errno.write(77) };
        assert_eq!(page(&segment, 2), (Err(CopyError::Lost), vec![0; PAGE_BYTES]));
        // SAFETY: as above.
        assert_eq!(unsafe { errno.read() }, 77, "the access leaves errno alone");
        assert_eq!(segment.copy_in(3 * PAGE_BYTES, b"stored"), Err(CopyError::Lost));
        let mut found = [0; 6];
        segment.region().unwrap().copy_out(3 * PAGE_BYTES, &mut found);
        assert_eq!(&found, b"stored", "this process alone keeps it");
        file.set_len(4 * PAGE_BYTES as u64).unwrap();
        assert!(!segment.is_intact() && other.is_intact(), "a file that grows again brings nothing back");
        assert_eq!(page(&other, 0), (Ok(()), vec![7; PAGE_BYTES]));
    });
}

#[test]
fn lost_page_of_a_read_only_segment_stays_read_only() {
    let name = "guard::tests::lost_page_of_a_read_only_segment_stays_read_only";
    let status = child::run(name, || {
        let guard = OnLoss::Guarded(FaultGuard::install().unwrap());
        let (file, segment) = mapped(2, guard, Access::ReadOnly);
        file.set_len(0).unwrap();
        assert_eq!(page(&segment, 1).0, Err(CopyError::Lost));
        let lost = segment.as_ptr().as_ptr().wrapping_add(PAGE_BYTES);
        // SAFETY: a mapped page; the kernel ends this process before anything is stored.
        unsafe { lost.write_volatile(1) };
    });
    assert!(status.is_none_or(|status| status.signal() == Some(libc::SIGSEGV)), "{status:?}");
}

#[test]
fn threads_that_meet_the_same_lost_pages_all_go_on() {
    child::succeeds("guard::tests::threads_that_meet_the_same_lost_pages_all_go_on", || {
        let (file, segment) = guarded(64);
        file.set_len(0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..64).for_each(|number| assert_eq!(page(&segment, number).0, Err(CopyError::Lost)))
                });
            }
        });
    });
}

#[test]
fn lost_page_is_replaced_when_no_mapping_more_can_be_had() {
    child::succeeds("guard::tests::lost_page_is_replaced_when_no_mapping_more_can_be_had", || {
        let (file, segment) = guarded(3);
        file.set_len(0).unwrap();
        let mut bytes = [1; 8];
        let full = Full::but_for(0);
        let copied = segment.copy_out(PAGE_BYTES, &mut bytes);
        drop(full);
        assert_eq!((copied, bytes), (Err(CopyError::Lost), [0; 8]));
    });
}

#[test]
fn fault_outside_guarded_memory_ends_the_process_as_before() {
    let name = "guard::tests::fault_outside_guarded_memory_ends_the_process_as_before";
    let status = child::run(name, || {
        let _guarded = guarded(1);
        fault();
    });
    assert!(is_killed_by_bus_error(status), "{status:?}");
}

#[test]
fn without_the_guard_a_lost_page_ends_the_process() {
    let status = child::run("guard::tests::without_the_guard_a_lost_page_ends_the_process", fault);
    assert!(is_killed_by_bus_error(status), "{status:?}");
}

#[test]
fn mapping_installs_no_handler() {
    child::succeeds("guard::tests::mapping_installs_no_handler", || {
        let before = action(None).unwrap();
        let (_file, _segment) = mapped(1, OnLoss::Fatal, Access::ReadWrite);
        let after = action(None).unwrap();
        assert!(before.sa_sigaction == after.sa_sigaction && !is_ours(&after));
        assert!(FaultGuard::install().unwrap().is_first());
    });
}

/// Makes an action the process's.
fn set(handler: libc::sighandler_t, flags: c_int) {
    // SAFETY: an action of zeros has an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    super::action(Some(&action)).unwrap();
}

fn send() {
    // SAFETY: what the signal does is what the test is about.
    unsafe { libc::raise(libc::SIGBUS) };
}

extern "C" fn exits_with_42(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel's information, which lives until the handler returns.
    let about = unsafe { &*info };
    // SAFETY: it is about a fault.
    let is_right = signal == libc::SIGBUS && !unsafe { about.si_addr() }.is_null();
    // SAFETY: ends the process.
    unsafe { libc::_exit(if is_right { 42 } else { 1 }) };
}

extern "C" fn exits_with_43(signal: c_int) {
    // SAFETY: ends the process.
    unsafe { libc::_exit(if signal == libc::SIGBUS { 43 } else { 1 }) };
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn counts(_signal: c_int) {
    CALLS.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn handler_before_the_guard_gets_what_is_not_guarded() {
    let name = "guard::tests::handler_before_the_guard_gets_what_is_not_guarded";
    let status = child::run(name, || {
        set(exits_with_42 as *const () as usize, libc::SA_SIGINFO);
        let (file, segment) = guarded(1);
        file.set_len(0).unwrap();
        assert_eq!(page(&segment, 0).0, Err(CopyError::Lost), "the guard's own does not reach it");
        fault();
    });
    assert!(status.is_none_or(|status| status.code() == Some(42)), "{status:?}");
}

#[test]
fn handler_without_information_is_called_as_such() {
    let status = child::run("guard::tests::handler_without_information_is_called_as_such", || {
        set(exits_with_43 as *const () as usize, 0);
        FaultGuard::install().unwrap();
        fault();
    });
    assert!(status.is_none_or(|status| status.code() == Some(43)), "{status:?}");
}

#[test]
fn handler_that_is_for_one_signal_gets_one() {
    let status = child::run("guard::tests::handler_that_is_for_one_signal_gets_one", || {
        set(counts as *const () as usize, libc::SA_RESETHAND);
        FaultGuard::install().unwrap();
        send();
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        send();
        std::process::exit(3);
    });
    assert!(is_killed_by_bus_error(status), "{status:?}");
}

#[test]
fn signal_that_is_sent_ends_the_process_by_default() {
    let status = child::run("guard::tests::signal_that_is_sent_ends_the_process_by_default", || {
        set(libc::SIG_DFL, 0);
        FaultGuard::install().unwrap();
        send();
        std::process::exit(3);
    });
    assert!(is_killed_by_bus_error(status), "{status:?}");
}

#[test]
fn signal_that_is_sent_is_ignored_where_it_was() {
    child::succeeds("guard::tests::signal_that_is_sent_is_ignored_where_it_was", || {
        set(libc::SIG_IGN, 0);
        FaultGuard::install().unwrap();
        send();
    });
}

#[test]
fn fault_is_not_ignored_where_signals_were() {
    let status = child::run("guard::tests::fault_is_not_ignored_where_signals_were", || {
        set(libc::SIG_IGN, 0);
        FaultGuard::install().unwrap();
        fault();
    });
    assert!(is_killed_by_bus_error(status), "{status:?}");
}

#[test]
fn guard_that_was_replaced_is_not_relied_on() {
    child::succeeds("guard::tests::guard_that_was_replaced_is_not_relied_on", || {
        let guard = FaultGuard::install().unwrap();
        assert_eq!(FaultGuard::install(), Ok(guard), "twice is once");
        assert!(guard.is_first());
        set(counts as *const () as usize, 0);
        assert!(!guard.is_first());
        assert_eq!(FaultGuard::install(), Err(GuardError::Replaced));
        let file = tempfile::tempfile().unwrap();
        file.set_len(1).unwrap();
        let options = SegmentOptions { on_loss: OnLoss::Guarded(guard), ..SegmentOptions::default() };
        let refused = MappedSegment::file(file.as_fd(), &options).unwrap_err();
        assert!(matches!(refused, SegmentError::Guard(GuardError::Replaced)), "{refused}");
    });
}

/// What a child is given, on the busiest machine.
const CHILD_SECONDS: u32 = 60;

/// A child of a process whose other threads enter mappings and install the guard: one of them may have a lock at that moment.
#[test]
fn forked_child_waits_for_no_thread_of_its_parent() {
    child::succeeds("guard::tests::forked_child_waits_for_no_thread_of_its_parent", || {
        let enter = || {
            let range = Range { start: 1 << 40, bytes: 4096, page_bytes: 4096, is_writable: true };
            drop([Watched::new(range), Watched::new(range)]);
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    enter()
                }
            });
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    FaultGuard::install().unwrap();
                }
            });
            let outcomes: Vec<_> = (0..300)
                .map(|_| {
                    in_child(|| {
                        enter();
                        FaultGuard::install().unwrap();
                    })
                })
                .collect();
            is_over.store(true, Ordering::Relaxed);
            assert!(outcomes.iter().all(|is_good| *is_good), "{outcomes:?}");
        });
    });
}

/// Whether a forked child comes to the end of `body`.
fn in_child(body: impl FnOnce()) -> bool {
    // SAFETY: the child calls nothing but `body`, which takes no lock of another thread, and ends without exit handlers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child when it hangs.
        unsafe { libc::alarm(CHILD_SECONDS) };
        body();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: a place for the status of this process's own child.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    child > 0 && ended == child && status == 0
}
