//! Which socket of the kernel a descriptor is, and which one is at the other end of its connection.

use std::os::fd::AsFd;

use beeline_tcp_sys::{self as sys, BytesOption};
use rustix::io::Errno;
use rustix::net::{SocketType, ipproto, sockopt};

use crate::counts::{CountError, state};
use crate::find::is_supported;
use crate::listed::Listed;
use crate::sock_diag::Question;
use crate::state::State;
use crate::tuple::{Tuple, TupleError};

/// The socket at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSocket {
    /// What [`cookie`] says there, also before it is accepted.
    pub cookie: u64,
    /// The user who made or accepted the socket; the superuser before.
    pub uid: u32,
    /// 0 before it is accepted.
    pub inode: u32,
}

/// Why the socket at the other end of a connection is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOtherSocket {
    #[error(transparent)]
    NoTuple(#[from] TupleError),
    /// This thread can ask for sockets of its own network namespace alone, where somebody else may have the same addresses.
    #[error("the connection belongs to another network namespace than this thread")]
    OtherNamespace,
    /// No connection of this network namespace has the addresses mirrored.
    #[error(
        "the other end of the connection is not in this network namespace, or its addresses are translated on the way"
    )]
    Elsewhere,
    /// One of the ends is in this state. What was found may be another connection's, before or after this one.
    #[error("an end of the connection is not established: {0:?}")]
    NotEstablished(State),
    #[error(transparent)]
    NoState(CountError),
    /// Netlink is forbidden, or the kernel has no such list.
    #[error("cannot ask the kernel for the other end of a connection: {0}")]
    System(Errno),
}

/// The number of the socket in this kernel, which no other socket ever has (`SO_COOKIE`).
///
/// # Errors
/// What the kernel says; `NOPROTOOPT` before Linux 4.12.
pub fn cookie(socket: impl AsFd) -> Result<u64, Errno> {
    sockopt::socket_cookie(socket)
}

/// The number of the socket's network namespace in this kernel, which no other namespace ever has (`SO_NETNS_COOKIE`).
///
/// # Errors
/// What the kernel says; `NOPROTOOPT` before Linux 5.14.
pub fn netns_cookie(socket: impl AsFd) -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    match sys::get(socket, BytesOption::NetnsCookie, &mut bytes)? {
        8 => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(Errno::NOPROTOOPT),
    }
}

/// Whether the kernel carries the socket's bytes by TCP and nothing else. Multipath TCP has counts of its own.
pub fn is_tcp(socket: impl AsFd) -> bool {
    let socket = socket.as_fd();
    sockopt::socket_type(socket) == Ok(SocketType::STREAM)
        && sockopt::socket_protocol(socket) == Ok(Some(ipproto::TCP))
}

/// Finds the socket at the other end of a connection within this network namespace. Of a socket that is connected to itself it is that one.
///
/// Nine system calls, among them those that make and close a netlink socket. Neither the connection nor its other end is changed.
///
/// # Errors
/// [`NoOtherSocket`] says why it is not known for certain.
pub fn other_socket(socket: impl AsFd) -> Result<OtherSocket, NoOtherSocket> {
    let socket = socket.as_fd();
    let tuple = Tuple::of(socket)?;
    let question = Question::new().map_err(NoOtherSocket::System)?;
    if netns_cookie(socket).map_err(NoOtherSocket::System)?
        != netns_cookie(&question).map_err(NoOtherSocket::System)?
    {
        return Err(NoOtherSocket::OtherNamespace);
    }
    let found = question.ask(tuple.mirrored()).map_err(NoOtherSocket::System)?;
    // Behind the question: while this end is established, nobody else has had the other's addresses.
    let own = state(socket).map_err(NoOtherSocket::NoState)?;
    decide(own, found)
}

/// The socket with these addresses, of whomever, if it is established. The network namespace is that with this cookie ([`netns_cookie`]).
///
/// # Errors
/// [`NoOtherSocket`] says why it is not known.
pub fn established(namespace_cookie: u64, tuple: Tuple) -> Result<OtherSocket, NoOtherSocket> {
    let question = Question::new().map_err(NoOtherSocket::System)?;
    if netns_cookie(&question).map_err(NoOtherSocket::System)? != namespace_cookie {
        return Err(NoOtherSocket::OtherNamespace);
    }
    let found = question.ask(tuple).map_err(NoOtherSocket::System)?;
    decide(State::Established, found)
}

fn decide(own: State, found: Option<Listed>) -> Result<OtherSocket, NoOtherSocket> {
    if own != State::Established {
        return Err(NoOtherSocket::NotEstablished(own));
    }
    match found {
        Some(Listed { state: State::Established, cookie: Some(cookie), uid, inode }) => {
            Ok(OtherSocket { cookie, uid, inode })
        }
        Some(listed) => Err(NoOtherSocket::NotEstablished(listed.state)),
        // The kernel says the same of a list that it does not have.
        None if !is_supported() => Err(NoOtherSocket::System(Errno::OPNOTSUPP)),
        None => Err(NoOtherSocket::Elsewhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_have_to_be_established() {
        let good = Listed { state: State::Established, cookie: Some(3), uid: 4, inode: 5 };
        let found = OtherSocket { cookie: 3, uid: 4, inode: 5 };
        assert_eq!(decide(State::Established, Some(good)), Ok(found));
        for state in [State::TimeWait, State::SynReceived, State::Listening, State::FinWait2] {
            let refused = Err(NoOtherSocket::NotEstablished(state));
            assert_eq!(decide(state, Some(good)), refused);
            assert_eq!(decide(State::Established, Some(Listed { state, ..good })), refused);
        }
        assert_eq!(decide(State::Established, None), Err(NoOtherSocket::Elsewhere));
    }
}
