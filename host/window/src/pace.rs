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
