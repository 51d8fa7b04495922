//! An end of a window that several threads of a process share: a lock at the edge.
//!
//! The ends themselves have one owner and no lock, and stay so: a program that shares one puts it in a [`Shared`] and takes it out
//! for a turn. A turn may be as long as it needs to be, also while it waits for room, so what is written in one turn stands
//! together; other threads wait for their turn asleep, as long as they say, or are told at once that it is not theirs.
//!
//! Not here: several receivers of one window that work at the same time (`shared/`), processes that share an end.

use std::boxed::Box;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use beeline_contract_memory::{CreditSource, StorePort, Wait};

use crate::{ByteWriteError, ByteWriter};

/// An end of a window, or anything else with one owner, for the threads that have a clone of this.
///
/// A turn costs two uncontended locks of a mutex; nothing is copied but a pointer. Who waits gets its turn before who comes
/// later; among those who wait there is no order.
#[derive(Debug)]
pub struct Shared<W>(Arc<Turns<W>>);

#[derive(Debug)]
struct Turns<W> {
    state: Mutex<State<W>>,
    given_back: Condvar,
}

#[derive(Debug)]
struct State<W> {
    /// `None` while some thread has its turn.
    end: Option<Box<W>>,
    waiting: usize,
    /// The end is there for one of those who wait.
    is_promised: bool,
}

impl<W> Clone for Shared<W> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl<W> Shared<W> {
    /// Shares `end`, which is dropped with the last clone.
    pub fn new(end: W) -> Self {
        let state = State { end: Some(Box::new(end)), waiting: 0, is_promised: false };
        Shared(Arc::new(Turns { state: Mutex::new(state), given_back: Condvar::new() }))
    }

    /// A turn, if no other thread has one or waits for one.
    pub fn try_turn(&self) -> Option<Turn<'_, W>> {
        let mut state = self.0.lock();
        if state.is_promised {
            return None;
        }
        state.end.take().map(|end| Turn { turns: &self.0, end: Some(end) })
    }

    /// A turn, waited for.
    pub fn turn(&self) -> Turn<'_, W> {
        self.turn_until(None).expect("without a deadline it waits until there is one")
    }

    /// A turn, waited for until `deadline`, without one for ever; `None` when the time is over.
    pub fn turn_until(&self, deadline: Option<Instant>) -> Option<Turn<'_, W>> {
        let mut state = self.0.lock();
        if state.is_promised && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return None;
        }
        if state.is_promised || state.end.is_none() {
            state.waiting += 1;
            state = self.0.wait(state, deadline);
            state.waiting -= 1;
            state.is_promised &= state.end.is_none() && state.waiting > 0;
        }
        state.end.take().map(|end| Turn { turns: &self.0, end: Some(end) })
    }
}

impl<W> Turns<W> {
    fn lock(&self) -> MutexGuard<'_, State<W>> {
        // Nobody panics with the lock: what is done with the end is done without it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the end is there or the time is over.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, State<W>>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'s, State<W>> {
        // The first look is not for who comes when the end is promised to another.
        let mut is_first = state.is_promised;
        while state.end.is_none() || is_first {
            is_first = false;
            let Some(deadline) = deadline else {
                state = self.given_back.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.given_back.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}

/// A thread's turn with what is shared. Dropping it gives the next thread its turn.
#[derive(Debug)]
pub struct Turn<'s, W> {
    turns: &'s Turns<W>,
    end: Option<Box<W>>,
}

impl<W> core::ops::Deref for Turn<'_, W> {
    type Target = W;

    fn deref(&self) -> &W {
        self.end.as_ref().expect("it is given back by the drop only")
    }
}

impl<W> core::ops::DerefMut for Turn<'_, W> {
    fn deref_mut(&mut self) -> &mut W {
        self.end.as_mut().expect("it is given back by the drop only")
    }
}

impl<W> Drop for Turn<'_, W> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.end = self.end.take();
        state.is_promised = state.waiting > 0;
        if state.is_promised {
            self.turns.given_back.notify_one();
        }
    }
}

/// A byte stream that several threads write to.
impl<P: StorePort, C: CreditSource> Shared<ByteWriter<P, C>> {
    /// As [`ByteWriter::write`], in one piece that no other thread's bytes stand in; 0 also when another thread writes.
    ///
    /// # Errors
    /// As [`ByteWriter::write`].
    pub fn try_write(&self, bytes: &[u8]) -> Result<usize, ByteWriteError> {
        self.try_turn().map_or(Ok(0), |mut writer| writer.write(bytes))
    }

    /// As [`ByteWriter::write_all_wait`]: all of `bytes` in one piece, also when it must wait for room in the middle of them. Waits
    /// for its turn until `deadline`, then for room as long as `waiter` does.
    ///
    /// # Errors
    /// As [`ByteWriter::write_all_wait`].
    pub fn write_all_wait(
        &self,
        bytes: &[u8],
        deadline: Option<Instant>,
        waiter: &mut impl Wait,
    ) -> Result<usize, ByteWriteError> {
        self.turn_until(deadline).map_or(Ok(0), |mut writer| writer.write_all_wait(bytes, waiter))
    }
}

#[cfg(test)]
mod tests;
