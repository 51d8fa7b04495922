//! A socket of TCP, or a stream of `AF_UNIX`, as a stream uses it.

use std::os::fd::AsFd;

use beeline_ledger::{KernelPath, Peeked};
use beeline_tcp::{CountError, Side, TakeError};
use rustix::io::Errno;
use thiserror::Error;

use crate::socket::Socket;

/// A connection of the kernel's, by a descriptor of it.
#[derive(Debug)]
pub struct Tcp<F> {
    socket: F,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The kernel counts its bytes.
    Tcp(Side),
    /// The kernel counts none of its bytes.
    Unix {
        /// What it was given, by who sends alone.
        given: u64,
        /// Something comes with the bytes that were peeked at last.
        comes_beside: bool,
    },
}

/// What a socket failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TcpError {
    /// The program's answer: the kernel says it once.
    #[error(transparent)]
    System(#[from] Errno),
    /// Somebody else takes bytes out of the socket, so that which one comes next is not known: the connection is to be reset.
    #[error("another holder of the socket reads it: {0}")]
    Taken(TakeError),
    /// The socket stays as it is, and the stream in it.
    #[error(transparent)]
    Count(#[from] CountError),
    /// The program itself is to receive them, and nothing was taken.
    #[error("descriptors or credentials come with the bytes that are next")]
    Beside,
    /// Of a socket without counts: bytes lie in it that nobody has taken.
    #[error("the socket has bytes still, and no count says how many it was given")]
    NotDrained,
}

impl<F: AsFd> Tcp<F> {
    /// The end of the connection that connected, or that was accepted.
    pub fn new(socket: F, side: Side) -> Self {
        Tcp { socket, kind: Kind::Tcp(side) }
    }

    /// A stream of `AF_UNIX`, which has no counts: `given` is what its sender has counted, and is the truth where the receiver has counted as many and
    /// nothing is on its way (record 0083). Who only receives says 0.
    pub fn of_unix(socket: F, given: u64) -> Self {
        Tcp { socket, kind: Kind::Unix { given, comes_beside: false } }
    }

    /// Whether something comes with the bytes that were peeked at last, which only the program's own call receives.
    pub fn comes_beside(&self) -> bool {
        matches!(self.kind, Kind::Unix { comes_beside: true, .. })
    }

    /// Whose descriptor it is.
    pub fn socket(&self) -> &F {
        &self.socket
    }

    /// Bytes that were ever taken out of the socket, as the kernel counts them: where a receiver begins.
    ///
    /// # Errors
    /// [`TcpError::Count`].
    pub fn taken_bytes(&self) -> Result<u64, TcpError> {
        Ok(beeline_tcp::taken(&self.socket)?)
    }
}

impl<F: AsFd> KernelPath for Tcp<F> {
    type Error = TcpError;

    fn peek(&mut self, out: &mut [u8]) -> Result<Peeked, TcpError> {
        let peeked = match &mut self.kind {
            Kind::Tcp(_) => beeline_tcp::peek(&self.socket, out)?,
            Kind::Unix { comes_beside, .. } => {
                let (peeked, beside) = beeline_tcp::unix_peek(&self.socket, out)?;
                *comes_beside = beside;
                peeked
            }
        };
        Ok(match peeked {
            beeline_tcp::Peeked::Bytes(bytes) => Peeked::Bytes(bytes),
            beeline_tcp::Peeked::Nothing => Peeked::Nothing,
            beeline_tcp::Peeked::End => Peeked::End,
        })
    }

    fn take(&mut self, bytes: usize) -> Result<(), TcpError> {
        let taken = match self.kind {
            Kind::Tcp(_) => beeline_tcp::take(&self.socket, bytes),
            Kind::Unix { comes_beside: true, .. } => return Err(TcpError::Beside),
            Kind::Unix { .. } => beeline_tcp::unix_take(&self.socket, bytes),
        };
        taken.map_err(|error| match error {
            TakeError::System(errno) => errno.into(),
            short @ TakeError::Short { .. } => TcpError::Taken(short),
        })
    }
}

impl<F: AsFd> Socket for Tcp<F> {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, TcpError> {
        Ok(beeline_tcp::send(&self.socket, bytes)?)
    }

    fn given_bytes(&mut self) -> Result<u64, TcpError> {
        match self.kind {
            Kind::Tcp(side) => Ok(beeline_tcp::given(&self.socket, side)?),
            Kind::Unix { given, .. } if beeline_tcp::unix_is_drained(&self.socket)? => Ok(given),
            Kind::Unix { .. } => Err(TcpError::NotDrained),
        }
    }
}
