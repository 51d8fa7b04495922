//! Who may use a handle: one thread at a time, and not again before it is done.
//!
//! A handle belongs to the thread that uses it first, until that thread releases it or ends. The usual case costs a load
//! of the thread's number and a comparison, no atomic read-modify-write: those would wait for every store on its way into
//! a window.

use core::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::edge::{Failure, Outcome};
use crate::status;

/// Numbers of threads; 0 is nobody's, and none is given twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Says that its thread has ended.
struct Mark(Arc<AtomicBool>);

impl Drop for Mark {
    fn drop(&mut self) {
        // Release: whatever this thread did with its handles comes before; pairs with the load in `claim`.
        self.0.store(true, Ordering::Release);
    }
}

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    static MARK: Mark = Mark(Arc::new(AtomicBool::new(false)));
}

/// Before one handle.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Number of the thread that has the handle. A thread finds its own number here only if it put it there.
    owner: AtomicU64,
    /// That thread's mark, for others.
    mark: Mutex<Option<Arc<AtomicBool>>>,
    /// Whether a function is inside. Only the owner looks and writes.
    is_inside: AtomicBool,
}

/// Leave to use what is behind a gate, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass<'a>(&'a Gate);

impl Drop for Pass<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Relaxed: only the owner reads it; who owns the handle next comes after it by `release` and `claim`.
        self.0.is_inside.store(false, Ordering::Relaxed);
    }
}

impl Gate {
    /// Lets the calling thread in, if the handle is its own or nobody's.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Outcome<Pass<'_>> {
        if !self.is_mine() {
            self.claim()?;
        }
        // Relaxed: this thread is the only one that writes it.
        if self.is_inside.load(Ordering::Relaxed) {
            return Err(busy());
        }
        self.is_inside.store(true, Ordering::Relaxed);
        Ok(Pass(self))
    }

    /// Whether the calling thread has the handle.
    #[inline(always)]
    pub(crate) fn is_mine(&self) -> bool {
        let number = NUMBER.get();
        // Relaxed: a thread finds its own number only where it was written by itself.
        number != 0 && self.owner.load(Ordering::Relaxed) == number
    }

    #[cold]
    #[inline(never)]
    fn claim(&self) -> Outcome<()> {
        let number = NUMBER.get();
        if number == 0 {
            // Relaxed: only that numbers differ matters.
            NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        let own = MARK.try_with(|mark| Arc::clone(&mark.0));
        let own = own.map_err(|_| {
            Failure::new(status::WRONG_THREAD, "this thread is ending and takes no handle any more")
        })?;
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        // Acquire: pairs with `Mark::drop`. A handle that was released instead comes by the lock.
        if mark.as_ref().is_some_and(|last| !last.load(Ordering::Acquire)) {
            let why = "the handle belongs to another thread until that one releases it or ends";
            return Err(Failure::new(status::WRONG_THREAD, why));
        }
        *mark = Some(own);
        // Relaxed: only this thread looks for this number, and the lock orders the rest.
        self.owner.store(NUMBER.get(), Ordering::Relaxed);
        self.is_inside.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the handle up: another thread may use it.
    pub(crate) fn release(&self) -> Outcome<()> {
        let pass = self.enter()?;
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        drop(pass);
        // Relaxed: the lock orders it before the next owner's use.
        self.owner.store(0, Ordering::Relaxed);
        *mark = None;
        Ok(())
    }
}

#[cold]
fn busy() -> Failure {
    Failure::new(
        status::BUSY,
        "the handle is in use by a function further up in this thread, whose handler called this one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_one_threads_until_it_is_released_or_the_thread_ends() {
        let gate = Gate::default();
        let status_elsewhere = || {
            std::thread::scope(|scope| {
                scope.spawn(|| gate.enter().map(drop).map_err(|failure| failure.status)).join().unwrap()
            })
        };
        // Another thread's, which has ended: anybody's.
        assert_eq!(status_elsewhere(), Ok(()));
        drop(gate.enter().unwrap());
        assert_eq!(status_elsewhere(), Err(status::WRONG_THREAD));
        drop(gate.enter().unwrap());
        gate.release().unwrap();
        assert!(!gate.is_mine());
        assert_eq!(status_elsewhere(), Ok(()));
        drop(gate.enter().unwrap());
    }

    #[test]
    fn nobody_is_let_in_twice() {
        let gate = Gate::default();
        let pass = gate.enter().unwrap();
        assert_eq!(gate.enter().unwrap_err().status, status::BUSY);
        assert_eq!(gate.release().unwrap_err().status, status::BUSY);
        drop(pass);
        drop(gate.enter().unwrap());
    }

    #[test]
    fn threads_that_race_for_a_handle_are_never_in_it_together() {
        let gate = Gate::default();
        let (inside, entered) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..if cfg!(miri) { 100 } else { 5_000 } {
                        let Ok(pass) = gate.enter() else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        entered.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(pass);
                        gate.release().unwrap();
                    }
                });
            }
        });
        assert!(entered.into_inner() > 0);
    }
}
