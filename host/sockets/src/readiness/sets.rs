//! The sets of a process, by the numbers of their descriptors, and which numbers stand in which set.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::event::epoll::Event;

use super::numbers::Numbers;
use super::set::{Begin, Change, Refusal, Set};
use super::watched::Watched;

/// A number that stands in no set, or is none.
const NONE: u32 = 0;
/// A number that stands in several sets, or in one that is not this process's.
const MANY: u32 = u32::MAX;
/// Beside a set: the program has taken the number out, and the set keeps it for when it is put in again.
const PARKED: u32 = 1 << 30;
const PIECE: usize = 64;
const PIECES: usize = 1024;

/// The sets of a process. Its functions stand around the program's calls; none of them waits but [`Set::wait`].
#[derive(Debug)]
pub struct Sets<W: Watched> {
    make_sleeper: fn() -> Option<W::Sleeper>,
    /// For a set's number, its index and 1.
    sets: Numbers,
    /// For a member's number, the index of its set and 1.
    memberships: Numbers,
    pieces: Box<[OnceLock<Box<[Set<W>]>>]>,
}

impl<W: Watched> Sets<W> {
    /// `make_sleeper` makes the bell of a set, when a connection first needs it.
    pub fn new(make_sleeper: fn() -> Option<W::Sleeper>) -> Self {
        Sets {
            make_sleeper,
            sets: Numbers::new(),
            memberships: Numbers::new(),
            pieces: (0..PIECES).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Behind `epoll_create`. A set for which there is no room is the kernel's alone.
    pub fn created(&self, number: RawFd) {
        self.closed(number);
        let Some(word) = self.sets.make(number) else { return };
        let Some(index) = (0..PIECE * PIECES).find(|index| self.acquire(*index)) else { return };
        // Release: pairs with `find`.
        word.store(index as u32 + 1, Ordering::Release);
    }

    fn acquire(&self, index: usize) -> bool {
        let piece = self.pieces[index / PIECE]
            .get_or_init(|| (0..PIECE).map(|_| Set::new(self.make_sleeper)).collect());
        let set = &piece[index % PIECE];
        if set.is_in_use.swap(true, Ordering::Acquire) {
            return false;
        }
        set.reset();
        true
    }

    fn at(&self, word: u32) -> Option<&Set<W>> {
        let index = (word as usize).checked_sub(1)?;
        self.pieces.get(index / PIECE)?.get()?.get(index % PIECE)
    }

    /// Returns the set of a descriptor, by one load. `None` where this process did not make it.
    pub fn find(&self, number: RawFd) -> Option<&Set<W>> {
        // Acquire: pairs with `created`.
        self.at(self.sets.get(number)?.load(Ordering::Acquire))
    }

    /// Behind the program's successful change of a registration of any descriptor in any set. `watched` is its connection, as far as it has come. A refusal means that the bytes
    /// of a connection with this number must come by the kernel from now on.
    ///
    /// # Errors
    /// Why the set cannot watch its window.
    pub fn changed(
        &self,
        epoll: BorrowedFd<'_>,
        change: Change,
        number: RawFd,
        watched: Option<W>,
        event: Event,
    ) -> Result<(), Refusal> {
        use std::os::fd::AsRawFd;
        let own = self.sets.get(epoll.as_raw_fd()).map_or(NONE, |word| word.load(Ordering::Acquire));
        let set = self.at(own);
        if change == Change::Delete {
            return set.map_or(Err(Refusal::SharedSet), |set| {
                self.delete(number, own, set);
                Ok(())
            });
        }
        let is_alone = self.enter(number, if set.is_some() { own } else { MANY });
        // Of this thread and one that begins a connection, one sees the other: pairs with the fence in `begin`.
        fence(Ordering::SeqCst);
        let Some(set) = set else { return Err(Refusal::SharedSet) };
        let changed = set.changed(epoll, change, number, watched, event);
        if let Some(word) = self.memberships.get(number) {
            // A thread that took it out meanwhile may have said so behind `enter`.
            let _ = word.compare_exchange(own | PARKED, own, Ordering::Relaxed, Ordering::Relaxed);
        }
        if is_alone { changed } else { changed.and(Err(Refusal::ManySets)) }
    }

    /// Says that a number stands in a set; false where it stands in another too.
    fn enter(&self, number: RawFd, own: u32) -> bool {
        let Some(word) = self.memberships.make(number) else { return false };
        let enter = |old| match old {
            old if old == NONE || is_parked(old) => Some(own),
            old if old == own => Some(own),
            _ => Some(MANY),
        };
        let old = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).unwrap_or(MANY);
        if is_parked(old) && old != own | PARKED {
            self.at(old & !PARKED).into_iter().for_each(|set| set.forget_parked(number));
        }
        word.load(Ordering::Relaxed) != MANY
    }

    /// The program has taken a number out of a set.
    fn delete(&self, number: RawFd, own: u32, set: &Set<W>) {
        let Some(word) = self.memberships.get(number) else { return };
        let is_alone = word.load(Ordering::Relaxed) == own;
        let is_kept = set.deleted(number, is_alone);
        let rest = if is_kept { own | PARKED } else { NONE };
        // One that stands in several sets stays so.
        let _ = word.compare_exchange(own, rest, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Before the bytes of a connection begin to come by a window; [`Watched::may_have_news`] says already that they can. Whoever finds that they may not takes that back.
    pub fn begin(&self, number: RawFd, watched: W) -> Begin {
        // Pairs with the fence in `changed`.
        fence(Ordering::SeqCst);
        match self.memberships.get(number).map_or(NONE, |word| word.load(Ordering::Relaxed)) {
            word if word == NONE || is_parked(word) => Begin::Yes,
            MANY => Begin::Never(Refusal::ManySets),
            own => self.at(own).map_or(Begin::Yes, |set| set.begin(number, watched)),
        }
    }

    /// Whether a number stands in a set, or is one's.
    #[inline]
    pub fn has(&self, number: RawFd) -> bool {
        [&self.memberships, &self.sets]
            .into_iter()
            .any(|numbers| numbers.get(number).is_some_and(|word| word.load(Ordering::Relaxed) != NONE))
    }

    /// Before a number is closed, and where a new descriptor has it. Two loads for a number that is in no set, and none.
    pub fn closed(&self, number: RawFd) {
        if let Some(word) = self.memberships.get(number)
            && word.load(Ordering::Relaxed) != NONE
        {
            self.leave(number, word);
        }
        if let Some(word) = self.sets.get(number)
            && word.load(Ordering::Relaxed) != NONE
        {
            let own = word.swap(NONE, Ordering::Relaxed);
            self.free(own);
        }
    }

    #[cold]
    fn leave(&self, number: RawFd, word: &AtomicU32) {
        match word.swap(NONE, Ordering::Relaxed) {
            MANY => {
                let sets = self.pieces.iter().map_while(OnceLock::get).flatten();
                sets.filter(|set| !set.is_inherited()).for_each(|set| set.removed(number));
            }
            own => {
                if let Some(set) = self.at(own & !PARKED).filter(|set| !set.is_inherited()) {
                    set.removed(number);
                }
            }
        }
    }

    #[cold]
    fn free(&self, own: u32) {
        let Some(set) = self.at(own) else { return };
        // A parent's is not used again: a thread of the parent may have had its lock.
        if set.is_inherited() {
            return;
        }
        for number in set.reset() {
            if let Some(word) = self.memberships.get(number) {
                // Neither where it stands in several, and stays so.
                for old in [own, own | PARKED] {
                    let _ = word.compare_exchange(old, NONE, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
        }
        // Release: pairs with `acquire`.
        set.is_in_use.store(false, Ordering::Release);
    }

    /// In a child of fork, before anything else: the sets that there are, are the parent's.
    pub fn forked(&self) {
        for set in self.pieces.iter().map_while(OnceLock::get).flatten() {
            if set.is_in_use.load(Ordering::Relaxed) {
                set.is_inherited.store(true, Ordering::Relaxed);
            }
        }
    }
}

fn is_parked(word: u32) -> bool {
    word != MANY && word & PARKED != 0
}
