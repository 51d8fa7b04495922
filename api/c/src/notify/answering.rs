//! The end of a notifier's callback: whoever closes the notifier waits until it runs no more, because C frees its context then.
//!
//! The notifier itself cannot wait: it goes when nobody uses it any more, which may be in a function that the callback has called.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};

use beeline_mmio::ThisProcess;

/// Whether the callback of a notifier runs, and whether it may.
pub(super) struct Answering {
    state: Mutex<State>,
    has_ended: Condvar,
    made_by: ThisProcess,
}

#[derive(Default)]
struct State {
    is_over: bool,
    /// The thread that the callback runs on: one at a time, as the notifier has its requests answered.
    runs_on: Option<ThreadId>,
}

impl Answering {
    pub(super) fn new() -> Self {
        Answering { state: Mutex::default(), has_ended: Condvar::new(), made_by: ThisProcess::get() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the callback, which does not unwind; `None` when the notifier is closed.
    pub(super) fn run<T>(&self, callback: impl FnOnce() -> T) -> Option<T> {
        {
            let mut state = self.lock();
            if state.is_over {
                return None;
            }
            state.runs_on = Some(current().id());
        }
        let result = callback();
        self.lock().runs_on = None;
        self.has_ended.notify_all();
        Some(result)
    }

    /// No callback begins from here on; waits for the one that runs, unless it is the one that calls this.
    pub(super) fn end(&self) {
        // In a child of fork no callback runs, and the lock may be one that nobody gives back.
        if !self.made_by.is_this() {
            return;
        }
        let mut state = self.lock();
        state.is_over = true;
        let runs_elsewhere = |state: &mut State| state.runs_on.is_some_and(|thread| thread != current().id());
        drop(self.has_ended.wait_while(state, runs_elsewhere).unwrap_or_else(PoisonError::into_inner));
    }
}
