//! The two paths, as the ledger uses them.

/// By which path bytes of the stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Through the socket.
    Kernel,
    /// Through the window.
    Window,
}

/// What a socket shows without giving it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peeked {
    /// So many bytes, at least one.
    Bytes(usize),
    /// The socket is empty, and the other side may still send.
    Nothing,
    /// The other side has shut down, and all bytes before that were taken.
    End,
}

/// A socket that is received from. Nothing here waits.
pub trait KernelPath {
    /// What a socket fails with.
    type Error;

    /// Copies what has come to `out`, and leaves it there (`MSG_PEEK`). `out` is not empty.
    ///
    /// # Errors
    /// The socket has failed (`ECONNRESET`, `ETIMEDOUT`): nothing more comes from it.
    fn peek(&mut self, out: &mut [u8]) -> Result<Peeked, Self::Error>;

    /// Takes bytes that were peeked at (`MSG_TRUNC`).
    ///
    /// # Errors
    /// The socket has failed since the peek.
    fn take(&mut self, bytes: usize) -> Result<(), Self::Error>;
}

/// What is in the window is no stream of bytes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLost;

/// A window that is received from. Nothing here waits.
pub trait WindowPath {
    /// Moves bytes that have come to `out`, and says how many; 0 when none have. `out` is not empty. The first is byte `offset` of the
    /// stream.
    ///
    /// # Errors
    /// [`WindowLost`]: nothing behind the bytes that were read before is to be had.
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost>;

    /// As [`WindowPath::read`], and leaves the bytes to be read.
    ///
    /// # Errors
    /// As [`WindowPath::read`], which says it again.
    fn peek(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost>;
}
