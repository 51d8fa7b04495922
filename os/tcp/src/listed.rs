//! A socket as the kernel's lists show it.

use crate::State;

/// A socket in one of the kernel's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub state: State,
    /// The socket's number in this kernel, which no other socket ever has (`SO_COOKIE`). A connection that waits to be accepted has the one
    /// that it will have. `None` from the list in `/proc`, and meaningless in [`State::TimeWait`].
    pub cookie: Option<u64>,
    /// The user who made or accepted the socket; the superuser while nobody has.
    pub uid: u32,
    /// 0 for a connection that waits to be accepted, which belongs to nobody yet.
    pub inode: u32,
}
