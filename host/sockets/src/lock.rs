//! Locks of this crate: what is behind them is changed by single stores, so a thread that panics leaves it whole.
//!
//! A handler of the program's may interrupt a thread that has one, and make a call that comes here as well: it would wait for its own thread for ever. So a thread
//! knows which locks it has, and code to which handlers come looks before it waits ([`is_held_here`], record 0079).

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks that a thread knows that it has; of more it knows nothing. A call has three at most, and is interrupted by handlers that are interrupted.
const MOST: usize = 16;
/// In place of an address.
const LET_GO: usize = 1;

/// The addresses of the locks that a thread has, is about to take, or has just let go.
struct Locks {
    count: Cell<usize>,
    all: [Cell<usize>; MOST],
}

thread_local! {
    static LOCKS: Locks = const { Locks { count: Cell::new(0), all: [const { Cell::new(0) }; MOST] } };
}

/// A lock that this thread has.
pub(crate) struct Held<'a, T> {
    // Let go before the note is taken back: a handler between the two believes that the lock is held.
    guard: MutexGuard<'a, T>,
    _noted: Noted,
}

struct Noted(usize);

impl Noted {
    #[inline]
    fn new<T>(mutex: &Mutex<T>) -> Self {
        let at = LOCKS.with(|locks| {
            let at = locks.count.get();
            // Before the address: a handler that comes between the two leaves the place alone.
            locks.count.set(at + 1);
            if let Some(place) = locks.all.get(at) {
                place.set(std::ptr::from_ref(mutex).addr());
            }
            at
        });
        // Handlers are of this thread.
        compiler_fence(Ordering::SeqCst);
        Noted(at)
    }
}

impl Drop for Noted {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        LOCKS.with(|locks| {
            if let Some(place) = locks.all.get(self.0) {
                place.set(LET_GO);
            }
            // Not always in order. A place of 0 is of a call that was interrupted before it wrote there.
            while let Some(top) = locks.count.get().checked_sub(1) {
                match locks.all.get(top) {
                    Some(place) if place.get() == LET_GO => place.set(0),
                    Some(_) => break,
                    None => {}
                }
                locks.count.set(top);
            }
        });
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[inline]
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> Held<'_, T> {
    let noted = Noted::new(mutex);
    Held { guard: mutex.lock().unwrap_or_else(PoisonError::into_inner), _noted: noted }
}

#[inline]
pub(crate) fn try_locked<T>(mutex: &Mutex<T>) -> Option<Held<'_, T>> {
    let noted = Noted::new(mutex);
    match mutex.try_lock() {
        Ok(guard) => Some(Held { guard, _noted: noted }),
        Err(TryLockError::Poisoned(poisoned)) => Some(Held { guard: poisoned.into_inner(), _noted: noted }),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// As [`locked`], of a lock that a thread may have that spins: it lets go when it sees that others want it.
#[inline]
pub(crate) fn locked_by_turns<'a, T>(mutex: &'a Mutex<T>, wanted: &AtomicU32) -> Held<'a, T> {
    if let Some(held) = try_locked(mutex) {
        return held;
    }
    wanted.fetch_add(1, Ordering::Relaxed);
    let held = locked(mutex);
    wanted.fetch_sub(1, Ordering::Relaxed);
    held
}

/// Whether this is a handler that has interrupted its own thread with that lock.
#[inline]
pub(crate) fn is_held_here<T>(mutex: &Mutex<T>) -> bool {
    LOCKS.with(|locks| {
        let count = locks.count.get();
        count > 0 && {
            let address = std::ptr::from_ref(mutex).addr();
            locks.all[..count.min(MOST)].iter().any(|place| place.get() == address)
        }
    })
}

/// Whether this is a handler that has interrupted its own thread with any lock.
#[inline]
pub(crate) fn is_any_held_here() -> bool {
    LOCKS.with(|locks| locks.count.get() > 0)
}
