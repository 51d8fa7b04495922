//! Threads whose calls wait at an endpoint, and the socket that is kept for them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use beeline_domain::HighCopy;
use smallvec::SmallVec;

use crate::lock::locked;
use crate::poll::sleep_for;

/// How long a thread that waits may take to see that its number was closed.
const SEEN_WITHIN: Duration = Duration::from_millis(50);
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// Threads whose calls wait in one direction of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Waiters(pub SmallVec<[usize; 2]>);

/// The socket of a connection whose number was closed while calls waited at it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub socket: Arc<HighCopy>,
    /// Threads that go on by it, and have not returned from their calls.
    pub seen_by: SmallVec<[usize; 4]>,
}

impl Kept {
    /// By a number of the library's own.
    pub(crate) fn new(socket: HighCopy) -> Self {
        Kept { socket: Arc::new(socket), seen_by: SmallVec::new() }
    }

    /// A call has left that went on by it. Its thread may fork: its child has no call to go on by the copy.
    pub(crate) fn leave(kept: &Mutex<Option<Kept>>) {
        if let Some(kept) = &mut *locked(kept) {
            kept.seen_by.retain(|thread| *thread != this_thread());
        }
    }

    /// In a child, which none of the calls came to: its copy of the socket would keep the connection, or the port. Threads of its parent that go on by the socket are owners
    /// of it for ever here, so it is closed under them. Only the thread that forks, in a handler, comes back to its call.
    pub(crate) fn drop_of_parent(kept: &Mutex<Option<Kept>>) {
        if let Ok(mut kept) = kept.try_lock()
            && let Some(kept) = kept.take()
            && !kept.seen_by.contains(&this_thread())
        {
            kept.socket.close_in_child();
        }
    }
}

/// Waits until the threads that wait have seen that their number was closed; one that has not after a while is none.
pub(crate) fn wait_until_seen(mut is_seen_by_all: impl FnMut() -> bool) {
    let until = Instant::now() + SEEN_WITHIN;
    while !is_seen_by_all() && Instant::now() < until {
        sleep_for(BETWEEN_LOOKS);
    }
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
