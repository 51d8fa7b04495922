//! A receive that waits while another thread closes its number: the kernel has the socket until the call has returned, and so does the engine, by a copy.
//!
//! As calls on connections do it (`inside.rs`): a thread that waits is noted, one that a handler has had jump out of its call stays noted, and who closes the number
//! waits until each has seen that, and forgets those that do not.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beeline_domain::HighCopy;
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
    pub(crate) fn kept(&self) -> Option<Arc<HighCopy>> {
        let mut reader = self.own.lock_reader();
        self.noted.filter(|cookie| *cookie == self.own.cookie())?;
        let mut kept = locked(&self.own.kept);
        let kept = kept.as_mut()?;
        kept.seen_by.push(this_thread());
        // One that comes late was forgotten. The socket is not another's under it.
        reader.inside.add(this_thread());
        Some(Arc::clone(&kept.socket))
    }
}

impl Drop for Inside<'_> {
    /// Of a thread that is cancelled, too. No lock is held.
    fn drop(&mut self) {
        // A number that was closed by a call that nobody saw has ended the socket, and its list.
        if self.noted.is_some_and(|cookie| cookie == self.own.cookie()) {
            {
                let mut reader = self.own.lock_reader();
                reader.inside.remove(this_thread());
                if self.own.is_kept() {
                    Kept::leave(&self.own.kept);
                }
            }
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
            let Ok(copy) = HighCopy::of(socket) else { return false };
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

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::{AsFd, AsRawFd};

    use beeline_domain::DomainConfig;
    use beeline_socket_rules::Rules;

    use super::*;
    use crate::datagrams::socket::Known;

    #[test]
    fn socket_is_kept_for_a_thread_that_sees_late_that_its_number_was_closed() {
        let domain = DomainConfig { root: None, name: "d".to_owned() };
        let process = Process::new(Rules::default().for_this_program(), domain);
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let own = table::take().unwrap();
        let number = socket.as_raw_fd();
        own.begin(&Known { number, cookie: 7, peer: None, is_nonblocking: false, is_v6: false });
        let (noted, has_noted) = std::sync::mpsc::channel();
        let (forgotten, are_forgotten) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let prompt = scope.spawn(|| {
                let are_forgotten = are_forgotten;
                let mut inside = Inside::new(own, &process);
                inside.enter(&mut own.lock_reader().inside);
                noted.send(()).unwrap();
                while inside.kept().is_none() {
                    std::thread::yield_now();
                }
                are_forgotten.recv().unwrap();
            });
            has_noted.recv().unwrap();
            let mut late = Inside::new(own, &process);
            late.enter(&mut own.lock_reader().inside);
            scope.spawn(|| assert!(own.keep(socket.as_fd(), &process))).join().unwrap();
            assert!(late.kept().is_some());
            forgotten.send(()).unwrap();
            prompt.join().unwrap();
            assert!(own.is_kept(), "the late one has it still");
            let goes_on = locked(&own.kept).as_ref().unwrap().seen_by.to_vec();
            assert_eq!(goes_on, [this_thread()], "a child of the other one has no call to go on by it");
            drop(late);
            assert!(!own.is_kept());
        });
    }
}
