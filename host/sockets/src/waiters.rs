//! Threads whose calls wait at an endpoint, and the socket that is kept for them.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use smallvec::SmallVec;

/// Threads whose calls wait in one direction of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Waiters(pub SmallVec<[usize; 2]>);

/// The socket of a connection whose number was closed while calls waited at it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub socket: Arc<OwnedFd>,
    /// Threads that go on by it.
    pub seen_by: SmallVec<[usize; 4]>,
}

impl Waiters {
    /// A thread that a handler made jump out of a call before is there still.
    pub(crate) fn add(&mut self, thread: usize) {
        if !self.0.contains(&thread) {
            self.0.push(thread);
        }
    }

    pub(crate) fn remove(&mut self, thread: usize) {
        self.0.retain(|waiter| *waiter != thread);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The calling thread, among those that run.
#[inline]
pub(crate) fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}
