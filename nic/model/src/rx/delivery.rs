//! The answer of a queue to a frame.

/// What became of a frame that was offered to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It is on its way to host memory.
    Done,
    /// The host lends no room now.
    NoSpace,
    /// The device cannot take it now, but will without the host's doing.
    Later,
    /// It is longer than the ring or the buffer.
    TooLong,
}
