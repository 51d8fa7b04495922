//! What calls answer that are neither errors nor messages. All must be used: who ignores one may lose a message.

pub use beeline_window::{Sent, Taken};

/// Whether everything that was sent has been taken by the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "what was not taken yet is lost if the other side ends, and a port that is dropped loses it"]
pub enum Flushed {
    /// Everything was taken.
    All,
    /// The time was over before everything was taken.
    TimedOut,
}

impl Flushed {
    pub(crate) fn when(is_empty: bool) -> Self {
        if is_empty { Flushed::All } else { Flushed::TimedOut }
    }
}
