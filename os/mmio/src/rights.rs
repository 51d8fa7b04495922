//! Sockets that take no descriptors.
//!
//! A peer may send descriptors over any Unix socket, asked for or not. Who then reads the socket, or closes it, also
//! closes them, and closing some waits as long as their sender likes (`SO_LINGER` of a TCP connection that nobody
//! reads). A socket that a loop reads must therefore refuse them where they are sent.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// Makes every attempt to send descriptors to this end of a Unix socket pair fail. To be called before the other end is
/// given away.
///
/// # Errors
/// `NOPROTOOPT` before Linux 6.16, which cannot do it.
pub fn refuse(socket: impl AsFd) -> Result<(), Errno> {
    /// `SO_PASSRIGHTS` of Linux's `asm-generic/socket.h`.
    const SO_PASSRIGHTS: libc::c_int = 83;
    let off: libc::c_int = 0;
    let bytes = size_of::<libc::c_int>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is borrowed for the call, and the kernel reads `bytes` bytes of `off`, which lives through
    // it. The option changes what the socket accepts, no memory.
    let done =
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const off).cast(), bytes) };
    if done == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use std::io::IoSlice;
    use std::mem::MaybeUninit;

    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
        sendmsg, socketpair,
    };

    use super::*;

    #[test]
    fn descriptors_are_refused_and_bytes_are_not() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let send = |descriptors: &[std::os::fd::BorrowedFd<'_>]| {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(descriptors.is_empty() || control.push(SendAncillaryMessage::ScmRights(descriptors)));
            sendmsg(&theirs, &[IoSlice::new(&[1])], &mut control, SendFlags::DONTWAIT)
        };
        match refuse(&ours) {
            Ok(()) => assert_eq!(send(&[theirs.as_fd()]), Err(Errno::PERM)),
            Err(error) => assert_eq!(error, Errno::NOPROTOOPT, "a kernel that cannot do it says so"),
        }
        assert_eq!(send(&[]), Ok(1));
    }
}
