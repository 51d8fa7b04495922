//! One epoll set: what the program registered in it, which of it are connections, and its bell.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::asleep::Asleep;
use super::budget::Budget;
use super::member::Member;
use super::members::Members;
use super::sync::{Mutex, MutexGuard, lock};
use super::watched::{Sleeper, Watched};

/// The bell was never needed.
const BELL_OUT: u8 = 0;
/// A connection wants to begin: the next call that has the set's descriptor puts it in.
const BELL_WANTED: u8 = 1;
/// It stands in the kernel's set.
const BELL_IN: u8 = 2;
/// There is none: it could not be made, or the set is not this process's alone.
const BELL_NONE: u8 = 3;

/// Why a set cannot watch a connection whose bytes come by a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    OneShot,
    Exclusive,
    /// More than one set has it.
    ManySets,
    /// The set is known to another process, to another set or to a poll.
    SharedSet,
    /// No sender can wake the set: there is no bell, or no place for it.
    NoBell,
}

/// Whether a connection's bytes may begin to come by a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    Yes,
    /// Not before the set's next call, which is needed first. Ask again.
    NotYet,
    Never(Refusal),
}

/// What the program did to a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Add,
    Modify,
    Delete,
}

/// One epoll set of this process. Never freed, and used again for another.
#[derive(Debug)]
pub struct Set<W: Watched> {
    make_sleeper: fn() -> Option<W::Sleeper>,
    pub(crate) is_in_use: AtomicBool,
    /// A child of fork has its parent's set, and does nothing with it but leave its bell out of results.
    pub(crate) is_inherited: AtomicBool,
    /// In a child: its members have been given to whoever waits at it.
    has_given_members: AtomicBool,
    is_shared: AtomicBool,
    bell: AtomicU8,
    /// The data of the bell's registration, once there was one.
    word: AtomicU64,
    has_word: AtomicBool,
    sleeper: OnceLock<W::Sleeper>,
    pub(crate) members: Mutex<Members<W>>,
    /// Members whose windows are looked at.
    pub(crate) active: AtomicU32,
    pub(crate) asleep: Asleep,
    /// When the kernel was last asked, in nanoseconds of the call's clock.
    pub(crate) asked_at: AtomicU64,
    /// Whether a single event is a window's turn.
    pub(crate) is_windows_turn: AtomicBool,
    pub(crate) budget: Budget,
}

impl<W: Watched> Set<W> {
    pub(crate) fn new(make_sleeper: fn() -> Option<W::Sleeper>) -> Self {
        Set {
            make_sleeper,
            is_in_use: AtomicBool::new(false),
            is_inherited: AtomicBool::new(false),
            has_given_members: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            bell: AtomicU8::new(BELL_OUT),
            word: AtomicU64::new(0),
            has_word: AtomicBool::new(false),
            sleeper: OnceLock::new(),
            members: Mutex::new(Members::new()),
            active: AtomicU32::new(0),
            asleep: Asleep::new(),
            asked_at: AtomicU64::new(0),
            is_windows_turn: AtomicBool::new(false),
            budget: Budget::new(),
        }
    }

    /// Makes it a new set's, which has no member. Returns the numbers of those that it had.
    pub(crate) fn reset(&self) -> Vec<RawFd> {
        let mut members = self.lock();
        let numbers = members.numbers().collect();
        members.clear(self.sleeper.get());
        self.count(&members);
        self.is_shared.store(false, Ordering::Relaxed);
        self.has_word.store(false, Ordering::Relaxed);
        self.bell.store(BELL_OUT, Ordering::Relaxed);
        numbers
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Members<W>> {
        lock(&self.members)
    }

    /// Under the lock of `members`, so that the last store is the last change.
    pub(crate) fn count(&self, members: &Members<W>) {
        // Relaxed: a thread that misses a first member is woken by the bell, which is rung behind this.
        self.active.store(members.active_count() as u32, Ordering::Relaxed);
    }

    pub(crate) fn is_inherited(&self) -> bool {
        self.is_inherited.load(Ordering::Relaxed)
    }

    fn is_private(&self) -> bool {
        !self.is_inherited() && !self.is_shared.load(Ordering::Relaxed)
    }

    /// The sleeper, while its bell stands in the kernel's set.
    pub(crate) fn sleeper(&self) -> Option<&W::Sleeper> {
        // Acquire: pairs with the store behind the registration.
        (self.bell.load(Ordering::Acquire) == BELL_IN).then(|| self.sleeper.get()).flatten()
    }

    /// Puts the bell in where a connection waits for it.
    pub(crate) fn serve(&self, epoll: BorrowedFd<'_>) {
        if self.bell.load(Ordering::Relaxed) == BELL_WANTED {
            let members = self.lock();
            self.put_bell_in(&members, epoll);
        }
    }

    fn put_bell_in(&self, members: &Members<W>, epoll: BorrowedFd<'_>) -> bool {
        match self.bell.load(Ordering::Relaxed) {
            BELL_IN => return true,
            BELL_NONE => return false,
            _ => {}
        }
        if self.sleeper.get().is_none()
            && let Some(sleeper) = (self.make_sleeper)()
        {
            // Under the lock: nobody else sets it.
            let _ = self.sleeper.set(sleeper);
        }
        let word = new_word(members);
        self.word.store(word, Ordering::Relaxed);
        self.has_word.store(true, Ordering::Release);
        let put = self.sleeper.get().map(|sleeper| put(epoll, sleeper, word));
        let is_in = matches!(put, Some(Ok(())));
        self.bell.store(if is_in { BELL_IN } else { BELL_NONE }, Ordering::Release);
        is_in
    }

    /// Whether an event is the bell's, which no program is to see.
    pub(crate) fn is_bell(&self, event: Event) -> bool {
        // Acquire: pairs with the store that says that the word is one.
        self.has_word.load(Ordering::Acquire) && event.data.u64() == self.word.load(Ordering::Relaxed)
    }

    /// Makes the bell unreadable, whatever the set has become. False where its number is not the bell's any more; the kernel tells of it for ever then, where a child has the
    /// file still.
    pub(crate) fn clear_bell(&self) -> bool {
        let is_cleared = self.sleeper.get().is_none_or(Sleeper::clear);
        if !is_cleared {
            self.lose_bell();
        }
        is_cleared
    }

    /// The sleeper of a set whose bell can be rung. A thread that is about to sleep asks for it: the program may have closed the bell's number.
    pub(crate) fn whole_sleeper(&self) -> Option<&W::Sleeper> {
        let sleeper = self.sleeper();
        if sleeper.is_some_and(|sleeper| !sleeper.is_whole()) {
            self.lose_bell();
            return None;
        }
        sleeper
    }

    /// The bell is not what it was: somebody closed its descriptor. From here on no sender can wake the set.
    #[cold]
    fn lose_bell(&self) {
        let mut members = self.lock();
        self.bell.store(BELL_NONE, Ordering::Release);
        members.leave_sleepers(self.sleeper.get());
    }

    /// Before the program makes or changes a registration: the bell's is another than the program's.
    pub fn before_change(&self, epoll: BorrowedFd<'_>, event: Event) {
        if self.is_inherited() || !self.is_bell(event) {
            return;
        }
        let members = self.lock();
        let word = loop {
            let word = new_word(&members);
            if word != event.data.u64() {
                break word;
            }
        };
        if let Some(sleeper) = self.sleeper()
            && put(epoll, sleeper, word).is_ok()
        {
            self.word.store(word, Ordering::Relaxed);
        }
    }

    /// Behind the program's successful change of a registration. `watched` is the connection, if it may have come to a window. A refusal means that its bytes must come by the kernel from now on; what is
    /// in its window is reported until then.
    pub(crate) fn changed(
        &self,
        epoll: BorrowedFd<'_>,
        change: Change,
        number: RawFd,
        watched: Option<W>,
        event: Event,
    ) -> Result<(), Refusal> {
        if change == Change::Delete {
            self.deleted(number, false);
            return Ok(());
        }
        let mut members = self.lock();
        match change {
            Change::Add if watched.is_some_and(|watched| members.unpark(number, watched, event)) => {
                self.count(&members);
            }
            Change::Modify if let Some(member) = members.get_mut(number) => member.modify(event),
            _ => {
                members.remove(number, self.sleeper.get());
                members.insert(number, Member::new(watched, event));
            }
        }
        let allowed = self.allowed(event.flags);
        if let Some(watched) = watched.filter(|watched| watched.may_have_news() || watched.has_news()) {
            let is_in = self.is_private() && self.put_bell_in(&members, epoll);
            self.activate(&mut members, number, watched);
            return allowed.and(if is_in && members.has_sleeper(number) {
                Ok(())
            } else {
                Err(Refusal::NoBell)
            });
        }
        allowed
    }

    /// Behind the program's successful removal of a registration. Whether the set keeps it for when it is put in again.
    pub(crate) fn deleted(&self, number: RawFd, can_keep: bool) -> bool {
        let mut members = self.lock();
        let is_kept = can_keep && self.is_private() && members.park(number);
        if !is_kept {
            members.remove(number, self.sleeper.get());
        }
        self.count(&members);
        is_kept
    }

    /// The number stands elsewhere from now on.
    pub(crate) fn forget_parked(&self, number: RawFd) {
        let mut members = self.lock();
        if members.is_parked(number) {
            members.remove(number, self.sleeper.get());
        }
    }

    fn allowed(&self, asked: EventFlags) -> Result<(), Refusal> {
        if !self.is_private() {
            Err(Refusal::SharedSet)
        } else if asked.contains(EventFlags::ONESHOT) {
            Err(Refusal::OneShot)
        } else if asked.contains(EventFlags::EXCLUSIVE) {
            Err(Refusal::Exclusive)
        } else {
            Ok(())
        }
    }

    /// Has a member's window looked at from now on, and whoever sleeps look at once.
    fn activate(&self, members: &mut Members<W>, number: RawFd, watched: W) {
        let Some(member) = members.get_mut(number) else { return };
        if member.watched().is_none() {
            member.watch(watched);
        }
        if !member.has_sleeper
            && let Some(sleeper) = self.sleeper()
        {
            member.has_sleeper = watched.add_sleeper(sleeper);
        }
        members.activate(number);
        self.count(members);
        // One that is not seen yet looks at the list behind this lock before it sleeps.
        if self.asleep.is_any()
            && let Some(sleeper) = self.sleeper()
        {
            self.asleep.begin_to_wake();
            sleeper.ring();
        }
    }

    /// Before the bytes of a connection begin to come by a window, which it may say already.
    pub(crate) fn begin(&self, number: RawFd, watched: W) -> Begin {
        if self.is_inherited() {
            return Begin::Never(Refusal::SharedSet);
        }
        let mut members = self.lock();
        // A registration that is under way looks at the connection behind this lock.
        let Some(member) = members.get_mut(number).filter(|member| !member.is_parked) else {
            return Begin::Yes;
        };
        if let Err(refusal) = self.allowed(member.asked()) {
            return Begin::Never(refusal);
        }
        match self.bell.load(Ordering::Relaxed) {
            BELL_IN => {}
            BELL_NONE => return Begin::Never(Refusal::NoBell),
            _ => {
                self.bell.store(BELL_WANTED, Ordering::Relaxed);
                return Begin::NotYet;
            }
        }
        member.watch(watched);
        self.activate(&mut members, number, watched);
        if members.has_sleeper(number) { Begin::Yes } else { Begin::Never(Refusal::NoBell) }
    }

    pub(crate) fn removed(&self, number: RawFd) {
        let mut members = self.lock();
        members.remove(number, self.sleeper.get());
        self.count(&members);
    }

    /// The set is known to more than this process's calls on it: a poll, another set, another process. Its bell is taken out, and what
    /// it watches goes back to the kernel: the numbers of its connections.
    pub fn share(&self, epoll: BorrowedFd<'_>) -> Vec<RawFd> {
        if self.is_inherited() || self.is_shared.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        let mut members = self.lock();
        if let Some(sleeper) = self.sleeper() {
            members.leave_sleepers(Some(sleeper));
            if self.asleep.is_any() {
                // Whoever wakes clears it, and sleeps for short from now on. Then nobody rings it any more.
                sleeper.ring();
            } else {
                sleeper.clear();
                // The only failure: it is not in.
                let _ = epoll::delete(epoll, sleeper.bell());
            }
        }
        self.bell.store(BELL_NONE, Ordering::Release);
        members.connections().collect()
    }

    /// Behind [`Set::share`]: takes the bell out also where threads sleep. The kernel tells them of everything from now on.
    pub fn take_bell_out(&self, epoll: BorrowedFd<'_>) {
        if !self.is_inherited()
            && let Some(sleeper) = self.sleeper.get()
        {
            sleeper.clear();
            // The only failure: it is not in.
            let _ = epoll::delete(epoll, sleeper.bell());
        }
    }

    /// In a child that is about to wait at its parent's set: the numbers of the connections in it, the first time. Nobody tells the child of their windows.
    pub fn inherited_connections(&self) -> Vec<RawFd> {
        if !self.is_inherited() || self.has_given_members.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        // A thread of the parent's that had the lock has it for ever here.
        self.members.try_lock().map_or_else(|_| Vec::new(), |members| members.connections().collect())
    }
}

/// A word that no registration has.
fn new_word<W: Watched>(members: &Members<W>) -> u64 {
    loop {
        // Keys of the kernel's random numbers.
        let word = RandomState::new().build_hasher().finish();
        if !members.has_data(word) {
            return word;
        }
    }
}

/// Level-triggered: a thread that is taken away between its wake-up and its look leaves it to the next.
fn put(epoll: BorrowedFd<'_>, sleeper: &impl Sleeper, word: u64) -> Result<(), Errno> {
    let data = EventData::new_u64(word);
    match epoll::add(epoll, sleeper.bell(), data, EventFlags::IN) {
        Err(Errno::EXIST) => epoll::modify(epoll, sleeper.bell(), data, EventFlags::IN),
        done => done,
    }
}
