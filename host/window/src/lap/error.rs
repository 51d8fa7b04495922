//! Why a message cannot be sent to several receivers.

use super::reader_id::ReaderId;

/// Why a message cannot be sent. Nothing of it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LapSendError {
    /// The payload is longer than any message in this window.
    #[error("a message of {bytes} bytes; this window takes {max_bytes} at most")]
    TooLong {
        /// Payload bytes asked for.
        bytes: usize,
        /// Longest payload in bytes.
        max_bytes: usize,
    },
    /// A receiver's count of freed lines ran backwards. It stays an error until that receiver is removed.
    #[error("{reader} counted {before} freed lines before and {found} now; remove it")]
    Backwards {
        /// The receiver that cannot be believed.
        reader: ReaderId,
        /// Count pushed now.
        found: u64,
        /// Count known before.
        before: u64,
    },
    /// A receiver says that it freed more lines than were sent to it. It stays an error until that receiver is removed.
    #[error("{reader} says it freed {found} lines of {sent} sent; remove it")]
    Ahead {
        /// The receiver that cannot be believed.
        reader: ReaderId,
        /// Count pushed now.
        found: u64,
        /// Lines sent since it joined.
        sent: u64,
    },
    /// No receiver has joined, or all of them were removed.
    #[error("nobody receives from this window")]
    NoReader,
}
