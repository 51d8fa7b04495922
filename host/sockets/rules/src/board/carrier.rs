//! The two paths of a connection.

/// What carries bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The kernel's socket.
    Socket,
    /// A window of shared memory.
    Window,
}
