//! How a host wakes a NIC process that sleeps: a byte over a socket pair.
//!
//! Whoever is given a descriptor shares the flags of the open file behind it, `O_NONBLOCK` among them, and can fill or
//! empty what it leads to. So neither side relies on a flag: each of its calls says itself that it does not wait, and a
//! socket is the one pollable thing whose calls all keep that promise. (Writing an eventfd cannot say so, and a pipe's
//! writer can be kept waiting for the lock that its reader holds.) Descriptors that a peer might send along would have to
//! be closed, which may wait, so the NIC's end refuses them and the host's takes nothing at all.
//!
//! It carries no meaning: whoever is woken looks at everything. What a host does to its end, it does to its own
//! wake-ups.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown, socketpair,
};

/// Wake-ups taken in one look; there are never more unless a host means harm.
const MOST_AT_ONCE: usize = 512;

/// The NIC process's end.
#[derive(Debug)]
pub(crate) struct EventReceiver {
    socket: OwnedFd,
    /// The host ended its side, or sends what is no wake-up: it is not listened to any more.
    is_over: bool,
}

impl EventReceiver {
    /// A fresh event: our end, and the host's.
    pub(crate) fn pair() -> Result<(Self, OwnedFd), Errno> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        if let Err(error) = beeline_mmio::rights::refuse(&ours) {
            tracing::debug!(
                "an event's socket takes descriptors ({error}): closing those of a hostile host may wait"
            );
        }
        shutdown(&ours, Shutdown::Write)?;
        Ok((EventReceiver { socket: ours, is_over: false }, theirs))
    }

    /// What to poll, as long as a wake-up may come.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_over).then(|| self.socket.as_fd())
    }

    /// Takes the wake-ups that made the descriptor readable. Never waits.
    pub(crate) fn clear(&mut self) {
        let mut bytes = [0; MOST_AT_ONCE];
        match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, 1..)) | Err(Errno::INTR) => {}
            // The end; or nothing although it was readable, which would keep the loop from ever sleeping.
            Ok(_) | Err(_) => self.is_over = true,
        }
    }
}

/// The host's end.
#[derive(Debug)]
pub(crate) struct EventSender {
    socket: OwnedFd,
}

impl EventSender {
    /// Takes over what a NIC process passed, after checking that signalling it cannot wait and that closing it closes
    /// nothing else; otherwise what is wrong with it.
    pub(crate) fn from_fd(socket: OwnedFd) -> Result<Self, String> {
        let failed = |error: Errno| format!("an event that is no socket ({error})");
        let (domain, kind) = (socket_domain(&socket).map_err(failed)?, socket_type(&socket).map_err(failed)?);
        if (domain, kind) != (AddressFamily::UNIX, SocketType::STREAM) {
            return Err("an event that is another kind of socket".into());
        }
        // From here on nobody can put anything into it.
        shutdown(&socket, Shutdown::Read)
            .map_err(|error| format!("an event without another end ({error})"))?;
        match rustix::io::ioctl_fionread(&socket) {
            Ok(0) => Ok(EventSender { socket }),
            Ok(bytes) => Err(format!("an event with {bytes} bytes in it")),
            Err(error) => Err(format!("an event that cannot be looked into ({error})")),
        }
    }

    /// Wakes the NIC process. Never waits, and never fails in a way that matters: when there is no room it was woken
    /// often enough, and when it is gone, other evidence says so.
    pub(crate) fn signal(&self) {
        let _ = send(&self.socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    use super::*;

    fn is_readable(event: &EventReceiver) -> bool {
        let now = Timespec::try_from(Duration::ZERO).unwrap();
        let mut sources = [PollFd::from_borrowed_fd(event.descriptor().unwrap(), PollFlags::IN)];
        poll(&mut sources, Some(&now)).unwrap() == 1
    }

    /// A test that waits for ever would not fail, so it is left to another thread.
    fn within_a_minute(does: impl FnOnce() + Send + 'static) {
        let (done, watch) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            does();
            done.send(()).unwrap();
        });
        watch.recv_timeout(Duration::from_secs(60)).expect("it waits or has failed");
    }

    fn make_blocking(fd: impl AsFd) {
        fcntl_setfl(&fd, fcntl_getfl(&fd).unwrap() - OFlags::NONBLOCK).unwrap();
    }

    #[test]
    fn a_signal_is_seen_once() {
        let (mut receiver, theirs) = EventReceiver::pair().unwrap();
        let sender = EventSender::from_fd(theirs).unwrap();
        for _ in 0..3 {
            assert!(!is_readable(&receiver));
            sender.signal();
            sender.signal();
            assert!(is_readable(&receiver));
            receiver.clear();
        }
    }

    #[test]
    fn whatever_a_host_does_to_its_end_the_nic_does_not_wait() {
        within_a_minute(|| {
            let (mut receiver, theirs) = EventReceiver::pair().unwrap();
            make_blocking(&theirs);
            make_blocking(&receiver.socket);
            while send(&theirs, &[7; 4096], SendFlags::DONTWAIT).is_ok() {}
            while is_readable(&receiver) {
                receiver.clear();
            }
            receiver.clear();
            assert!(receiver.descriptor().is_none(), "readable without anything to read");
        });
        within_a_minute(|| {
            let (mut receiver, theirs) = EventReceiver::pair().unwrap();
            shutdown(&theirs, Shutdown::Both).unwrap();
            assert!(is_readable(&receiver));
            receiver.clear();
            assert!(receiver.descriptor().is_none(), "it would be readable for ever");
        });
    }

    #[test]
    fn whatever_a_nic_does_to_its_end_the_host_does_not_wait() {
        within_a_minute(|| {
            let (receiver, theirs) = EventReceiver::pair().unwrap();
            make_blocking(&theirs);
            let sender = EventSender::from_fd(theirs).unwrap();
            // Far more than there is room for, and nobody takes any.
            for _ in 0..10_000 {
                sender.signal();
            }
            assert!(is_readable(&receiver));
            drop(receiver);
            sender.signal();
        });
    }

    #[test]
    fn only_an_empty_unix_stream_is_an_event() {
        let pair = |kind| socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        let refused = |fd: OwnedFd| EventSender::from_fd(fd).unwrap_err();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(refused(reader).contains("no socket") && refused(writer).contains("no socket"));
        assert!(refused(eventfd(0, EventfdFlags::CLOEXEC).unwrap()).contains("no socket"));
        let (_other, end) = pair(SocketType::DGRAM);
        assert!(refused(end).contains("another kind"));
        let (other, end) = pair(SocketType::STREAM);
        send(&other, &[1, 2], SendFlags::DONTWAIT).unwrap();
        assert!(refused(end).contains("2 bytes"));
        let (other, end) = pair(SocketType::STREAM);
        let sender = EventSender::from_fd(end).unwrap();
        assert_eq!(send(&other, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL), Err(Errno::PIPE));
        drop(sender);
    }
}
