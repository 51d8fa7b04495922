//! The result of a send.

/// Whether a message left. Both are success; `Full` means: try again when the receiver has freed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// Every line of the message is stored.
    Sent,
    /// Credits are missing; nothing was stored.
    Full,
}
