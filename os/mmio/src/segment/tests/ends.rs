//! Registrations that end where a limit has been reached, and pages that several of them have locked.

use std::fs::File;

use super::program::{Pages, is_locked, is_shared, load, shared, store};
use super::*;
use crate::{RegisterOptions, RegisteredMemory, child};

const LOCKED: RegisterOptions = RegisterOptions { is_source_only: false, locked: true };

/// Sets a limit of a process of one test.
fn limit(which: libc::__rlimit_resource_t, limit: u64) {
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: changes a limit of this process and no memory.
    assert_eq!(unsafe { libc::setrlimit(which, &raw const limit) }, 0);
}

fn lock(at: *mut u8) {
    // SAFETY: a page of the test, of which this changes no byte.
    unsafe { rustix::mm::mlock(at.cast(), PAGE_BYTES) }.unwrap();
}

fn as_it_is(start: *mut u8, bytes: usize) -> RegisteredMemory {
    // SAFETY: memory of the test, which has no references to it and one thread that uses it.
    unsafe { RegisteredMemory::as_it_is(start, bytes, LOCKED) }.unwrap()
}

#[test]
fn memory_is_private_again_although_no_file_can_be_opened() {
    child::succeeds("segment::tests::ends::memory_is_private_again_although_no_file_can_be_opened", || {
        let pages = Pages::new(2);
        let memory = shared(pages.at(0), 2 * PAGE_BYTES).unwrap();
        let files: Vec<File> = {
            limit(libc::RLIMIT_NOFILE, 64);
            std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
        };
        assert!(File::open("/proc/self/maps").is_err() && !files.is_empty());
        let peer = memory.memory().unwrap().clone();
        drop(memory);
        // Asked of the memory, not of the kernel's list.
        store(pages.at(0), 9);
        let mut found = [0];
        rustix::io::pread(peer.fd(), &mut found, 0).unwrap();
        drop(files);
        assert_eq!((found, load(pages.at(0))), ([1], 9));
        assert!(!is_shared(pages.at(0)) && !is_shared(pages.at(PAGE_BYTES)));
    });
}

#[test]
fn memory_is_private_again_although_it_can_no_longer_be_locked() {
    child::succeeds(
        "segment::tests::ends::memory_is_private_again_although_it_can_no_longer_be_locked",
        || {
            let pages = Pages::new(3);
            (0..3).for_each(|page| lock(pages.at(page * PAGE_BYTES)));
            let memory = shared(pages.at(0), 3 * PAGE_BYTES).unwrap();
            // A hole, so that there are two parts.
            pages.unmap(1);
            limit(libc::RLIMIT_MEMLOCK, 0);
            // Root may lock what it likes.
            // SAFETY: a process of this one test.
            unsafe { libc::setuid(65534) };
            drop(memory);
            // The list of another user's process cannot be opened.
            limit(libc::RLIMIT_CORE, 0);
            // What `/proc` has of a process that has changed its user is root's.
            // SAFETY: changes no memory.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
            assert!(!is_shared(pages.at(0)) && !is_shared(pages.at(2 * PAGE_BYTES)));
            assert_eq!((load(pages.at(0)), load(pages.at(2 * PAGE_BYTES))), (1, 3));
        },
    );
}

#[test]
fn pages_are_locked_as_long_as_one_registration_has_them() {
    let pages = Pages::new(4);
    lock(pages.at(0));
    // The program has locked one page of it; the others are locked, too.
    let first = as_it_is(pages.at(8), 2 * PAGE_BYTES);
    let second = as_it_is(pages.at(2 * PAGE_BYTES + 8), PAGE_BYTES);
    let are_locked = || [0, 1, 2, 3].map(|page| is_locked(pages.at(page * PAGE_BYTES)));
    assert_eq!(are_locked(), [true; 4]);
    drop(first);
    assert_eq!(are_locked(), [true, false, true, true]);
    drop(second);
    assert_eq!(are_locked(), [true, false, false, false]);
}

#[test]
#[should_panic(expected = "does not begin at a multiple of 8")]
fn word_of_memory_at_an_odd_address_is_refused() {
    let pages = Pages::new(1);
    let memory = Arc::new(as_it_is(pages.at(5), 100));
    let region = memory.segment(0, 100, Access::ReadWrite).unwrap().unwrap().region().unwrap();
    region.copy_in(1, &[50]);
    assert_eq!(load(pages.at(6)), 50);
    region.word(8);
}

#[test]
#[should_panic(expected = "does not begin at a multiple of 8")]
fn fill_of_memory_at_an_odd_address_is_refused() {
    let pages = Pages::new(1);
    let memory = Arc::new(as_it_is(pages.at(5), 100));
    memory.segment(0, 100, Access::ReadWrite).unwrap().unwrap().region().unwrap().fill(0, 8, 1);
}
