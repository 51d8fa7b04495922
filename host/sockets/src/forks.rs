//! What is made anew in a child of fork: a lock that a thread of its parent held stays locked for ever there.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use beeline_mmio::{MemoryOptions, Region, SharedMemory, Words};

use crate::lock::locked;
use crate::poll::sleep_for;

/// Forks in a row that a family may have; the library does nothing in the child of the last.
const MOST: usize = 256;

/// Forks that led to this process since the library was loaded.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Children that this process has made.
static CHILDREN: AtomicU32 = AtomicU32::new(0);
/// The child that is made next or was made last, and this process, as their family counts them; 0 before it does.
static LAST_CHILD: AtomicU64 = AtomicU64::new(0);
static BIRTH: AtomicU64 = AtomicU64::new(0);
/// How many children the parent of this process had with this one.
static SIBLINGS: AtomicU32 = AtomicU32::new(0);

/// What the processes of a family tell their children: words of descriptors that are closed, and behind them how many children the family has had. It loses some words, whose
/// connections stay the kernel's: a later one takes the place. None is taken for that of another child, whose process may have the number of one that has ended.
static CLOSED: OnceLock<Option<Region>> = OnceLock::new();
const CLOSED_WORDS: usize = 1 << 16;
const FAMILY_AT: usize = CLOSED_WORDS * 8;
/// Of a word: the child, and the descriptor.
const NUMBER_BITS: u32 = 16;

/// Forks of this process that are under way, and whether its thread in the background may be at an endpoint: a child of that moment would find that
/// half done, and locked for ever.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);
static IS_INSIDE: AtomicBool = AtomicBool::new(false);
/// When this process forked last. Locked behind forks and by that thread, which is outside during one.
static FORKED: Mutex<Option<Instant>> = Mutex::new(None);
/// How long a fork waits for that thread, and it for a fork.
const OUTSIDE_WITHIN: Duration = Duration::from_millis(100);
const BETWEEN_LOOKS: Duration = Duration::from_micros(20);
/// How long a program takes to close a number that is its child's, as servers do behind a fork.
const CLOSES_WITHIN: Duration = Duration::from_millis(100);

/// One for each process of a family.
#[derive(Debug)]
pub(crate) struct OfProcess<T>([OnceLock<T>; MOST]);

/// Forks that led to this process.
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// This process is a child of fork, and has one thread.
pub(crate) fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    SIBLINGS.store(CHILDREN.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    BIRTH.store(LAST_CHILD.load(Ordering::Relaxed), Ordering::Relaxed);
    UNDER_WAY.store(0, Ordering::Relaxed);
    IS_INSIDE.store(false, Ordering::Relaxed);
}

/// The thread in the background is about to look at endpoints: once no fork is under way.
pub(crate) fn enter() {
    let until = Instant::now() + OUTSIDE_WITHIN;
    loop {
        // Of this store and that of a fork at least one sees the other one.
        IS_INSIDE.store(true, Ordering::SeqCst);
        if UNDER_WAY.load(Ordering::SeqCst) == 0 || Instant::now() >= until {
            return;
        }
        IS_INSIDE.store(false, Ordering::SeqCst);
        sleep_for(BETWEEN_LOOKS);
    }
}

/// It looks at none.
pub(crate) fn leave() {
    IS_INSIDE.store(false, Ordering::SeqCst);
}

/// Keeps that thread outside until [`let_in`].
pub(crate) fn keep_out() {
    UNDER_WAY.fetch_add(1, Ordering::SeqCst);
    let until = Instant::now() + OUTSIDE_WITHIN;
    while IS_INSIDE.load(Ordering::SeqCst) && Instant::now() < until {
        sleep_for(BETWEEN_LOOKS);
    }
}

pub(crate) fn let_in() {
    let one_less = |forks: u32| forks.checked_sub(1);
    let _ = UNDER_WAY.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
}

/// This process has made a child, or could not.
pub(crate) fn after_fork() {
    *locked(&FORKED) = Some(Instant::now());
    let_in();
}

/// Whether this process has just forked, and may not have had the time to close what is its child's now.
pub(crate) fn has_just_forked() -> bool {
    locked(&FORKED).is_some_and(|forked| forked.elapsed() < CLOSES_WITHIN)
}

/// Children that this process has made, or is about to make.
#[inline]
pub(crate) fn children() -> u32 {
    CHILDREN.load(Ordering::Relaxed)
}

/// This process is about to make a child, which has connections of it where there `are_any`.
pub(crate) fn before_fork(are_any: bool) {
    CHILDREN.fetch_add(1, Ordering::Relaxed);
    if are_any {
        // Before the first child, so that all of the family have the same. Without it connections stay the kernel's.
        CLOSED.get_or_init(|| {
            let memory = SharedMemory::create("beeline-closed", FAMILY_AT + 8, MemoryOptions::default());
            memory.and_then(|memory| memory.map_sparse()).ok()
        });
    }
    LAST_CHILD.store(next_child().unwrap_or(0), Ordering::Relaxed);
}

/// One more child of the family: no other one ever was it.
fn next_child() -> Option<u64> {
    let count = CLOSED.get()?.as_ref()?.word(FAMILY_AT);
    let mut found = count.load();
    loop {
        match count.compare_exchange(found, found.wrapping_add(1)) {
            Ok(()) => return Some(found.wrapping_add(1)),
            Err(now) => found = now,
        }
    }
}

/// Whether this process is the first child that its parent has made since it had so many.
pub(crate) fn is_first_child_behind(children: u32) -> bool {
    SIBLINGS.load(Ordering::Relaxed) == children.wrapping_add(1)
}

/// This process has closed a number that its last child has, and nobody else.
pub(crate) fn leave_to_last_child(number: RawFd) {
    if let Some((words, at, word)) = closed(LAST_CHILD.load(Ordering::Relaxed), number) {
        // Pairs with the load below: what the process did with the socket came before.
        words.store_release(at, word);
    }
}

/// Whether the parent has closed a number that this process has had from it.
pub(crate) fn parent_has_left(number: RawFd) -> bool {
    closed(BIRTH.load(Ordering::Relaxed), number)
        .is_some_and(|(words, at, word)| words.load_acquire(at) == word)
}

/// Where it stands that a descriptor is a child's alone, and what.
fn closed(child: u64, number: RawFd) -> Option<(Words, usize, u64)> {
    let region = CLOSED.get()?.as_ref().filter(|_| child != 0)?;
    let number = u16::try_from(number).ok()?;
    let word = child << NUMBER_BITS | u64::from(number);
    // Fibonacci hashing: the upper bits.
    let at = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - NUMBER_BITS);
    Some((region.words(0, CLOSED_WORDS), at as usize, word))
}

impl<T> OfProcess<T> {
    pub(crate) const fn new() -> Self {
        OfProcess([const { OnceLock::new() }; MOST])
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> Option<&T> {
        Some(self.0.get(forks() as usize)?.get_or_init(make))
    }

    /// The one that the process has made.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get(forks() as usize)?.get()
    }

    /// The one that the process had from which this one was forked, as it was then.
    pub(crate) fn of_parent(&self) -> Option<&T> {
        self.0.get((forks() as usize).checked_sub(1)?)?.get()
    }
}

/// Runs a part of a test in a process of its own, where no other test takes a number or makes a child.
#[cfg(test)]
pub(crate) fn test_in_child(test: impl FnOnce()) {
    use rustix::process::{Pid, WaitOptions, waitpid};
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            // There is no thread of the harness's here that would say what failed.
            let tested = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
            beeline_mmio::end_child(i32::from(tested.is_err()));
        }
        fork::Fork::Parent(child) => {
            let ended = waitpid(Pid::from_raw(child), WaitOptions::empty());
            assert_eq!(ended.unwrap().unwrap().1.exit_status(), Some(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the child has it that is made next.
    fn is_born() {
        BIRTH.store(LAST_CHILD.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    #[test]
    fn process_that_has_the_number_of_one_before_tells_its_child_nothing_of_that_one_s() {
        test_in_child(|| {
            before_fork(true);
            leave_to_last_child(5);
            is_born();
            assert!(parent_has_left(5) && !parent_has_left(6));
            // Another one, with this one's number.
            CHILDREN.store(0, Ordering::Relaxed);
            before_fork(true);
            is_born();
            assert!(!parent_has_left(5));
        });
    }

    #[test]
    fn process_that_forks_for_ever_tells_the_last_child_what_it_has_closed() {
        test_in_child(|| {
            for _ in 0..4 * CLOSED_WORDS {
                before_fork(true);
                leave_to_last_child(5);
                is_born();
                assert!(parent_has_left(5));
            }
        });
    }
}
