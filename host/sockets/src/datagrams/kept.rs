//! A receive that waits while another thread closes its number: the kernel has the socket until the call has returned, and so does the engine, by a copy.
//!
//! As calls on connections do it (`inside.rs`): a thread that waits is noted, one that a handler has had jump out of its call stays noted, and who closes the number
//! waits until each has seen that, and forgets those that do not.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beeline_domain::high_copy;
use beeline_socket_rules::Why;

use super::socket::DatagramSocket;
use super::table;
use crate::lock::locked;
use crate::process::Process;
use crate::waiters::{Kept, Waiters, this_thread, wait_until_seen};

/// A call that receives. While it waits the socket is not another's.
pub(crate) struct Inside<'a> {
    own: &'static DatagramSocket,
    process: &'a Process,
    /// The cookie of the socket at which the call is noted.
    noted: Option<u64>,
}

impl<'a> Inside<'a> {
    pub(crate) fn new(own: &'static DatagramSocket, process: &'a Process) -> Self {
        Inside { own, process, noted: None }
    }

    /// Notes the call, before it lets go of the reader's lock to wait. The number is what it was: who closes it sees that behind this lock.
    pub(crate) fn enter(&mut self, waiters: &mut Waiters) {
        if self.noted.is_none() {
            waiters.add(this_thread());
            self.noted = Some(self.own.cookie());
        }
    }

    /// The copy by which the call goes on, if it waited when its number was closed.
    pub(crate) fn kept(&self) -> Option<Arc<OwnedFd>> {
        self.noted.filter(|cookie| *cookie == self.own.cookie())?;
        let mut kept = locked(&self.own.kept);
        let kept = kept.as_mut()?;
        kept.seen_by.push(this_thread());
        Some(Arc::clone(&kept.socket))
    }
}

impl Drop for Inside<'_> {
    /// Of a thread that is cancelled, too. No lock is held.
    fn drop(&mut self) {
        // A number that was closed by a call that nobody saw has ended the socket, and its list.
        if self.noted.is_some_and(|cookie| cookie == self.own.cookie()) {
            self.own.lock_reader().inside.remove(this_thread());
            if self.own.is_kept() {
                self.own.end_left(self.process);
            }
        }
    }
}

impl DatagramSocket {
    /// Whether the number is about to be closed, or has been, under a call that waits.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::SeqCst)
    }

    /// The number is about to be closed. Keeps the socket for calls that wait, if there are any: what comes is theirs, by the kernel.
    pub(crate) fn keep(&self, socket: BorrowedFd<'_>, process: &Process) -> bool {
        {
            let mut reader = self.lock_reader();
            // One that closes does not wait, but in a handler.
            reader.inside.remove(this_thread());
            if reader.inside.is_empty() {
                return false;
            }
            // Without a copy the calls end.
            let Ok(copy) = high_copy(socket) else { return false };
            *locked(&self.kept) = Some(Kept::new(copy));
            self.is_kept.store(true, Ordering::SeqCst);
        }
        self.forbid(Why::Disconnected);
        // A call that has not announced its sleep yet looks whether the socket is kept before it sleeps.
        locked(&self.bells).iter().flatten().for_each(|bell| bell.ring());
        wait_until_seen(|| self.forgets_unseen(false) == 0);
        self.forgets_unseen(true);
        self.end_left(process);
        true
    }

    /// In a child of fork.
    pub(crate) fn drop_kept_of_parent(&self) {
        if self.is_kept() {
            Kept::drop_of_parent(&self.kept);
        }
    }

    /// How many calls have not seen that their number was closed; they are forgotten then, if that is wanted.
    fn forgets_unseen(&self, forgets: bool) -> usize {
        let mut reader = self.lock_reader();
        let kept = locked(&self.kept);
        let Some(kept) = kept.as_ref() else { return 0 };
        let is_seen = |waiter: &usize| kept.seen_by.contains(waiter);
        let unseen = reader.inside.0.iter().filter(|waiter| !is_seen(waiter)).count();
        if forgets {
            reader.inside.0.retain(|waiter| is_seen(waiter));
        }
        unseen
    }

    /// Lets the socket go, once, when the last call has left that it was kept for.
    fn end_left(&self, process: &Process) {
        {
            let reader = self.lock_reader();
            if !reader.inside.is_empty() || !self.is_kept.swap(false, Ordering::SeqCst) {
                return;
            }
            locked(&self.kept).take();
        }
        process.give_memory(self.end());
        table::give(self);
    }
}
