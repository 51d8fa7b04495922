//! How far a receiver is from its sender, as it last knew (`prefetch.rs`).

/// What a receiver knows about its distance from the sender.
#[derive(Debug)]
pub(crate) struct Pace {
    /// How far ahead lines are prefetched, and half as far as the receiver looks; 0: neither.
    pub(crate) ahead_lines: u64,
    /// The position from which on the line `ahead_lines` in front is not known to be stored.
    pub(crate) known_until: u64,
    /// The position from which on it is worth looking again.
    pub(crate) look_at: u64,
}

impl Pace {
    /// Prefetches `ahead_lines` ahead, at most an eighth of a window of `lines` lines.
    pub(crate) fn new(ahead_lines: u32, lines: u32) -> Self {
        let ahead_lines = u64::from(ahead_lines.min(lines / 8));
        let look_at = if ahead_lines == 0 { u64::MAX } else { 0 };
        Pace { ahead_lines, known_until: 0, look_at }
    }
}

/// How far in front the receiver looks whether groups can be tested without a look at their last line.
pub(crate) const FAR_LINES: u64 = 64;

/// What is known of where the sender is.
#[derive(Debug)]
pub(crate) struct Groups {
    /// The position from which on it is worth looking for a group.
    pub(crate) from: u64,
    /// The position from which on it is worth looking far in front.
    pub(crate) look_at: u64,
    /// The sender was seen past every line before this position.
    pub(crate) known_until: u64,
}

impl Groups {
    /// For a window of so many lines.
    pub(crate) fn new(lines: u32) -> Self {
        // In a small window what is far in front is near behind.
        let look_at = if u64::from(lines) < 4 * FAR_LINES { u64::MAX } else { 0 };
        Groups { from: 0, look_at, known_until: 0 }
    }

    /// For a receiver that never looks for a group.
    pub(crate) fn never() -> Self {
        Groups { from: u64::MAX, look_at: u64::MAX, known_until: 0 }
    }
}
