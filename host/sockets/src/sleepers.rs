//! Who sleeps, and how senders know: threads and sets that have a bell.
//!
//! A sleeper has a number in this process, and its bell's address and a word in the memory of each pair where a connection has it. The word
//! is not 0 while it sleeps. It announces that, has the kernel run a barrier on every core, and looks once more; a sender stores its message
//! and loads the word. So either finds the other (docs/design.md, decision 5). The word is the number of the announcement, so that a
//! sender rings once for each.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

use beeline_domain::{Bell, BellAddress, Ringer, Rung};
use beeline_mmio::{ThisProcess, membarrier};

use crate::forks::OfProcess;
use crate::lock::{is_any_held_here, locked};
use crate::memory::{OtherSleeper, PairMemory, SLEEPERS};
use crate::quiet::counted;

/// A sleeper's number in its process; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SleeperId(pub u16);

/// A thread or a set that sleeps, with its bell.
#[derive(Debug)]
pub struct OwnBell {
    id: u16,
    bell: Bell,
    made_by: ThisProcess,
    /// It was rung, and is cleared by the next announcement.
    is_rung: AtomicBool,
    standing: Mutex<Standing>,
}

#[derive(Debug, Default)]
struct Standing {
    /// Threads that sleep by it.
    asleep: u32,
    announcement: u64,
    /// Memories that know of it, and how many connections need that.
    places: Vec<(PairMemory, u32)>,
}

/// The last announcement of any sleeper. A number of a sleeper is used again, and a sender that has rung for an announcement of the one before rings for
/// no other one that has its number: each is a number of its own.
static ANNOUNCEMENTS: AtomicU64 = AtomicU64::new(ENGINE_S);
/// What the engine's own sleeper announces, always.
const ENGINE_S: u64 = 1;

/// Numbers that sleepers of this process have. A child's are other ones: those of its parent ring in memory that the child does not use.
static USED: OfProcess<Mutex<BTreeSet<u16>>> = OfProcess::new();

/// Bells of this process that were rung and wait for their next announcement to be cleared.
static UNREAD: OfProcess<AtomicU32> = OfProcess::new();
/// How many may wait so. The kernel counts what is unread at all bells for the socket that rang them, and by default lets there be 278 packets.
const MOST_UNREAD: u32 = 32;

thread_local! {
    static OWN: RefCell<Option<Arc<OwnBell>>> = const { RefCell::new(None) };
}

impl OwnBell {
    /// Makes a bell that nobody knows of yet, for a set or a thread. Some system calls.
    ///
    /// # Errors
    /// The process is out of descriptors, or as many sleep as there are places for.
    pub fn new() -> io::Result<Arc<Self>> {
        let bell = Bell::new()?;
        let id = {
            let Some(used) = USED.get_or_init(Mutex::default) else {
                return Err(io::ErrorKind::QuotaExceeded.into());
            };
            let mut used = locked(used);
            // 0 is the engine's own.
            let free = (1..SLEEPERS).find(|id| !used.contains(id));
            let id = free.ok_or_else(|| io::Error::from(io::ErrorKind::QuotaExceeded))?;
            used.insert(id);
            id
        };
        Ok(Self::with(id, bell))
    }

    /// The engine's own, which never wakes.
    pub(crate) fn of_engine() -> io::Result<Arc<Self>> {
        let own = Self::with(0, Bell::new()?);
        let mut standing = locked(&own.standing);
        (standing.asleep, standing.announcement) = (1, ENGINE_S);
        drop(standing);
        Ok(own)
    }

    fn with(id: u16, bell: Bell) -> Arc<Self> {
        Arc::new(OwnBell {
            id,
            bell,
            made_by: ThisProcess::get(),
            is_rung: AtomicBool::new(false),
            standing: Mutex::default(),
        })
    }

    /// The calling thread's, made with its first sleep.
    ///
    /// # Errors
    /// As [`OwnBell::new`]; or a handler asks that has interrupted its thread inside the engine, perhaps in a change of the bell.
    pub fn of_this_thread() -> io::Result<Arc<Self>> {
        let busy = || io::Error::from(io::ErrorKind::ResourceBusy);
        if is_any_held_here() {
            return Err(busy());
        }
        OWN.with(|own| {
            let mut own = own.try_borrow_mut().map_err(|_| busy())?;
            // A child of fork has its parent's, and makes its own. So does a thread whose program has closed the bell's number, or has put another file there: senders
            // ring nobody then. A sleep costs many times as much as this look.
            if let Some(own) = own.as_ref().filter(|own| own.made_by.is_this() && own.is_whole()) {
                return Ok(Arc::clone(own));
            }
            let new = OwnBell::new()?;
            *own = Some(Arc::clone(&new));
            Ok(new)
        })
    }

    /// Ends the calling thread's, which makes another one if it sleeps again.
    pub(crate) fn end_of_this_thread() {
        // Of a handler that has interrupted a change of the bell: it stays.
        OWN.with(|own| own.try_borrow_mut().ok().and_then(|mut own| own.take()));
    }

    /// Its number in this process.
    pub fn id(&self) -> SleeperId {
        SleeperId(self.id)
    }

    pub(crate) fn address(&self) -> BellAddress {
        self.bell.address()
    }

    /// Readable when it was rung, until it is cleared.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Whether it is this process's. A child has a copy where its parent's thread slept when a handler forked; what senders know of it is its parent's.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.made_by.is_this()
    }

    /// Has the senders of one more connection in this memory know it.
    pub(crate) fn join(&self, memory: &PairMemory) {
        if !self.is_of_this_process() {
            return;
        }
        let mut standing = locked(&self.standing);
        if let Some((_, uses)) = standing.places.iter_mut().find(|(place, _)| place.is(memory)) {
            *uses += 1;
            return;
        }
        memory.tell_address(self.id, self.bell.address());
        memory.announce(self.id, if standing.asleep > 0 { standing.announcement } else { 0 });
        standing.places.push((memory.clone(), 1));
    }

    pub(crate) fn leave(&self, memory: &PairMemory) {
        if !self.is_of_this_process() {
            return;
        }
        let mut standing = locked(&self.standing);
        let Some(at) = standing.places.iter().position(|(place, _)| place.is(memory)) else { return };
        standing.places[at].1 -= 1;
        if standing.places[at].1 == 0 {
            memory.announce(self.id, 0);
            standing.places.swap_remove(at);
        }
    }

    /// Says that a thread is about to sleep by it. What every sender stored before is seen afterwards, or it rings: look once more.
    pub fn announce(&self) {
        if self.is_of_this_process() {
            // Before it is announced: whoever rings for this sleep rings afterwards. Relaxed: the thread's own, that has slept.
            if self.is_rung.swap(false, Ordering::Relaxed) {
                is_unread_no_more();
                self.clear();
            }
            let mut standing = locked(&self.standing);
            standing.asleep += 1;
            // Relaxed: only that it is another one.
            let announcement = ANNOUNCEMENTS.fetch_add(1, Ordering::Relaxed) + 1;
            standing.announcement = announcement;
            standing.places.iter().for_each(|(place, _)| place.announce(self.id, announcement));
        }
        // Where the kernel has no such barrier, senders fence each message.
        counted(|| {
            if membarrier::global_expedited().is_err() {
                fence(Ordering::SeqCst);
            }
        });
    }

    /// The thread is awake.
    pub fn withdraw(&self) {
        if !self.is_of_this_process() {
            return;
        }
        let mut standing = locked(&self.standing);
        standing.asleep = standing.asleep.saturating_sub(1);
        if standing.asleep == 0 {
            standing.places.iter().for_each(|(place, _)| place.announce(self.id, 0));
        }
    }

    /// Whether its descriptor is what it was.
    pub fn is_whole(&self) -> bool {
        self.bell.is_whole()
    }

    /// Makes it unreadable until it is rung again.
    pub fn clear(&self) -> bool {
        self.bell.clear()
    }

    /// The same with the next announcement, for a bell of a thread, which nothing looks at before: who was woken has its message three system calls
    /// earlier, and pays for them when it has answered. At once where many wait so, of threads that may not sleep again.
    pub fn clear_at_next_sleep(&self) {
        if !self.is_of_this_process() || self.is_rung.load(Ordering::Relaxed) {
            return;
        }
        if may_stay_unread() {
            self.is_rung.store(true, Ordering::Relaxed);
        } else {
            self.clear();
        }
    }

    /// Wakes whoever sleeps by it.
    pub fn ring(&self) {
        ring(&self.bell.address());
    }
}

impl Drop for OwnBell {
    fn drop(&mut self) {
        // A child's copy is of no process that senders know.
        if self.made_by.is_this() && self.id != 0 {
            let standing = locked(&self.standing);
            standing.places.iter().for_each(|(place, _)| place.announce(self.id, 0));
            if let Some(used) = USED.get_or_init(Mutex::default) {
                locked(used).remove(&self.id);
            }
            if self.is_rung.load(Ordering::Relaxed) {
                is_unread_no_more();
            }
        }
    }
}

/// Counts one more bell that was rung, if it need not be cleared at once.
fn may_stay_unread() -> bool {
    // Relaxed: only how many there are.
    let is_one_of_few = UNREAD
        .get_or_init(AtomicU32::default)
        .is_some_and(|unread| unread.fetch_add(1, Ordering::Relaxed) < MOST_UNREAD);
    if !is_one_of_few {
        is_unread_no_more();
    }
    is_one_of_few
}

fn is_unread_no_more() {
    if let Some(unread) = UNREAD.get_or_init(AtomicU32::default) {
        unread.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Rings a sleeper of the other side of a memory; false where it was not. The thread in the background rings it again then. Nothing is allocated or locked: the
/// caller may be a handler.
#[cold]
pub(crate) fn ring_other(memory: &PairMemory, sleeper: &OtherSleeper) -> bool {
    let is_rung = ring_there(memory, &sleeper.address());
    if !is_rung {
        memory.ring_later(sleeper);
        ring(&memory.own_address());
    }
    is_rung
}

/// Rings those that could not be rung before; whether some cannot be still. What is unread at other bells of their process fills its ringer, and only their
/// process empties it.
pub(crate) fn ring_again(memory: &PairMemory) -> bool {
    let mut is_left = false;
    for sleeper in memory.take_to_ring() {
        if !ring_there(memory, &sleeper.address()) {
            memory.ring_later(&sleeper);
            is_left = true;
        }
    }
    is_left
}

fn ring_there(memory: &PairMemory, address: &BellAddress) -> bool {
    match memory.ringer() {
        None => ring(address),
        // In another network namespace.
        Some(ringer) => matches!(ringer.ring(address), Rung::Rung | Rung::Nobody),
    }
}

/// Rings a bell of this process, or of another one in its network namespace; false where it was not, and is to be rung again.
#[cold]
pub(crate) fn ring(address: &BellAddress) -> bool {
    static RINGER: OfProcess<Option<Ringer>> = OfProcess::new();
    let ringer = RINGER.get_or_init(|| Ringer::new().ok()).and_then(Option::as_ref);
    let is_rung = |rung| matches!(rung, Rung::Rung | Rung::Nobody);
    if ringer.is_some_and(|ringer| is_rung(ringer.ring(address))) {
        return true;
    }
    // There was no descriptor for it once, or the program has closed the one that it had.
    match Ringer::new().map(|ringer| ringer.ring(address)) {
        Ok(rung) if is_rung(rung) => true,
        failed => {
            tracing::debug!(?failed, "a sleeper was not woken");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use beeline_mmio::{MemoryOptions, Region, SharedMemory};
    use rustix::event::{PollFd, PollFlags};

    use super::*;
    use crate::forks::test_in_child;
    use crate::memory::memory_bytes;
    use crate::poll::poll_for;

    fn is_readable(bell: &OwnBell) -> bool {
        let mut ringing = [PollFd::new(&bell.bell, PollFlags::IN)];
        poll_for(&mut ringing, Some(Duration::ZERO)).unwrap();
        ringing[0].revents() == PollFlags::IN
    }

    #[test]
    fn sleeper_is_rung_that_has_the_number_of_one_that_was_rung_before() {
        // Alone: numbers are those of the process, and other tests use some.
        test_in_child(|| {
            let region = Region::private(memory_bytes(1));
            let (here, there) = (PairMemory::new(region.clone(), 1, 0), PairMemory::new(region, 1, 1));
            let mut ids = Vec::new();
            for _ in 0..3 {
                let bell = OwnBell::new().unwrap();
                bell.join(&here);
                let sender_s = there.other_sleeper(bell.id);
                assert!(sender_s.to_ring(&there).is_none(), "it is awake");
                bell.announce();
                let to_ring = sender_s.to_ring(&there).unwrap();
                assert_eq!(sender_s.address(), bell.address());
                assert!(sender_s.to_ring(&there).is_some(), "a ring that failed is made again");
                sender_s.rang(&there, &to_ring);
                assert!(sender_s.to_ring(&there).is_none(), "once for an announcement");
                bell.withdraw();
                bell.leave(&here);
                ids.push(bell.id);
            }
            assert_eq!(ids, [ids[0]; 3], "the number is used again");
        });
    }

    #[test]
    fn thread_whose_bell_was_closed_or_replaced_makes_another() {
        test_in_child(|| {
            let file = std::io::pipe().unwrap().0;
            let mut before = OwnBell::of_this_thread().unwrap();
            for is_replaced in [false, true] {
                assert!(Arc::ptr_eq(&before, &OwnBell::of_this_thread().unwrap()));
                let number = before.bell().as_raw_fd();
                nix::unistd::close(number).unwrap();
                let other = is_replaced.then(|| rustix::io::fcntl_dupfd_cloexec(&file, number).unwrap());
                assert!(other.is_none_or(|other| other.as_raw_fd() == number));
                let now = OwnBell::of_this_thread().unwrap();
                assert!(now.address() != before.address() && !is_readable(&now));
                assert!(ring(&now.address()) && is_readable(&now));
                before = now;
            }
        });
    }

    #[test]
    fn bell_of_a_thread_is_cleared_by_its_next_announcement_and_rung_behind_it() {
        let bell = OwnBell::new().unwrap();
        bell.announce();
        bell.ring();
        bell.clear_at_next_sleep();
        bell.withdraw();
        assert!(is_readable(&bell), "nothing is paid for yet");
        bell.announce();
        assert!(!is_readable(&bell), "it would not sleep");
        bell.ring();
        assert!(is_readable(&bell), "it would sleep for ever");
        bell.withdraw();
        bell.announce();
        assert!(is_readable(&bell), "it is not known to be rung");
    }

    #[test]
    fn sleeper_that_could_not_be_rung_is_rung_again() {
        let region = Region::private(memory_bytes(1));
        let (here, there) = (PairMemory::new(region.clone(), 1, 0), PairMemory::new(region, 1, 1));
        let ringer = Ringer::handed_out(Ringer::to_hand_out().unwrap()).unwrap();
        let there = there.rung_by(Some(Arc::new(ringer)));
        let bell = OwnBell::new().unwrap();
        bell.join(&here);
        bell.announce();
        let sleeper = there.other_sleeper(bell.id);
        let rung = (0..10_000).take_while(|_| ring_other(&there, &sleeper)).count();
        assert!((1..10_000).contains(&rung), "{rung}");
        assert!(ring_again(&there), "it is full still");
        assert!(bell.clear() && !ring_again(&there));
        assert!(is_readable(&bell) && there.take_to_ring().is_empty());
        // Its process has gone.
        there.ring_later(&sleeper);
        drop(bell);
        assert!(!ring_again(&there));
    }

    #[test]
    fn few_bells_stay_readable_and_others_are_cleared_at_once() {
        let rung = || {
            let bell = OwnBell::new().unwrap();
            bell.ring();
            bell.clear_at_next_sleep();
            bell
        };
        // Other tests of this process ring bells, too.
        test_in_child(|| {
            crate::forks::in_child();
            let mut bells: Vec<_> = (0..MOST_UNREAD).map(|_| rung()).collect();
            assert!(bells.iter().all(|bell| is_readable(bell)) && !is_readable(&rung()));
            bells[0].announce();
            let instead = rung();
            assert!(is_readable(&instead) && !is_readable(&rung()));
            drop(bells.pop());
            assert!(is_readable(&rung()));
        });
    }

    #[test]
    fn child_takes_nothing_back_that_its_parent_has_announced() {
        let bytes = memory_bytes(1);
        let region = SharedMemory::create("beeline-test-sleeper", bytes, MemoryOptions::default()).unwrap();
        let region = region.map_sparse().unwrap();
        let (here, there) = (PairMemory::new(region.clone(), 1, 0), PairMemory::new(region, 1, 1));
        let bell = OwnBell::new().unwrap();
        bell.join(&here);
        bell.announce();
        test_in_child(|| {
            // As what a sleep leaves behind does it, where a handler has forked.
            bell.withdraw();
            bell.announce();
            bell.withdraw();
            bell.leave(&here);
        });
        assert!(there.other_sleeper(bell.id).to_ring(&there).is_some());
    }
}
