//! A receiver's number.

/// A receiver of a window, as its sender knows it. Never used again for another one of the same window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReaderId(u64);

impl ReaderId {
    pub(super) const fn new(joined: u64) -> Self {
        ReaderId(joined)
    }
}

impl core::fmt::Display for ReaderId {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "receiver {}", self.0)
    }
}
