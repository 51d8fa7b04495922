//! Bytes in and out of a socket, by calls that never wait, and its reset.

use std::os::fd::AsFd;

use beeline_tcp_sys as sys;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, sockopt};

/// What a socket shows without giving it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peeked {
    /// So many bytes, at least one.
    Bytes(usize),
    /// No byte has come that was not taken, and the other side may still send.
    Nothing,
    /// No byte is left, and none comes: the other side has shut down, this one has (`SHUT_RD`), or an error was told before.
    End,
}

/// Why bytes that were peeked at were not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeError {
    /// Somebody else who holds the socket has taken or thrown away some.
    #[error("of {asked} bytes that were to be taken the socket had {taken}")]
    Short { asked: usize, taken: usize },
    #[error("cannot take bytes from the socket: {0}")]
    System(Errno),
}

/// Copies what has come to the beginning of `out`, and leaves it in the socket. An empty `out` shows nothing.
///
/// # Errors
/// What the socket failed with (`CONNRESET`, `TIMEDOUT`), behind all bytes that came before. The kernel tells it once, to whoever receives, peeks, sends or
/// asks for `SO_ERROR` first; after that it is [`Peeked::End`]. So who peeks for a program has to keep the error for it.
pub fn peek(socket: impl AsFd, out: &mut [u8]) -> Result<Peeked, Errno> {
    if out.is_empty() {
        return Ok(Peeked::Nothing);
    }
    let socket = socket.as_fd();
    match retry(|| rustix::net::recv(socket, &mut *out, RecvFlags::PEEK | RecvFlags::DONTWAIT)) {
        Ok((_, 0)) => Ok(Peeked::End),
        Ok((_, bytes)) => Ok(Peeked::Bytes(bytes)),
        Err(Errno::AGAIN) => Ok(Peeked::Nothing),
        Err(errno) => Err(errno),
    }
}

/// Takes exactly `bytes` bytes that were peeked at, without a copy of them.
///
/// # Errors
/// [`TakeError`]: some had gone meanwhile. Not those that a reset left in the socket.
pub fn take(socket: impl AsFd, bytes: usize) -> Result<(), TakeError> {
    let socket = socket.as_fd();
    let mut taken = 0;
    // Once, but for more than 2 GiB, and where urgent data had been between the bytes.
    while taken < bytes {
        match retry(|| sys::discard(socket, bytes - taken)) {
            Ok(0) | Err(Errno::AGAIN) => return Err(TakeError::Short { asked: bytes, taken }),
            Ok(more) => taken += more,
            Err(errno) => return Err(TakeError::System(errno)),
        }
    }
    Ok(())
}

/// Gives the socket as many of the first of `bytes` as it has room for now, and returns how many. No signal is raised.
///
/// # Errors
/// What the socket fails with: `PIPE` where it was shut down for sending, or was reset before; `CONNRESET`, which the kernel tells once.
pub fn send(socket: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let socket = socket.as_fd();
    match retry(|| rustix::net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)) {
        Err(Errno::AGAIN) => Ok(0),
        result => result,
    }
}

/// Bytes that the socket takes at once, in a few pieces, whatever the other side does. It takes more: the kernel counts memory, and has more of that for bytes
/// than they are long, so this is half of what is not in use.
///
/// # Errors
/// What the kernel says.
pub fn room(socket: impl AsFd) -> Result<u64, Errno> {
    let socket = socket.as_fd();
    let most = rustix::net::sockopt::socket_send_buffer_size(socket)? as u64;
    let in_use = 2 * u64::from(sys::unacknowledged(socket)?);
    Ok(most.saturating_sub(in_use) / 2)
}

/// Ends the connection at once (`connect` to `AF_UNSPEC`), for everybody who holds the socket. The other side is sent a RST, and unread and
/// unsent bytes of this side are thrown away. Whoever receives from the socket next, by any descriptor, fails with `CONNRESET`, and after that
/// with `NOTCONN`. A thread that sleeps in a call on the socket wakes; recent kernels give it `PIPE`, also in a receive, where a RST of the
/// other side would give it `CONNRESET`.
///
/// The descriptor stays open, and the kernel lets whoever holds it connect it anew. A stream of `AF_UNIX` cannot be reset: both its directions are ended
/// (`shutdown`), which the other side sees as an end behind the bytes that came.
///
/// # Errors
/// What the kernel says. `BUSY` from some kernels (6.4 to 6.6) while a thread sleeps in a call on the socket: nothing has changed then.
pub fn reset(socket: impl AsFd) -> Result<(), Errno> {
    let socket = socket.as_fd();
    match retry(|| rustix::net::connect_unspec(socket)) {
        Err(Errno::INVAL) if sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX) => {
            rustix::net::shutdown(socket, rustix::net::Shutdown::Both)
        }
        result => result,
    }
}

pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_call_is_made_again() {
        let mut answers = [Err(Errno::INTR), Err(Errno::INTR), Ok(5), Err(Errno::AGAIN)].into_iter();
        assert_eq!(retry(|| answers.next().unwrap_or(Ok(0))), Ok(5));
        assert_eq!(retry(|| answers.next().unwrap_or(Ok(0))), Err(Errno::AGAIN));
    }
}
