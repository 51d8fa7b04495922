//! The end of the process at the other end, with bytes in its windows that it never received.
//!
//! The kernel ends its sockets as if it had received everything: nothing of the window is in them. A program that receives is told of the reset behind the last
//! byte; one that only waits for an error or a hang-up would wait for ever. So the thread in the background, which a pidfd wakes, has the kernel reset
//! such a connection: a byte for a socket that nobody has any more is answered so. It is an urgent one: where a child of that process holds the socket, it is not
//! among the bytes that the child receives.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use beeline_domain::{HighCopy, Peer, PeerId};
use beeline_ledger::Path;
use beeline_tcp::State;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::endpoint::Endpoint;

/// Something that is readable when the process has ended; none where the kernel has no such thing, or it has ended already.
pub(crate) fn end_of(peer: &Peer) -> Option<HighCopy> {
    let pid = Pid::from_raw(peer.pid().cast_signed())?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // As long as it lives, nobody else has its number.
    peer.is_alive().then(|| HighCopy::instead_of(pidfd))
}

impl Endpoint {
    /// Has the kernel reset it, if this process has died and left bytes of the window unreceived.
    pub(crate) fn reset_behind(&self, dead: PeerId) {
        if self.is_left_unread_by(dead)
            && let Ok(socket) = self.own_socket(self.cookie.load(Ordering::Relaxed))
            && let Err(error) = provoke_reset(socket.as_fd())
        {
            tracing::debug!(%error, "a connection of a process that died is not reset");
        }
    }

    /// A second descriptor of its socket, if its number stands for the one with this cookie still; it may be another descriptor's meanwhile.
    pub(crate) fn own_socket(&self, cookie: u64) -> Result<OwnedFd, Errno> {
        let socket = beeline_tcp::second_of(self.number.load(Ordering::Relaxed))?;
        if beeline_tcp::cookie(&socket)? != cookie {
            return Err(Errno::BADF);
        }
        Ok(socket)
    }

    fn is_left_unread_by(&self, dead: PeerId) -> bool {
        let writer = self.lock_writer();
        let is_of_dead = writer
            .slot
            .as_ref()
            .and_then(|agreed| agreed.peer.as_ref())
            .is_some_and(|peer| peer.id() == dead);
        let is_unread =
            |stream: &crate::endpoint::Out| stream.path() == Path::Window && stream.untaken_bytes() > 0;
        is_of_dead && writer.stream.as_ref().is_some_and(is_unread)
    }
}

fn provoke_reset(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    // Otherwise a child of that process has the socket, and may go on.
    if beeline_tcp::state(socket).is_ok_and(|state| state == State::CloseWait) {
        let flags = SendFlags::OOB | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(socket, &[0], flags)?;
    }
    Ok(())
}
