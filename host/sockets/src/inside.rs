//! Calls that wait: a connection whose number another thread closes meanwhile stays until they have returned, as the kernel keeps a file for a
//! call on it.
//!
//! Our calls are several of the kernel's where the program makes one, and by the second the number may be another connection's. So who closes a
//! number that a call waits at has the socket under a number of the library's, where the call goes on; the last call to leave ends the connection.
//! Only calls that have come to wait are noted, under the lock that they have anyway: others carry bytes under that lock, and `close` waits for it.
//!
//! A handler that jumps out of a call (`siglongjmp`) leaves its thread noted. So who closes waits until each of them has seen that, which is
//! once its bell is rung; one that has not after a while is none.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beeline_domain::HighCopy;

use crate::endpoint::{Endpoint, Stage};
use crate::endpoints::endpoint;
use crate::handlers::{put_off_end, take_put_off_end};
use crate::lock::{is_held_here, locked};
use crate::numbers::Claim;
use crate::process::Process;
use crate::sockets::Sockets;
use crate::waiters::{Kept, Waiters, this_thread, wait_until_seen};

/// Which lock has the count of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Receives,
    Sends,
}

/// A call that may come to wait.
pub(crate) struct Inside<'a> {
    sockets: &'a Sockets,
    endpoint: &'static Endpoint,
    way: Way,
    number: BorrowedFd<'a>,
    /// The cookie of the connection at which the call is noted.
    noted: Option<u64>,
    may_be_last: bool,
    kept: Option<Arc<HighCopy>>,
}

impl<'a> Inside<'a> {
    pub(crate) fn new(
        sockets: &'a Sockets,
        endpoint: &'static Endpoint,
        way: Way,
        number: BorrowedFd<'a>,
    ) -> Self {
        Inside { sockets, endpoint, way, number, noted: None, may_be_last: false, kept: None }
    }

    pub(crate) fn process(&self) -> &'a Process {
        self.sockets.process()
    }

    /// The socket, by the program's number or by the library's.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.kept.as_ref().map_or(self.number, |kept| kept.as_fd())
    }

    /// Whether the program has closed the number meanwhile.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Notes the call, before it lets go of the lock to wait. `waiters` are of its direction.
    #[inline]
    pub(crate) fn enter(&mut self, waiters: &mut Waiters) {
        if self.noted.is_none() {
            waiters.add(this_thread());
            self.noted = Some(self.endpoint.cookie.load(Ordering::Relaxed));
        }
    }

    /// The call waits no more; under the lock.
    #[inline]
    pub(crate) fn leave(&mut self, waiters: &mut Waiters) {
        // A number that was closed by a call that nobody saw has ended the connection, and its list.
        if let Some(cookie) = self.noted.take()
            && self.endpoint.is_connection(cookie)
        {
            waiters.remove(this_thread());
            if self.kept.is_some() {
                Kept::leave(&self.endpoint.kept);
            }
            self.may_be_last = self.endpoint.is_kept.load(Ordering::Relaxed);
        }
    }

    /// Whether the call may go on in the endpoint, whose lock it has: the number is what it was, or the connection was kept for the call.
    #[inline]
    pub(crate) fn holds(&mut self, claim: Claim, waiters: &mut Waiters) -> bool {
        claim.holds() || self.goes_on(waiters)
    }

    #[cold]
    fn goes_on(&mut self, waiters: &mut Waiters) -> bool {
        if self.kept.is_none()
            && let Some(cookie) = self.noted
            && self.endpoint.is_connection(cookie)
            && let Some(kept) = &mut *locked(&self.endpoint.kept)
        {
            kept.seen_by.push(this_thread());
            // One that comes late was forgotten. The connection is not ended under it.
            waiters.add(this_thread());
            self.kept = Some(Arc::clone(&kept.socket));
        }
        self.kept.is_some()
    }
}

impl Drop for Inside<'_> {
    /// A thread that is cancelled where it sleeps comes here, too.
    fn drop(&mut self) {
        if self.noted.is_some() {
            match self.way {
                Way::Receives => self.leave(&mut self.endpoint.lock_reader().inside),
                Way::Sends => self.leave(&mut self.endpoint.lock_writer().inside),
            }
        }
        if self.may_be_last {
            self.kept = None;
            self.sockets.end_left(self.endpoint);
        }
    }
}

impl Endpoint {
    /// Whether it has this connection still.
    fn is_connection(&self, cookie: u64) -> bool {
        self.cookie.load(Ordering::Relaxed) == cookie && self.stage() != Stage::Free
    }

    /// Keeps the socket of a number that is about to be closed, if calls wait at it. They go on by the library's number.
    pub(crate) fn keep(&self, socket: BorrowedFd<'_>) -> bool {
        {
            let mut reader = self.lock_reader();
            let mut writer = self.lock_writer();
            // One that closes does not wait, but in a handler.
            reader.inside.remove(this_thread());
            writer.inside.remove(this_thread());
            if reader.inside.is_empty() && writer.inside.is_empty() {
                return false;
            }
            // Without a descriptor for it the connection ends under them.
            let Ok(copy) = HighCopy::of(socket) else { return false };
            self.number.store(copy.as_fd().as_raw_fd(), Ordering::Relaxed);
            *locked(&self.kept) = Some(Kept::new(copy));
            self.is_kept.store(true, Ordering::Relaxed);
        }
        // Who is about to sleep on the number, which may be another connection's at once, does not; who sleeps on it, sleeps by the other from now on.
        self.ring_bells();
        wait_until_seen(|| self.is_seen_by_all());
        self.forget_who_has_not_seen();
        true
    }

    /// As [`Self::keep`], of a handler that has interrupted a call of its own thread.
    #[cold]
    pub(crate) fn keep_for_interrupted(&self, socket: BorrowedFd<'_>) {
        if let (false, Ok(copy)) = (is_held_here(&self.kept), HighCopy::of(socket))
            && put_off_end(self.index)
        {
            self.number.store(copy.as_fd().as_raw_fd(), Ordering::Relaxed);
            *locked(&self.kept) = Some(Kept::new(copy));
            self.is_kept.store(true, Ordering::Relaxed);
        }
    }

    fn is_seen_by_all(&self) -> bool {
        let reader = self.lock_reader();
        let writer = self.lock_writer();
        let kept = locked(&self.kept);
        let is_seen = |waiter: &usize| kept.as_ref().is_none_or(|kept| kept.seen_by.contains(waiter));
        reader.inside.0.iter().all(is_seen) && writer.inside.0.iter().all(is_seen)
    }

    fn forget_who_has_not_seen(&self) {
        let mut reader = self.lock_reader();
        let mut writer = self.lock_writer();
        if let Some(kept) = &*locked(&self.kept) {
            reader.inside.0.retain(|waiter| kept.seen_by.contains(waiter));
            writer.inside.0.retain(|waiter| kept.seen_by.contains(waiter));
        }
    }

    /// The socket that was kept, once no call waits any more.
    fn take_kept(&self) -> Option<Arc<HighCopy>> {
        let reader = self.lock_reader();
        let writer = self.lock_writer();
        if !reader.inside.is_empty() || !writer.inside.is_empty() {
            return None;
        }
        let kept = locked(&self.kept).take();
        self.is_kept.store(false, Ordering::Relaxed);
        kept.map(|kept| kept.socket)
    }

    /// In a child of fork.
    pub(crate) fn drop_kept_of_parent(&self) {
        if self.is_kept.load(Ordering::Relaxed) {
            Kept::drop_of_parent(&self.kept);
        }
    }
}

impl Sockets {
    /// Ends a connection whose number a handler has closed, once the call that it had interrupted is left.
    pub fn end_put_off(&self) {
        if let Some(index) = take_put_off_end() {
            self.end_left(endpoint(index));
        }
    }

    /// Ends a connection whose number was closed while calls waited at it, if this was the last of them.
    #[cold]
    pub(crate) fn end_left(&self, endpoint: &Endpoint) {
        if let Some(kept) = endpoint.take_kept() {
            self.end_connection(endpoint, kept.as_fd());
        }
    }
}
