//! The results of sends.

/// Whether a message left. Both are success; `Full` means: try again when the receiver has freed lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// Every line of the message is stored.
    Sent,
    /// Credits are missing; nothing was stored.
    Full,
}

/// How many messages or frames of several were taken, from the first on. The others are still the caller's, to be offered
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "what was not taken is lost unless it is offered again"]
pub struct Taken(pub usize);
