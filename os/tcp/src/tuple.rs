//! Addresses of a connection.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::SocketAddrAny;

/// Two addresses of a connection: of one end, and of what it is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// Why a socket has no two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TupleError {
    /// It listens, was never connected, or the connection has ended.
    #[error("the socket is not connected")]
    NotConnected,
    #[error("the socket has no addresses of the Internet")]
    NotInternet,
    #[error("cannot ask for the addresses of the connection: {0}")]
    System(Errno),
}

impl Tuple {
    /// IPv4 in the guise of IPv6 is the same connection, of which each end may have another guise.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        Tuple { local: canonical(local), remote: canonical(remote) }
    }

    /// The addresses of `socket`, by two system calls.
    ///
    /// # Errors
    /// [`TupleError`] says why there are none.
    pub fn of(socket: impl AsFd) -> Result<Tuple, TupleError> {
        let socket = socket.as_fd();
        let address = |found: Result<SocketAddrAny, Errno>| match found {
            Ok(address) => SocketAddr::try_from(address).map_err(|_| TupleError::NotInternet),
            Err(Errno::NOTCONN | Errno::INVAL) => Err(TupleError::NotConnected),
            Err(errno) => Err(TupleError::System(errno)),
        };
        let local = address(rustix::net::getsockname(socket))?;
        let remote = rustix::net::getpeername(socket).and_then(|found| found.ok_or(Errno::NOTCONN));
        Ok(Tuple::new(local, address(remote)?))
    }

    /// The other end of the connection.
    pub fn mirrored(self) -> Self {
        Tuple { local: self.remote, remote: self.local }
    }

    /// Whether both ends are one socket.
    pub fn is_to_itself(self) -> bool {
        self.local == self.remote
    }
}
