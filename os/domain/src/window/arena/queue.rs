//! Windows that clients have opened, until the program accepts them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::Event;

/// What the domain's thread puts in and the program takes out. It holds no more than all clients may have open.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    /// What is signalled when a window is opened.
    event: Option<Event>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let state = State { waiting: VecDeque::new(), event: None, is_closed: false };
        Queue { state: Mutex::new(state), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a window in; gives it back if nobody will take it.
    pub(super) fn push(&self, opened: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(opened);
        }
        state.waiting.push_back(opened);
        self.arrived.notify_one();
        if let Some(event) = &state.event {
            event.signal();
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    pub(super) fn try_take(&self) -> Option<T> {
        self.lock().waiting.pop_front()
    }

    /// Takes a window, and waits for one until `deadline` (`None`: for ever).
    pub(super) fn take(&self, deadline: Option<Instant>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(opened) = state.waiting.pop_front() {
                return Some(opened);
            }
            state = match deadline {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub(super) fn signal(&self, event: Option<&Event>) {
        self.lock().event = event.cloned();
    }

    /// Takes nothing more, and gives what waits up.
    pub(super) fn close(&self) {
        let left = {
            let mut state = self.lock();
            state.is_closed = true;
            std::mem::take(&mut state.waiting)
        };
        // Outside the lock: each tells its sender.
        drop(left);
    }
}
