//! Memory of the program behind a segment: what is replaced and put back, what is refused, and what free and fork do.

use core::ptr::{self, NonNull};
use std::sync::Arc;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::*;
use crate::segment::process_maps;
use crate::{RegisterError, RegisterOptions, RegisteredMemory, SharedMemory, child};

const RW: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Private pages of the program, unmapped when they are dropped. A test uses them by copies alone.
pub(super) struct Pages {
    start: *mut u8,
    bytes: usize,
}

impl Pages {
    /// Each byte the number of its page and one.
    pub(super) fn new(pages: usize) -> Self {
        let bytes = pages * PAGE_BYTES;
        // SAFETY: a fresh range chosen by the kernel; nothing of this process is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, RW, MapFlags::PRIVATE) };
        let pages = Pages { start: start.unwrap().cast(), bytes };
        (0..bytes).for_each(|at| store(pages.at(at), (at / PAGE_BYTES + 1) as u8));
        pages
    }

    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        self.start.wrapping_add(offset)
    }

    /// Takes the right to store to a page away.
    fn protect(&self, page: usize) {
        // SAFETY: a page of our own.
        unsafe { mprotect(self.at(page * PAGE_BYTES).cast(), PAGE_BYTES, MprotectFlags::READ) }.unwrap();
    }

    /// Takes a page away.
    pub(super) fn unmap(&self, page: usize) {
        // SAFETY: a page of our own, which the test does not access any more.
        unsafe { munmap(self.at(page * PAGE_BYTES).cast(), PAGE_BYTES) }.unwrap();
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: our own range, which nobody accesses any more.
        unsafe { munmap(self.start.cast(), self.bytes) }.unwrap();
    }
}

pub(super) fn load(at: *mut u8) -> u8 {
    // SAFETY: the test's own memory, which is mapped.
    unsafe { at.read_volatile() }
}

pub(super) fn store(at: *mut u8, byte: u8) {
    // SAFETY: the test's own memory, which is mapped for stores.
    unsafe { at.write_volatile(byte) };
}

pub(super) fn shared(start: *mut u8, bytes: usize) -> Result<RegisteredMemory, RegisterError> {
    shared_with(start, bytes, RegisterOptions::default())
}

fn shared_with(
    start: *mut u8,
    bytes: usize,
    options: RegisterOptions,
) -> Result<RegisteredMemory, RegisterError> {
    // SAFETY: memory of the test, which has no references to it and one thread that uses it.
    unsafe { RegisteredMemory::shared(start, bytes, options) }
}

fn as_it_is(start: *mut u8, bytes: usize) -> Result<RegisteredMemory, RegisterError> {
    // SAFETY: as for `shared_with`; it stays mapped as long as the test uses it.
    unsafe { RegisteredMemory::as_it_is(start, bytes, RegisterOptions::default()) }
}

/// What another process maps of it.
fn peer(memory: &RegisteredMemory) -> MappedSegment {
    let shared: &Arc<SharedMemory> = memory.memory().unwrap();
    let passed = SharedMemory::from_fd(shared.fd().try_clone_to_owned().unwrap(), memory.bytes()).unwrap();
    MappedSegment::memory(passed.fd(), &options()).unwrap()
}

pub(super) fn is_shared(at: *mut u8) -> bool {
    process_maps::inside(at.addr(), 1).unwrap().first().unwrap().is_shared
}

/// Why it is refused: because of what is there.
fn why(refused: Result<RegisteredMemory, RegisterError>) -> String {
    let refused = refused.unwrap_err();
    assert!(matches!(refused, RegisterError::NotThere { .. }), "{refused:?}");
    refused.to_string()
}

#[test]
fn pages_in_the_middle_of_private_memory_are_shared_and_become_private_again() {
    let pages = Pages::new(4);
    let memory = shared(pages.at(PAGE_BYTES), 2 * PAGE_BYTES).unwrap();
    assert_eq!((memory.address(), memory.bytes()), (pages.at(PAGE_BYTES).addr(), 2 * PAGE_BYTES));
    let peer = peer(&memory);
    assert_eq!((byte(&peer, 0), byte(&peer, 2 * PAGE_BYTES - 1), peer.bytes()), (2, 3, 2 * PAGE_BYTES));
    assert!(is_shared(pages.at(PAGE_BYTES)) && is_shared(pages.at(2 * PAGE_BYTES)));
    assert!(!is_shared(pages.at(0)) && !is_shared(pages.at(3 * PAGE_BYTES)));
    store(pages.at(PAGE_BYTES + 7), 77);
    peer.copy_in(PAGE_BYTES + 8, &[88]).unwrap();
    assert_eq!((byte(&peer, 7), load(pages.at(2 * PAGE_BYTES + 8))), (77, 88));
    drop(memory);
    assert!((0..4).all(|page| !is_shared(pages.at(page * PAGE_BYTES))));
    let bytes = [0, PAGE_BYTES + 7, 2 * PAGE_BYTES + 8, 3 * PAGE_BYTES].map(|at| load(pages.at(at)));
    assert_eq!(bytes, [1, 77, 88, 4]);
    // Whoever has it mapped still stores into what was, and that is all.
    peer.copy_in(7, &[99]).unwrap();
    store(pages.at(PAGE_BYTES + 8), 11);
    assert_eq!((load(pages.at(PAGE_BYTES + 7)), byte(&peer, 8)), (77, 2));
    let again = shared(pages.at(0), pages.bytes).unwrap();
    assert_eq!(byte(&self::peer(&again), PAGE_BYTES + 7), 77);
}

#[test]
fn memory_that_others_cannot_be_given_is_refused_and_stays_as_it_was() {
    // Where other tests map something, a page that is taken away does not stay so.
    child::succeeds(
        "segment::tests::program::memory_that_others_cannot_be_given_is_refused_and_stays_as_it_was",
        || {
            let pages = Pages::new(6);
            let odd = shared(pages.at(8), PAGE_BYTES).unwrap_err();
            assert!(odd.to_string().contains("posix_memalign(&address, 4096, size)"), "{odd}");
            let part = shared(pages.at(0), PAGE_BYTES + 1).unwrap_err();
            assert!(part.to_string().contains("register 8192"), "{part}");
            for (at, bytes) in
                [(ptr::null_mut(), PAGE_BYTES), (pages.start, 0), (pages.start, usize::MAX - 4095)]
            {
                let refused = shared(at, bytes).unwrap_err();
                assert!(matches!(refused, RegisterError::Nothing { .. }), "{refused:?}");
            }
            let registered = shared(pages.at(PAGE_BYTES), PAGE_BYTES).unwrap();
            for page in [0, 1] {
                let twice = why(shared(pages.at(page * PAGE_BYTES), 2 * PAGE_BYTES));
                assert!(
                    twice.contains("is shared memory already") && twice.contains("beeline-registered"),
                    "{twice}"
                );
            }
            drop(registered);
            pages.protect(3);
            assert!(
                why(shared(pages.at(2 * PAGE_BYTES), 2 * PAGE_BYTES)).contains("is not for loads and stores")
            );
            pages.unmap(5);
            let hole = why(shared(pages.at(4 * PAGE_BYTES), 2 * PAGE_BYTES));
            assert!(
                hole.contains(&format!("nothing is mapped at {:#x}", pages.at(5 * PAGE_BYTES).addr())),
                "{hole}"
            );
            assert!((0..5).all(|page| !is_shared(pages.at(page * PAGE_BYTES))));
            assert_eq!((load(pages.at(2 * PAGE_BYTES)), load(pages.at(4 * PAGE_BYTES))), (3, 5));
        },
    );
}

#[test]
fn stack_and_the_program_itself_are_no_memory_that_is_shared() {
    let on_stack = [0u8; 4 * PAGE_BYTES];
    let page = on_stack.as_ptr().addr().next_multiple_of(PAGE_BYTES);
    let stack = why(shared(ptr::without_provenance_mut(page), PAGE_BYTES));
    assert!(stack.contains("stack"), "{stack}");
    let code = (memory_that_others_cannot_be_given_is_refused_and_stays_as_it_was as fn()) as usize;
    let program = why(shared(ptr::without_provenance_mut(code & !(PAGE_BYTES - 1)), PAGE_BYTES));
    assert!(program.contains("is a private mapping of a file"), "{program}");
}

#[test]
fn stack_of_the_first_thread_is_known_by_its_name() {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = text.lines().find(|line| line.ends_with("[stack]")) else {
        println!("left out: this process has no stack by that name");
        return;
    };
    let end = usize::from_str_radix(line.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
    let last = ptr::without_provenance_mut(end - PAGE_BYTES);
    assert!(why(shared(last, PAGE_BYTES)).contains("is a stack"));
}

#[test]
fn what_the_program_has_put_in_its_place_is_left_alone() {
    // Where other tests map something, a page that is taken away does not stay so.
    child::succeeds("segment::tests::program::what_the_program_has_put_in_its_place_is_left_alone", || {
        let pages = Pages::new(4);
        let memory = shared(pages.start, pages.bytes).unwrap();
        pages.unmap(1);
        let other = memfd(PAGE_BYTES, SIZE_SEALS);
        let address = Some(pages.at(PAGE_BYTES).addr());
        let segment = MappedSegment::memory(other.as_fd(), &SegmentOptions { address, ..options() }).unwrap();
        pages.unmap(3);
        drop(memory);
        segment.copy_in(0, &[55]).unwrap();
        let mut found = [0];
        rustix::io::pread(&other, &mut found, 0).unwrap();
        assert_eq!(found, [55]);
        assert!(!is_shared(pages.at(0)) && !is_shared(pages.at(2 * PAGE_BYTES)));
        assert_eq!((load(pages.at(0)), load(pages.at(2 * PAGE_BYTES))), (1, 3));
        assert!(process_maps::inside(pages.at(3 * PAGE_BYTES).addr(), 1).unwrap().is_empty());
    });
}

/// Small allocations lie in the heap, between others; large ones are mappings of their own.
#[test]
fn allocations_are_shared_and_freed_and_those_beside_them_stay() {
    let allocate = |bytes| {
        let mut start = ptr::null_mut();
        // SAFETY: room for an address.
        assert_eq!(unsafe { libc::posix_memalign(&raw mut start, PAGE_BYTES, bytes) }, 0);
        start.cast::<u8>()
    };
    // SAFETY: given by `allocate`, once, and not used afterwards.
    let free = |start: *mut u8| unsafe { libc::free(start.cast()) };
    for bytes in [PAGE_BYTES, 3 * PAGE_BYTES, 8 << 20] {
        for round in 0..20 {
            let (before, start, after) = (allocate(40), allocate(bytes), allocate(bytes));
            store(before, 1);
            (0..bytes).step_by(100).for_each(|at| store(start.wrapping_add(at), round));
            store(after, 3);
            let memory = shared(start, bytes).unwrap();
            let peer = peer(&memory);
            peer.copy_in(100, &[200]).unwrap();
            drop(memory);
            assert_eq!(
                (load(start), load(start.wrapping_add(100)), load(before), load(after)),
                (round, 200, 1, 3)
            );
            // SAFETY: given by `allocate`, and used by its new address alone.
            let larger = unsafe { libc::realloc(start.cast(), 2 * bytes) }.cast::<u8>();
            assert_eq!((load(larger), load(larger.wrapping_add(100))), (round, 200));
            // What the allocator keeps in memory that is free is nothing that a peer stores into.
            [before, after, larger].into_iter().for_each(free);
            peer.copy_in(0, &vec![0xff; bytes]).unwrap();
            // SAFETY: gives memory that is free back to the system.
            unsafe { libc::malloc_trim(0) };
            let next = allocate(bytes);
            store(next, 1);
            free(next);
        }
    }
}

#[test]
fn memory_as_it_is_begins_anywhere_and_is_only_what_it_is_registered_for() {
    // Where other tests map something, a page that is taken away does not stay so.
    child::succeeds(
        "segment::tests::program::memory_as_it_is_begins_anywhere_and_is_only_what_it_is_registered_for",
        || {
            let pages = Pages::new(3);
            let memory = Arc::new(as_it_is(pages.at(5), PAGE_BYTES).unwrap());
            assert!(memory.memory().is_none());
            let segment = memory.segment(3, 100, Access::ReadWrite).unwrap().unwrap();
            assert_eq!((segment.as_ptr(), segment.bytes()), (NonNull::new(pages.at(8)).unwrap(), 100));
            segment.copy_in(1, &[50]).unwrap();
            assert_eq!((load(pages.at(9)), is_shared(pages.at(0))), (50, false));
            for (offset, bytes) in [(PAGE_BYTES, 1), (1, PAGE_BYTES), (usize::MAX, 2)] {
                let outside = memory.segment(offset, bytes, Access::ReadOnly).unwrap_err();
                assert!(matches!(outside, CopyError::Outside { .. }), "{outside:?}");
            }
            pages.protect(0);
            assert!(why(as_it_is(pages.at(5), PAGE_BYTES)).contains("may not be stored to"));
            let options = RegisterOptions { is_source_only: true, ..RegisterOptions::default() };
            // SAFETY: as for `as_it_is`.
            let source =
                Arc::new(unsafe { RegisteredMemory::as_it_is(pages.at(5), PAGE_BYTES, options) }.unwrap());
            assert_eq!(source.segment(0, 1, Access::ReadWrite).unwrap_err(), CopyError::ReadOnly);
            assert_eq!(byte(&source.segment(0, 10, Access::ReadOnly).unwrap().unwrap(), 4), 50);
            pages.unmap(2);
            assert!(why(as_it_is(pages.at(2 * PAGE_BYTES - 1), 2)).contains("nothing is mapped"));
            // A segment keeps what it is of, and unmaps nothing.
            drop((memory, source));
            drop(segment);
            assert_eq!(load(pages.at(9)), 50);
        },
    );
}

pub(super) fn is_locked(at: *mut u8) -> bool {
    !process_maps::locked_inside(at.addr(), 1).unwrap().is_empty()
}

#[test]
fn locked_memory_stays_locked_and_other_memory_is_unlocked_again() {
    let (pages, options) = (Pages::new(3), RegisterOptions { locked: true, ..RegisterOptions::default() });
    // SAFETY: pages of our own, of which this changes no byte.
    unsafe { rustix::mm::mlock(pages.at(PAGE_BYTES).cast(), PAGE_BYTES) }.unwrap();
    let memory = shared(pages.at(PAGE_BYTES), PAGE_BYTES).unwrap();
    assert!(is_locked(pages.at(PAGE_BYTES)));
    drop(memory);
    assert!(is_locked(pages.at(PAGE_BYTES)));
    let memory = shared_with(pages.at(0), PAGE_BYTES, options).unwrap();
    // SAFETY: as for `as_it_is`.
    let other = unsafe { RegisteredMemory::as_it_is(pages.at(2 * PAGE_BYTES), 9, options) }.unwrap();
    assert!(is_locked(pages.at(0)) && is_locked(pages.at(2 * PAGE_BYTES)));
    drop((memory, other));
    assert!(
        !is_locked(pages.at(0)) && !is_locked(pages.at(2 * PAGE_BYTES)) && is_locked(pages.at(PAGE_BYTES))
    );
}

#[test]
fn limit_on_locked_memory_is_said_and_nothing_is_changed() {
    child::succeeds("segment::tests::program::limit_on_locked_memory_is_said_and_nothing_is_changed", || {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a limit of this process, which has this one test.
        unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) };
        // Root may lock what it likes.
        // SAFETY: a process of this one test.
        unsafe { libc::setuid(65534) };
        let (pages, options) =
            (Pages::new(1), RegisterOptions { locked: true, ..RegisterOptions::default() });
        let refused = shared_with(pages.start, pages.bytes, options).unwrap_err();
        assert!(matches!(refused, RegisterError::NoMemory(crate::MapError::Lock { .. })), "{refused:?}");
        assert!(!is_shared(pages.start) && load(pages.start) == 1);
    });
}

/// A page between two others costs two mappings more.
#[test]
fn process_with_as_many_mappings_as_it_may_have_keeps_its_memory() {
    child::succeeds(
        "segment::tests::program::process_with_as_many_mappings_as_it_may_have_keeps_its_memory",
        || {
            let pages = Pages::new(3);
            let is_any_shared = || (0..3).any(|page| is_shared(pages.at(page * PAGE_BYTES)));
            let mut refused = 0;
            for spare in 0..8 {
                let full = child::Full::but_for(spare);
                let registered = shared(pages.at(PAGE_BYTES), PAGE_BYTES);
                drop(full);
                match registered {
                    Ok(memory) => drop(memory),
                    Err(RegisterError::Refused { .. } | RegisterError::NoMemory(_)) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
                assert!(!is_any_shared(), "{spare}");
                assert_eq!([0, 1, 2].map(|page| load(pages.at(page * PAGE_BYTES))), [1, 2, 3], "{spare}");
            }
            assert!((1..8).contains(&refused), "{refused}");
        },
    );
}

#[test]
fn child_of_fork_shares_what_is_registered_and_puts_nothing_back() {
    child::succeeds(
        "segment::tests::program::child_of_fork_shares_what_is_registered_and_puts_nothing_back",
        || {
            let pages = Pages::new(1);
            let memory = shared(pages.start, pages.bytes).unwrap();
            // SAFETY: a process of this one test, whose child stores a byte and ends.
            let forked = unsafe { libc::fork() };
            if forked == 0 {
                store(pages.at(1), 44);
                drop(memory);
                store(pages.at(2), 45);
                // SAFETY: ends the child, which has nothing to be cleaned up.
                unsafe { libc::_exit(i32::from(!is_shared(pages.start))) };
            }
            let mut status = -1;
            // SAFETY: the child of above, and room for how it ended.
            assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
            assert_eq!((status, load(pages.at(1)), load(pages.at(2))), (0, 44, 45));
            drop(memory);
            assert_eq!(load(pages.at(2)), 45);
        },
    );
}
