//! A socket of TCP as a stream uses it.

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
    side: Side,
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
}

impl<F: AsFd> Tcp<F> {
    /// The end of the connection that connected, or that was accepted.
    pub fn new(socket: F, side: Side) -> Self {
        Tcp { socket, side }
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
        Ok(match beeline_tcp::peek(&self.socket, out)? {
            beeline_tcp::Peeked::Bytes(bytes) => Peeked::Bytes(bytes),
            beeline_tcp::Peeked::Nothing => Peeked::Nothing,
            beeline_tcp::Peeked::End => Peeked::End,
        })
    }

    fn take(&mut self, bytes: usize) -> Result<(), TcpError> {
        beeline_tcp::take(&self.socket, bytes).map_err(|error| match error {
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
        Ok(beeline_tcp::given(&self.socket, self.side)?)
    }
}
