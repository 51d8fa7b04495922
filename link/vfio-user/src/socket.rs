//! A stream socket that carries messages and descriptors. Whole messages only: what is shorter or longer ends the connection,
//! because where the next one begins would be a guess.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::message::{HEADER_BYTES, Header, MAX_FDS, Malformed};

/// Why no further message comes.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The other side has closed its end, or the caller was told to stop.
    #[error("the other side has closed the connection")]
    Closed,
    #[error("the connection is broken: {0}")]
    Broken(#[from] Errno),
    #[error("the other side does not speak vfio-user: {0}")]
    Malformed(#[from] Malformed),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    /// Readable when waits are to end.
    stop: Option<Arc<OwnedFd>>,
}

impl Socket {
    /// A connection whose waits end when `stop` is readable.
    pub(crate) fn new(fd: OwnedFd, stop: Option<Arc<OwnedFd>>) -> Self {
        Socket { fd, stop }
    }

    /// Waits for a message; its header, its body, and what came with it.
    ///
    /// # Errors
    /// [`Ended`]: there is none, and none will come.
    pub(crate) fn receive(&self) -> Result<(Header, Vec<u8>, Vec<OwnedFd>), Ended> {
        let (mut head, mut fds) = ([0; HEADER_BYTES], Vec::new());
        self.fill(&mut head, &mut fds)?;
        let header = Header::decode(&head);
        let mut body = vec![0; header.body_bytes()?];
        self.fill(&mut body, &mut fds)?;
        Ok((header, body, fds))
    }

    /// Takes as many bytes as `bytes` has, and the descriptors that come with them.
    fn fill(&self, bytes: &mut [u8], fds: &mut Vec<OwnedFd>) -> Result<(), Ended> {
        let mut filled = 0;
        while filled < bytes.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let parts = &mut [IoSliceMut::new(&mut bytes[filled..])];
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let taken = rustix::net::recvmsg(&self.fd, parts, &mut control, flags);
            for item in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = item {
                    fds.extend(rights);
                }
            }
            match taken {
                Ok(message) if message.flags.contains(ReturnFlags::CTRUNC) || fds.len() > MAX_FDS => {
                    return Err(Malformed::Descriptors.into());
                }
                Ok(message) if message.bytes == 0 => return Err(Ended::Closed),
                Ok(message) => filled += message.bytes,
                Err(Errno::AGAIN) => wait(self.fd.as_fd(), PollFlags::IN, self.stop.as_deref())?,
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Err(Ended::Closed),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether something can be received, or the end is there.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn has_input(&self) -> Result<bool, Ended> {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        match poll(&mut fds, Some(&Timespec::default())) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends a whole message.
    ///
    /// # Errors
    /// [`Ended`]: the other side takes none.
    pub(crate) fn send(&self, message: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Ended> {
        let mut sent = 0;
        while sent < message.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            // With the first byte, so that they are there when the header is.
            if sent == 0 && !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
                return Err(Malformed::Descriptors.into());
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::sendmsg(&self.fd, &[IoSlice::new(&message[sent..])], &mut control, flags) {
                Ok(bytes) => sent += bytes,
                Err(Errno::AGAIN) => wait(self.fd.as_fd(), PollFlags::OUT, self.stop.as_deref())?,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Ended::Closed),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

/// Waits until `fd` is ready; the end if `stop` is readable before.
pub(crate) fn wait(fd: BorrowedFd<'_>, flags: PollFlags, stop: Option<&OwnedFd>) -> Result<(), Ended> {
    let mut fds = vec![PollFd::from_borrowed_fd(fd, flags)];
    fds.extend(stop.map(|stop| PollFd::new(stop, PollFlags::IN)));
    loop {
        match poll(&mut fds, None) {
            Ok(_) if fds.get(1).is_some_and(|stop| !stop.revents().is_empty()) => return Err(Ended::Closed),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
