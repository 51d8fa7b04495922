//! Who has the other end of a connection that this process has already, by the kernel's word and without a byte in it.
//!
//! A connection of TCP within one network namespace has two sockets there, each with the addresses of the other. The kernel
//! says which user made or accepted the other one. A process of that user that comes by the rendezvous has nothing to gain
//! there that it could not have by its own end of the connection: so two processes of different users can become peers
//! because they have a connection, and without any list. Whatever the kernel does not say for certain is refused.

use std::os::fd::AsFd;

use beeline_tcp::{Listed, State, Tuple, TupleError};
use rustix::io::Errno;

use crate::{Peer, uid};

/// The user who has the other end of a connection of TCP, and the proof that the kernel said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherEnd {
    uid: u32,
    inode: u32,
}

/// Why nobody is known to have the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotShared {
    #[error("the descriptor is no connection of TCP; for others both sides exchange a token in it")]
    NotTcp,
    #[error("the connection is not established, or one of its sides has closed it")]
    NotEstablished,
    /// The socket is not in the list of this thread's network namespace.
    #[error(
        "the connection belongs to another network namespace than this thread, which cannot ask who has the other end"
    )]
    OtherNamespace,
    /// No socket of this network namespace has the connection's addresses mirrored.
    #[error(
        "the other end of the connection is not in this network namespace, or its addresses are translated on the way"
    )]
    Elsewhere,
    /// Whoever listens has not accepted the connection yet.
    #[error("the other end of the connection waits to be accepted, and is nobody's yet; try again")]
    NotAccepted,
    /// The owner of the other end has no uid of its own in this process's user namespace.
    #[error(
        "the other end belongs to a user whom this user namespace does not map (uid {uid} stands for all of them)"
    )]
    Unmapped { uid: u32 },
    /// The kernel refused something.
    #[error("cannot {what}: {errno}")]
    System { what: &'static str, errno: Errno },
}

impl OtherEnd {
    /// What the kernel has said of an accepted socket at the other end, whose user is one.
    pub(crate) fn of_socket(uid: u32, inode: u32) -> Self {
        OtherEnd { uid, inode }
    }

    /// Asks the kernel who has the other end of `connection`. Neither reads nor writes nor changes the connection; the
    /// descriptor is not kept. Some system calls; where a program may have no netlink socket, it reads the kernel's list of all
    /// connections.
    ///
    /// What is found is the user who made or accepted the socket. A descriptor that was passed on to another user, and a
    /// process that changed its user since, are not seen: then it is the user of before.
    ///
    /// # Errors
    /// The kernel does not say for certain: [`NotShared`] says why.
    pub fn of_tcp(connection: impl AsFd) -> Result<OtherEnd, NotShared> {
        let connection = connection.as_fd();
        let failed = |what| move |errno| NotShared::System { what, errno };
        if !beeline_tcp::is_tcp(connection) {
            return Err(NotShared::NotTcp);
        }
        let tuple = Tuple::of(connection).map_err(|error| match error {
            TupleError::NotConnected => NotShared::NotEstablished,
            TupleError::NotInternet => NotShared::NotTcp,
            TupleError::System(errno) => failed("ask for the addresses of the connection")(errno),
        })?;
        let find = |tuple| beeline_tcp::find(tuple).map_err(failed("list the sockets of TCP"));
        let other = find(tuple.mirrored())?;
        // After the other: while this one is established, nobody else can have had the other's addresses.
        let own = find(tuple)?;
        let stat = rustix::fs::fstat(connection).map_err(failed("examine the connection"))?;
        let is_own = |listed: &Listed| listed.inode != 0 && u64::from(listed.inode) == stat.st_ino;
        let Some(own) = own.filter(is_own) else { return Err(NotShared::OtherNamespace) };
        let Some(other) = other else { return Err(NotShared::Elsewhere) };
        decide(own, other, uid::names_one_user(other.uid))
    }

    /// The user who made or accepted the other socket, by the uid that this process's user namespace has for it.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The number of the other socket's inode, as the process that has it sees it by `fstat` and in `/proc/self/fd`.
    pub fn socket_inode(&self) -> u64 {
        self.inode.into()
    }

    /// Whether a peer of a connection over a domain is a process of the user who has the other end.
    pub fn is_user_of(&self, peer: &Peer) -> bool {
        peer.uid() == self.uid && uid::names_one_user(self.uid)
    }
}

fn decide(own: Listed, other: Listed, names_one_user: bool) -> Result<OtherEnd, NotShared> {
    if own.state != State::Established || other.state != State::Established {
        return Err(NotShared::NotEstablished);
    }
    // The kernel shows a socket that no process has as the superuser's.
    if other.inode == 0 {
        return Err(NotShared::NotAccepted);
    }
    if !names_one_user {
        return Err(NotShared::Unmapped { uid: other.uid });
    }
    Ok(OtherEnd { uid: other.uid, inode: other.inode })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn each_end_names_the_user_and_the_socket_of_the_other() {
        let (a, b) = pair();
        for (end, other) in [(&a, &b), (&b, &a)] {
            let found = OtherEnd::of_tcp(end).unwrap();
            assert_eq!(found.uid(), rustix::process::geteuid().as_raw());
            assert_eq!(found.socket_inode(), rustix::fs::fstat(other).unwrap().st_ino);
        }
    }

    #[test]
    fn half_closed_and_closed_connections_are_refused() {
        let (a, b) = pair();
        a.shutdown(Shutdown::Write).unwrap();
        for end in [&a, &b] {
            assert_eq!(OtherEnd::of_tcp(end), Err(NotShared::NotEstablished));
        }
        drop(a);
        assert!(OtherEnd::of_tcp(&b).is_err());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(OtherEnd::of_tcp(&listener), Err(NotShared::NotEstablished));
    }

    #[test]
    fn connection_that_nobody_accepted_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(OtherEnd::of_tcp(&client), Err(NotShared::NotAccepted));
        let _accepted = listener.accept().unwrap();
        assert!(OtherEnd::of_tcp(&client).is_ok());
    }

    #[test]
    fn what_is_no_tcp_is_refused() {
        let (unix, _other) = UnixStream::pair().unwrap();
        assert_eq!(OtherEnd::of_tcp(&unix), Err(NotShared::NotTcp));
        assert_eq!(OtherEnd::of_tcp(UdpSocket::bind("127.0.0.1:0").unwrap()), Err(NotShared::NotTcp));
        assert_eq!(OtherEnd::of_tcp(std::fs::File::open("/dev/null").unwrap()), Err(NotShared::NotTcp));
    }

    #[test]
    fn user_who_is_not_known_for_certain_is_refused() {
        let good = Listed { state: State::Established, cookie: None, uid: 65_534, inode: 7 };
        assert!(decide(good, good, true).is_ok());
        assert_eq!(decide(good, good, false), Err(NotShared::Unmapped { uid: 65_534 }));
        assert_eq!(decide(good, Listed { inode: 0, ..good }, true), Err(NotShared::NotAccepted));
        let half = Listed { state: State::CloseWait, ..good };
        assert_eq!(decide(half, good, true), Err(NotShared::NotEstablished));
        assert_eq!(decide(good, half, true), Err(NotShared::NotEstablished));
    }
}
