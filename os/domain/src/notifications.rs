//! A client's handle on what the owner of its connection tells it unasked.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::channel::Channel;
use crate::error::MisuseError;
use crate::mailbox::Mailbox;
use crate::notices::Taken;
use crate::notify::{Notification, NotificationsEnded, forked};
use crate::shared::Shared;
use crate::{Connection, Event};

/// What the owner of one connection tells it, in order with the owner's answers. Clones take from the same queue. The
/// descriptor is readable while there is something to take, and at the end.
///
/// It does not keep the connection: when that is dropped, this ends with [`NotificationsEnded::ClosedHere`].
#[derive(Clone, Debug)]
pub struct Notifications {
    shared: Arc<Shared>,
    channel: Arc<Channel>,
    mailbox: Arc<Mailbox>,
    event: Event,
}

impl Connection {
    /// What the owner tells this connection unasked. It collects from the start, whether this is called or not; an owner
    /// whose notifications nobody takes is told that there is no room.
    ///
    /// # Errors
    /// The process is out of descriptors, or was forked from the one that connected.
    pub fn notifications(&self) -> io::Result<Notifications> {
        if !self.channel.is_own() {
            return Err(io::Error::other(forked(&self.channel)));
        }
        Ok(Notifications {
            shared: Arc::clone(&self.shared),
            channel: Arc::clone(&self.channel),
            mailbox: Arc::clone(&self.mailbox),
            event: self.mailbox.notices.event()?,
        })
    }
}

impl Notifications {
    /// Takes the next one; `None` when there is none now. Never waits.
    ///
    /// # Errors
    /// There is none and none will come; or this process was forked from the one that connected.
    pub fn try_next(&self) -> Result<Option<Notification>, NotificationsEnded> {
        self.check_process()?;
        self.mailbox.notices.take().map(|taken| taken.map(|taken| self.tell(taken)))
    }

    /// Takes the next one, and waits for it for at most `timeout`; `None` when that is over.
    ///
    /// # Errors
    /// As [`Notifications::try_next`]; or this is the domain's thread, which must not wait.
    pub fn next_within(&self, timeout: Duration) -> Result<Option<Notification>, NotificationsEnded> {
        self.check_process()?;
        if self.shared.reactor().is_this_thread() {
            return Err(MisuseError::OnDomainThread.into());
        }
        // A timeout beyond the clock's range is no timeout.
        let deadline = Instant::now().checked_add(timeout);
        let taken = self.mailbox.notices.wait(deadline, || false)?;
        Ok(taken.map(|taken| self.tell(taken)))
    }

    /// As [`Notifications::next_within`], for the thread of callbacks: waits until `gives_up`.
    pub(crate) fn next_unless(
        &self,
        gives_up: impl Fn() -> bool,
    ) -> Result<Option<Notification>, NotificationsEnded> {
        let taken = self.mailbox.notices.wait(None, gives_up)?;
        Ok(taken.map(|taken| self.tell(taken)))
    }

    /// Does `change` and has [`Notifications::next_unless`] ask again.
    pub(crate) fn interrupt(&self, change: impl FnOnce()) {
        self.mailbox.notices.interrupt(change);
    }

    pub(crate) fn is_own(&self) -> bool {
        self.channel.is_own()
    }

    fn check_process(&self) -> Result<(), MisuseError> {
        // Before any lock: a thread that the child does not have may hold it.
        if self.channel.is_own() { Ok(()) } else { Err(forked(&self.channel)) }
    }

    fn tell(&self, taken: Taken) -> Notification {
        if let Some(count) = taken.tell {
            // Without the socket there is no owner to tell.
            if let Ok(socket) = self.channel.live() {
                self.channel.outbox().tell_taken(socket.as_fd(), count);
            }
        }
        taken.notification
    }
}

impl AsFd for Notifications {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl AsRawFd for Notifications {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}
