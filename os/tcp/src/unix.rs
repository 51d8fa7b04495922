//! Streams of `AF_UNIX`: which sockets the two ends are, and what of a stream cannot be had by another path.
//!
//! Such a socket has no address of its own that tells a connection from others: ends of one listener share its name, and those that connect have none. It
//! has an inode, by which the kernel lists it and its peer (`NETLINK_SOCK_DIAG`, without any right). So the two inodes stand for what two addresses are to TCP, in
//! the same type: an address of a prefix that nobody has, and no port. Inodes are used again; the cookies, which are not, are compared by whoever asks. There
//! are no counts of bytes (record 0083).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use beeline_tcp_sys as sys;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvFlags, ReturnFlags, SocketType, sockopt};

use crate::bytes::{Peeked, TakeError, retry};
use crate::ends::{NoOtherSocket, OtherSocket, cookie, netns_cookie};
use crate::sock_diag::{
    NETLINK_BYTES, NLM_F_REQUEST, NLMSG_ERROR, Question, SERIAL, SOCK_DIAG_BY_FAMILY, refusal,
};
use crate::state::State;
use crate::tuple::Tuple;

const AF_UNIX: u8 = 1;
const REQUEST_BYTES: usize = NETLINK_BYTES + 24;
/// Of `struct unix_diag_msg`; attributes follow it.
const HEAD_BYTES: usize = NETLINK_BYTES + 16;
const UDIAG_SHOW_PEER: u32 = 4;
const UDIAG_SHOW_UID: u32 = 0x40;
const UNIX_DIAG_PEER: u16 = 2;
const UNIX_DIAG_UID: u16 = 7;
/// Drawn at random among the prefixes that everybody may use for himself (RFC 4193); with port 0 no connection of TCP has it.
const PREFIX: [u16; 6] = [0xfd9a, 0x51c7, 0x0e5d, 0x7572, 0x6978, 0];
/// Bytes that are taken at a time.
const TAKEN_AT_ONCE: usize = 16 << 10;

/// A socket as the kernel lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListedUnix {
    state: State,
    inode: u32,
    cookie: u64,
    /// The inode of its peer; 0 before that is accepted, and where it has none.
    peer: u32,
    uid: u32,
}

/// Whether it is a stream of `AF_UNIX`, connected or not.
pub fn is_unix_stream(socket: impl AsFd) -> bool {
    let socket = socket.as_fd();
    sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(socket) == Ok(SocketType::STREAM)
}

/// The inode that an end of [`unix_tuple`] stands for; `None` for an address.
pub fn unix_inode(end: SocketAddr) -> Option<u32> {
    let IpAddr::V6(address) = end.ip() else { return None };
    let (segments, is_prefix) = (address.segments(), address.segments()[..6] == PREFIX);
    (is_prefix && end.port() == 0).then(|| u32::from(segments[6]) << 16 | u32::from(segments[7]))
}

fn end(inode: u32) -> SocketAddr {
    let [a, b, c, d, e, f] = PREFIX;
    SocketAddr::new(Ipv6Addr::new(a, b, c, d, e, f, (inode >> 16) as u16, inode as u16).into(), 0)
}

/// The two ends of a connected stream, by the kernel's word for which socket its peer is, and that it is of the same user. Ten system calls.
///
/// # Errors
/// [`NoOtherSocket::Elsewhere`] where the peer is another user's, whom no process of this one may speak for, or in another network namespace, or
/// nobody has accepted it yet; the others as [`crate::other_socket`] has them.
pub fn unix_tuple(socket: impl AsFd) -> Result<Tuple, NoOtherSocket> {
    let socket = socket.as_fd();
    let namespace = netns_cookie(socket).map_err(NoOtherSocket::System)?;
    let own_cookie = cookie(socket).map_err(NoOtherSocket::System)?;
    // The kernel's numbers of sockets have 32 bits.
    let inode = rustix::fs::fstat(socket).map_err(NoOtherSocket::System)?.st_ino as u32;
    let listed = ask(namespace, inode)?;
    if listed.cookie != own_cookie || listed.peer == 0 {
        return Err(NoOtherSocket::Elsewhere);
    }
    if listed.state != State::Established {
        return Err(NoOtherSocket::NotEstablished(listed.state));
    }
    if ask(namespace, listed.peer)?.uid != listed.uid {
        return Err(NoOtherSocket::Elsewhere);
    }
    Ok(Tuple { local: end(inode), remote: end(listed.peer) })
}

/// The socket that is at `tuple.local`, if the one at `tuple.remote` is its peer: whoever has it, and as far as the kernel lists it.
///
/// # Errors
/// As [`crate::established`].
pub fn unix_established(namespace_cookie: u64, tuple: Tuple) -> Result<OtherSocket, NoOtherSocket> {
    let ends = unix_inode(tuple.local).zip(unix_inode(tuple.remote));
    let (inode, peer) = ends.ok_or(NoOtherSocket::Elsewhere)?;
    let listed = ask(namespace_cookie, inode)?;
    if listed.peer != peer {
        return Err(NoOtherSocket::Elsewhere);
    }
    match listed.state {
        State::Established => Ok(OtherSocket { cookie: listed.cookie, uid: listed.uid, inode }),
        state => Err(NoOtherSocket::NotEstablished(state)),
    }
}

/// Whether every byte that the socket was ever given was taken at its other end, by whomever, also of calls that have not returned.
///
/// # Errors
/// What the kernel says.
pub fn unix_is_drained(socket: impl AsFd) -> Result<bool, Errno> {
    // Memory of what is sent and not taken, not bytes: of nothing it is none.
    Ok(sys::unacknowledged(socket)? == 0)
}

/// As [`crate::peek`]; and whether something comes with those bytes, or with the message behind them, that only the program's own call receives: descriptors
/// (`SCM_RIGHTS`), or the sender's credentials where the socket asks for them. None of it is made a descriptor of this process. The kernel may look one
/// message further than it gives bytes of, so which of the two it is cannot be told.
///
/// # Errors
/// As [`crate::peek`].
pub fn unix_peek(socket: impl AsFd, out: &mut [u8]) -> Result<(Peeked, bool), Errno> {
    if out.is_empty() {
        return Ok((Peeked::Nothing, false));
    }
    let socket = socket.as_fd();
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let peek = || {
        let mut nowhere = RecvAncillaryBuffer::default();
        let out = &mut [std::io::IoSliceMut::new(out)];
        rustix::net::recvmsg(socket, out, &mut nowhere, flags)
            .map(|received| (received.bytes, received.flags.contains(ReturnFlags::CTRUNC)))
    };
    match retry(peek) {
        Ok((0, _)) => Ok((Peeked::End, false)),
        Ok((bytes, has_more)) => Ok((Peeked::Bytes(bytes), has_more)),
        Err(Errno::AGAIN) => Ok((Peeked::Nothing, false)),
        Err(errno) => Err(errno),
    }
}

/// Takes exactly `bytes` bytes that were peeked at, and with which nothing came. The kernel copies them: it throws none away, as it does of TCP.
///
/// # Errors
/// [`TakeError`]: some had gone meanwhile.
pub fn unix_take(socket: impl AsFd, bytes: usize) -> Result<(), TakeError> {
    let socket = socket.as_fd();
    let (mut taken, mut nowhere) = (0, [0; TAKEN_AT_ONCE]);
    while taken < bytes {
        let most = (bytes - taken).min(TAKEN_AT_ONCE);
        match retry(|| rustix::net::recv(socket, &mut nowhere[..most], RecvFlags::DONTWAIT)) {
            Ok((_, 0)) | Err(Errno::AGAIN) => return Err(TakeError::Short { asked: bytes, taken }),
            Ok((_, more)) => taken += more,
            Err(errno) => return Err(TakeError::System(errno)),
        }
    }
    Ok(())
}

/// The socket with this inode in the network namespace, which has to be this thread's.
fn ask(namespace_cookie: u64, inode: u32) -> Result<ListedUnix, NoOtherSocket> {
    let question = Question::new().map_err(NoOtherSocket::System)?;
    if netns_cookie(&question).map_err(NoOtherSocket::System)? != namespace_cookie {
        return Err(NoOtherSocket::OtherNamespace);
    }
    let found = question.put_to(&request(inode), answer).map_err(NoOtherSocket::System)?;
    found.filter(|listed| listed.inode == inode).ok_or(NoOtherSocket::Elsewhere)
}

fn request(inode: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    bytes[8..12].copy_from_slice(&SERIAL.to_ne_bytes());
    bytes[16] = AF_UNIX;
    bytes[20..24].copy_from_slice(&u32::MAX.to_ne_bytes());
    bytes[24..28].copy_from_slice(&inode.to_ne_bytes());
    bytes[28..32].copy_from_slice(&(UDIAG_SHOW_PEER | UDIAG_SHOW_UID).to_ne_bytes());
    // Whatever cookie it has.
    bytes[32..40].fill(0xff);
    bytes
}

/// Reads the kernel's answer; `None` where it has no such socket.
fn answer(bytes: &[u8]) -> Result<Option<ListedUnix>, Errno> {
    let word = |at: usize| bytes.get(at..at + 4)?.first_chunk::<4>().map(|word| u32::from_ne_bytes(*word));
    let half = |at: usize| bytes.get(at..at + 2)?.first_chunk::<2>().map(|half| u16::from_ne_bytes(*half));
    let (Some(kind), Some(serial)) = (half(4), word(8)) else { return Err(Errno::PROTO) };
    if serial != SERIAL {
        return Err(Errno::PROTO);
    }
    if kind == NLMSG_ERROR {
        return refusal(word(NETLINK_BYTES)).map(|()| None);
    }
    let (Some(inode), Some(low), Some(high)) = (word(20), word(24), word(28)) else {
        return Err(Errno::PROTO);
    };
    if kind != SOCK_DIAG_BY_FAMILY || bytes[16] != AF_UNIX {
        return Err(Errno::PROTO);
    }
    let state = State::from_number(bytes[18]).ok_or(Errno::PROTO)?;
    let (mut peer, mut uid) = (0, None);
    let mut at = HEAD_BYTES;
    while let (Some(length), Some(name)) = (half(at), half(at + 2)) {
        match name {
            UNIX_DIAG_PEER => peer = word(at + 4).ok_or(Errno::PROTO)?,
            UNIX_DIAG_UID => uid = word(at + 4),
            _ => {}
        }
        // A length that is none would be looked at for ever.
        at += usize::from(length).next_multiple_of(4).max(4);
    }
    // Linux before 5.3 does not tell whose it is.
    let uid = uid.ok_or(Errno::OPNOTSUPP)?;
    Ok(Some(ListedUnix { state, inode, cookie: u64::from(high) << 32 | u64::from(low), peer, uid }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inode_is_read_from_the_end_that_stands_for_it_and_from_no_address() {
        for inode in [1, 0xffff, 0x1_0000, 0x1234_5678, u32::MAX] {
            assert_eq!(unix_inode(end(inode)), Some(inode));
        }
        for address in ["[::1]:0", "10.0.0.1:0", "[fd9a:51c7:e5d:7572:6978::1]:80", "[fd9a::1]:0"] {
            assert_eq!(unix_inode(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn no_answer_makes_it_panic_and_a_part_of_the_head_is_none() {
        let mut good = vec![0; HEAD_BYTES + 16];
        good[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        good[8..12].copy_from_slice(&SERIAL.to_ne_bytes());
        (good[16], good[18]) = (AF_UNIX, State::Established as u8);
        good[20..24].copy_from_slice(&7_u32.to_ne_bytes());
        good[24..28].copy_from_slice(&1_u32.to_ne_bytes());
        for (at, name, value) in [(HEAD_BYTES, UNIX_DIAG_PEER, 9_u32), (HEAD_BYTES + 8, UNIX_DIAG_UID, 3)] {
            good[at..at + 2].copy_from_slice(&8_u16.to_ne_bytes());
            good[at + 2..at + 4].copy_from_slice(&name.to_ne_bytes());
            good[at + 4..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let listed = ListedUnix { state: State::Established, inode: 7, cookie: 1, peer: 9, uid: 3 };
        assert_eq!(answer(&good), Ok(Some(listed)));
        for bytes in 0..good.len() {
            assert_ne!(answer(&good[..bytes]), Ok(Some(listed)), "{bytes} bytes");
            for value in 0..=255 {
                let mut spoiled = good.clone();
                spoiled[bytes] = value;
                let _ = answer(&spoiled);
            }
        }
        good[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        good[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        assert_eq!(answer(&good), Ok(None));
    }
}
