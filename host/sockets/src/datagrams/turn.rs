//! What becomes of a receive.

use std::net::SocketAddr;

use rustix::io::Errno;

use crate::numbers::Pass;

/// A datagram that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes that were copied.
    pub copied: usize,
    /// Bytes that it has; those that had no room are gone.
    pub length: usize,
    /// From where, as the socket sees it; `None` where the kernel does not say.
    pub from: Option<SocketAddr>,
    pub(crate) is_of_window: bool,
}

impl Datagram {
    /// One that the kernel gave.
    pub fn of_kernel(copied: usize, length: usize, from: Option<SocketAddr>) -> Self {
        Datagram { copied, length, from, is_of_window: false }
    }
}

/// What becomes of a receive.
#[derive(Debug)]
#[must_use]
pub enum DatagramTurn {
    /// It is the kernel's: make it, say what came ([`crate::Sockets::heard_datagram`]), and drop this behind it.
    Kernel(Pass),
    Done(Result<Datagram, Errno>),
}

pub(crate) enum Step {
    Turn(DatagramTurn),
    /// The number is another thing now.
    Again,
}

impl Step {
    pub(crate) fn of(pass: Option<Pass>) -> Step {
        pass.map_or(Step::Again, |pass| Step::Turn(DatagramTurn::Kernel(pass)))
    }
}
