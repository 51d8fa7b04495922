//! One connected socket, shared by whoever talks over it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_mmio::ThisProcess;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::descriptor::{Descriptor, Held, Watching};
use crate::numbers::Purpose;
use crate::outbox::Outbox;
use crate::socket;
use crate::wire::Header;

/// Which end of a connection a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end of who offers the name.
    Owner,
    /// The end of who connected.
    Client,
}

/// A connected socket and whether this side has closed it. The descriptor stays open until the last owner drops it,
/// so that its number cannot be reused while somebody still looks at it.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: Descriptor,
    end: End,
    opened_by: ThisProcess,
    closed_here: AtomicBool,
    outbox: Outbox,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd, end: End) -> Self {
        Channel {
            socket: Descriptor::new(socket, Purpose::Connection),
            end,
            opened_by: ThisProcess::get(),
            closed_here: AtomicBool::new(false),
            outbox: Outbox::default(),
        }
    }

    pub(crate) fn fd(&self) -> Held {
        self.socket.hold()
    }

    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// The socket, unless other code of this process closed or replaced its descriptor: then `BADF`. For every use that says
    /// or hears something.
    pub(crate) fn live(&self) -> Result<Held, Errno> {
        self.socket.check()
    }

    /// Gives the socket a number of at least `lowest`, also where the domain's thread watches it.
    pub(crate) fn move_above(&self, lowest: RawFd, epoll: Option<&Descriptor>) -> Result<(), Errno> {
        self.outbox.relocate(|token, flags| {
            let watching = epoll.map(|by| Watching { by, token, flags });
            self.socket.move_above(lowest, watching.as_ref())?;
            Ok(self.socket.hold())
        })
    }

    /// Sends a packet whose order with answers and notifications does not matter.
    pub(crate) fn send(&self, header: Header, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        socket::send(self.live()?.as_fd(), header, payload, fds)
    }

    /// What has an order. Locked while it is used, so not for a forked child.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Sends a wake-up of this branch as soon as there is room for it.
    pub(crate) fn owe_wake(&self, branch: u32) {
        if let Ok(socket) = self.live() {
            self.outbox.owe_wake(socket.as_fd(), branch);
        }
    }

    /// Whether this process made it; a forked child only has a copy.
    pub(crate) fn is_own(&self) -> bool {
        self.opened_by.is_this()
    }

    /// The process that made it.
    pub(crate) fn opened_by(&self) -> u32 {
        self.opened_by.pid()
    }

    /// Says goodbye and ends the connection; the domain's thread sees the hang-up and does the rest. In a forked child
    /// it does nothing: the connection is the parent's.
    pub(crate) fn close(&self) {
        if !self.is_own() {
            return;
        }
        // Relaxed: who reads it has seen the hang-up that follows here, through the kernel.
        if self.closed_here.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Ok(socket) = self.live() {
            self.outbox.say_goodbye(socket.as_fd());
            socket::shut_down(socket);
        }
    }

    pub(crate) fn is_closed_here(&self) -> bool {
        self.closed_here.load(Ordering::Relaxed)
    }

    /// Whether an end of the connection is closed; what was sent before may still be unread. One system call.
    pub(crate) fn is_hung_up(&self) -> bool {
        let Ok(socket) = self.live() else { return true };
        let mut fds = [PollFd::new(&socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Any event here is RDHUP, HUP or ERR.
        matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1))
    }
}
