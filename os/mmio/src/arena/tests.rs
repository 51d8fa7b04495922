use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::Unpaced;

const PAGE: usize = ARENA_PAGE_BYTES;

fn private(pages: usize, kept_pages: usize) -> Arena {
    Arena::new(Region::private((pages + 1) * PAGE), PAGE, kept_pages * PAGE)
}

#[test]
fn part_is_lent_until_its_last_handle_is_gone() {
    let arena = private(4, 0);
    let part = arena.lend(3 * PAGE, &Unpaced).unwrap();
    assert_eq!((part.offset_bytes(), part.bytes()), (PAGE, 4 * PAGE));
    let region = part.region();
    let window = region.load_window(0, 64);
    drop(region);
    assert!(matches!(arena.lend(1, &Unpaced), Err(ArenaError::Full { bytes: 1, free_bytes: 0, .. })));
    drop(window);
    assert_eq!(arena.free_bytes(), 4 * PAGE);
    assert_eq!(arena.lend(1, &Unpaced).unwrap().bytes(), PAGE);
}

#[test]
fn room_that_pages_have_to_be_given_back_for_is_not_made_at_once() {
    let arena = private(4, 4);
    let pages: Vec<Part> = (0..4).map(|_| arena.lend_at_once(PAGE).unwrap().unwrap()).collect();
    assert!(arena.lend_at_once(PAGE).unwrap().is_none(), "all are lent");
    drop(pages);
    assert!(
        arena.lend_at_once(2 * PAGE).unwrap().is_none(),
        "four of one page are free, and keep their pages"
    );
    assert_eq!(arena.lend_at_once(PAGE).unwrap().map(|part| part.bytes()), Some(PAGE));
    assert_eq!(arena.lend(2 * PAGE, &Unpaced).unwrap().bytes(), 2 * PAGE);
    assert_eq!(arena.lend_at_once(2 * PAGE).unwrap().map(|part| part.bytes()), Some(2 * PAGE));
    assert!(matches!(arena.lend_at_once(usize::MAX), Err(ArenaError::Full { .. })));
}

#[test]
fn handles_outlive_the_arena_and_see_the_same_memory() {
    let whole = Region::private(3 * PAGE);
    let arena = Arena::new(whole.clone(), PAGE, 0);
    let part = arena.lend(PAGE, &Unpaced).unwrap();
    let offset = part.offset_bytes();
    let word = part.region().word(8);
    drop(arena);
    word.store(5);
    assert_eq!(whole.word(offset + 8).load(), 5);
}

#[test]
#[should_panic(expected = "reach outside a region of 4096 bytes")]
fn region_of_a_part_ends_with_it() {
    private(4, 0).lend(PAGE, &Unpaced).unwrap().region().word(PAGE);
}

#[test]
fn what_a_part_keeps_is_dropped_with_its_last_handle() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let part = Region::private(256).part(64, 128, Counted);
    let (word, clone) = (part.word(0), part.clone());
    drop(part);
    drop(clone);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
    drop(word);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let arena = private(4, 4);
    for bytes in [4 * PAGE + 1, usize::MAX] {
        assert!(matches!(arena.lend(bytes, &Unpaced), Err(ArenaError::Full { bytes: b, .. }) if b == bytes));
    }
    assert_eq!(arena.lend(0, &Unpaced).unwrap().bytes(), PAGE);
}

#[test]
fn blocks_that_keep_pages_are_joined_for_a_larger_one() {
    let arena = private(4, 4);
    let parts: Vec<_> = (0..4).map(|_| arena.lend(PAGE, &Unpaced).unwrap()).collect();
    drop(parts);
    assert!(!arena.has_surplus());
    assert_eq!(arena.lend(4 * PAGE, &Unpaced).unwrap().bytes(), 4 * PAGE);
}

#[derive(Clone, Debug)]
enum Step {
    Lend(usize),
    Drop(prop::sample::Index),
    Reclaim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1usize..9 * PAGE).prop_map(Step::Lend),
        3 => any::<prop::sample::Index>().prop_map(Step::Drop),
        1 => Just(Step::Reclaim),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 15 } else { 120 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 100 }))]

    /// Each part is filled with a value of its own, which nobody overwrites while it is lent.
    #[test]
    fn parts_are_apart_and_everything_comes_back(kept in 0usize..8, steps in steps()) {
        const PAGES: usize = 37;
        let (arena, mut parts) = (private(PAGES, kept), Vec::new());
        for (value, step) in steps.into_iter().enumerate() {
            match step {
                Step::Lend(bytes) => match arena.lend(bytes, &Unpaced) {
                    Ok(part) => {
                        let size = part.bytes();
                        prop_assert!(size >= bytes && size < 2 * bytes.next_multiple_of(PAGE));
                        prop_assert!((part.offset_bytes() - PAGE).is_multiple_of(size));
                        let offset = part.offset_bytes();
                        let region = part.region();
                        region.fill(0, size, value as u64);
                        parts.push((region, value as u64, offset));
                    }
                    Err(ArenaError::Full { .. }) => {
                        let size = bytes.div_ceil(PAGE).next_power_of_two();
                        let mut lent = [false; PAGES];
                        for (region, _, offset) in &parts {
                            lent[*offset / PAGE - 1..][..region.bytes() / PAGE].fill(true);
                        }
                        let has_room = lent.chunks_exact(size).any(|block| !block.contains(&true));
                        prop_assert!(!has_room, "{} pages", size);
                    }
                    Err(error) => panic!("{error}"),
                },
                Step::Drop(which) if !parts.is_empty() => {
                    let (region, value, _) = parts.swap_remove(which.index(parts.len()));
                    let last = region.bytes() - 8;
                    prop_assert_eq!((region.word(0).load(), region.word(last).load()), (value, value));
                }
                Step::Drop(_) => {}
                Step::Reclaim => {
                    arena.reclaim(&Unpaced);
                    prop_assert!(!arena.has_surplus());
                }
            }
            let lent: usize = parts.iter().map(|(region, ..)| region.bytes()).sum();
            prop_assert_eq!(arena.free_bytes(), PAGES * PAGE - lent);
        }
        drop(parts);
        prop_assert_eq!(arena.lend(32 * PAGE, &Unpaced).unwrap().bytes(), 32 * PAGE);
    }
}

#[cfg(not(miri))]
mod shared {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{MemoryOptions, SharedMemory};

    /// Bytes that pages of the memory take, by the kernel's count.
    fn present_bytes(memory: &SharedMemory) -> usize {
        rustix::fs::fstat(memory.fd()).unwrap().st_blocks as usize * 512
    }

    /// What the kernel does with pages. An emulator of another machine may answer every `madvise` with success and do nothing.
    struct Kernel {
        brings_in: bool,
        removes: bool,
    }

    impl Kernel {
        /// Asks for what arenas ask for, in a mapping as theirs, but not by the functions that are tested.
        fn ask() -> Kernel {
            let memory = SharedMemory::create("asked", 2 * PAGE, MemoryOptions::default()).unwrap();
            let region = memory.map_sparse().unwrap();
            assert_eq!(present_bytes(&memory), 0);
            let second = region.span(PAGE, PAGE, PAGE).start();
            // SAFETY: a page of a mapping that nobody else knows; its bytes stay or become zero.
            let advise = |advice| unsafe { libc::madvise(second.cast(), PAGE, advice) };
            // A kernel that does not know how says so, and the pages are touched instead.
            let brings_in = advise(libc::MADV_POPULATE_WRITE) != 0 || present_bytes(&memory) == PAGE;
            region.fill(0, 2 * PAGE, 9);
            assert_eq!(present_bytes(&memory), 2 * PAGE);
            let is_said = advise(libc::MADV_REMOVE) == 0;
            let removes = is_said && present_bytes(&memory) == PAGE && region.word(PAGE).load() == 0;
            assert!(
                brings_in && removes || cfg!(not(target_arch = "x86_64")),
                "a kernel that runs this machine's own code brings pages in ({brings_in}) and removes them ({removes})"
            );
            Kernel { brings_in, removes }
        }
    }

    #[test]
    fn memory_follows_use() {
        let kernel = Kernel::ask();
        if !kernel.brings_in || !kernel.removes {
            return;
        }
        const BYTES: usize = 1 << 30;
        let memory = SharedMemory::create("arena", BYTES, MemoryOptions::default()).unwrap();
        let arena = Arena::new(memory.map_sparse().unwrap(), 0, 1 << 20);
        assert_eq!(present_bytes(&memory), 0);
        let parts: Vec<_> = (0..1000).map(|_| arena.lend(16 << 10, &Unpaced).unwrap()).collect();
        assert_eq!(present_bytes(&memory), 1000 * (16 << 10));
        drop(parts);
        assert!(arena.has_surplus());
        arena.reclaim(&Unpaced);
        assert_eq!(present_bytes(&memory), 1 << 20);
        assert_eq!(arena.free_bytes(), BYTES);
        let whole = arena.lend(4 << 20, &Unpaced).unwrap();
        assert!(present_bytes(&memory) >= whole.bytes());
    }

    /// What the maker leaves out a peer may bring in, and take away: it reads as zero then, and no access ends this process.
    #[test]
    fn pages_that_a_peer_takes_read_as_zero() {
        if !Kernel::ask().removes {
            return;
        }
        let memory = SharedMemory::create("arena", 1 << 20, MemoryOptions::default()).unwrap();
        let theirs =
            SharedMemory::from_fd(memory.fd().as_fd().try_clone_to_owned().unwrap(), 1 << 20).unwrap();
        let theirs = theirs.map_sparse().unwrap();
        let arena = Arena::new(memory.map_sparse().unwrap(), 0, 0);
        let part = arena.lend(PAGE, &Unpaced).unwrap();
        let offset = part.offset_bytes();
        let region = part.region();
        region.fill(0, PAGE, 9);
        assert_eq!(theirs.word(offset).load(), 9);
        theirs.remove_pages(offset, PAGE, &Unpaced).unwrap();
        assert_eq!(region.word(0).load(), 0);
        region.word(0).store(3);
        assert_eq!(theirs.word(offset).load(), 3);
    }

    /// A part that is dropped in a child stays the parent's, and its pages stay.
    #[test]
    fn child_of_fork_gives_nothing_back() {
        let memory = SharedMemory::create("arena", 1 << 20, MemoryOptions::default()).unwrap();
        let arena = Arena::new(memory.map_sparse().unwrap(), 0, 0);
        let region = arena.lend(PAGE, &Unpaced).unwrap().region();
        region.word(0).store(7);
        let free = arena.free_bytes();
        // SAFETY: the child makes system calls and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(region);
            arena.reclaim(&Unpaced);
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!((region.word(0).load(), arena.free_bytes()), (7, free));
    }
}
