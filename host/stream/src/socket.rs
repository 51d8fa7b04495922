//! What a stream asks of a socket and of a window that it sends by, besides what the ledger does.

use beeline_ledger::KernelPath;

/// The kernel's socket of a connection. Nothing here waits.
pub trait Socket: KernelPath {
    /// Gives the socket as many of `bytes`, from the first on, as it takes, and says how many; 0 when it has no room. `bytes` is not empty.
    ///
    /// # Errors
    /// What the kernel answers a program that sends (`EPIPE`, `ECONNRESET`).
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Self::Error>;

    /// Bytes that the socket was ever given, by whomever, as the kernel counts them.
    ///
    /// # Errors
    /// The kernel does not say, or the socket has failed.
    fn given_bytes(&mut self) -> Result<u64, Self::Error>;
}

/// The receiver of a window frees what cannot be freed, or the window takes no more for another reason that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFailed;

/// A window that is sent by. Nothing here waits.
pub trait WindowSink {
    /// Stores as many of `bytes`, from the first on, as there is room for, and says how many; 0 when there is none. The first is byte
    /// `offset` of the stream. `bytes` is not empty.
    ///
    /// # Errors
    /// [`WindowFailed`]: none of them was stored, and none ever will be.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<usize, WindowFailed>;

    /// Orders all stores to the window before whatever is stored after this.
    fn settle(&mut self);
}
