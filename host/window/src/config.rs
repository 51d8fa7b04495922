//! What both ends of a window agree on, and the sender's fence policy.

use alloc::borrow::ToOwned;
use alloc::string::String;

use beeline_spec::escape;

/// Properties of a window that its two ends share. They travel in the rendezvous, never in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Value of a free word of a blank window, with bit 63 set; 0 for an observed window, where nothing is escaped.
    pub blank: u64,
    /// Epoch that every header carries; a message of another epoch is malformed.
    pub epoch: u8,
    /// When the sender fences. The receiver ignores it.
    pub fence_policy: FencePolicy,
}

impl WindowConfig {
    /// A blank window without fences. `blank` as [`escape::blank_from_random`] makes it.
    pub const fn blank(blank: u64, epoch: u8) -> Self {
        WindowConfig { blank, epoch, fence_policy: FencePolicy::None }
    }

    /// An observed window without fences.
    pub const fn observed(epoch: u8) -> Self {
        WindowConfig { blank: 0, epoch, fence_policy: FencePolicy::None }
    }

    /// The same window with another fence policy.
    pub const fn with_fences(self, fence_policy: FencePolicy) -> Self {
        WindowConfig { fence_policy, ..self }
    }

    #[track_caller]
    pub(crate) fn check(&self, lines: u32) {
        assert!(lines.is_power_of_two(), "a window of {lines} lines: the number must be a power of two");
        assert!(
            self.blank == 0 || escape::is_blank_value(self.blank),
            "blank {:#018x} has bit 63 clear, so a header or link word could equal it",
            self.blank
        );
    }
}

/// When a sender fences. Everything but `None` is a baseline to compare with (HotOS'25 figure 2): the receiver
/// recovers the order without any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FencePolicy {
    /// Never: the principle.
    #[default]
    None,
    /// Once a lap, before the first line is stored again (HotOS'25 §3.4).
    PerWrap,
    /// After each message, as shipping NICs that take frames by store ask for.
    PerMessage,
    /// After each line.
    PerLine,
}

impl FencePolicy {
    /// Every policy, cheapest first.
    pub const ALL: [FencePolicy; 4] =
        [FencePolicy::None, FencePolicy::PerWrap, FencePolicy::PerMessage, FencePolicy::PerLine];

    /// The name used in reports and options.
    pub const fn name(self) -> &'static str {
        match self {
            FencePolicy::None => "none",
            FencePolicy::PerWrap => "per-wrap",
            FencePolicy::PerMessage => "per-message",
            FencePolicy::PerLine => "per-line",
        }
    }
}

impl core::fmt::Display for FencePolicy {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.pad(self.name())
    }
}

/// A name that is no fence policy's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a fence policy; there are none, per-wrap, per-message and per-line")]
pub struct UnknownPolicy(pub String);

impl core::str::FromStr for FencePolicy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        FencePolicy::ALL
            .into_iter()
            .find(|policy| policy.name() == name)
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// An absolute place in a window's stream: lines since the window was made. The line of the window is this number
/// modulo the window's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl core::fmt::Display for Position {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "line {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_found_by_their_names() {
        for policy in FencePolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        assert_eq!("sometimes".parse::<FencePolicy>(), Err(UnknownPolicy("sometimes".to_owned())));
    }

    #[test]
    #[should_panic(expected = "bit 63 clear")]
    fn a_blank_that_could_be_a_header_is_refused() {
        WindowConfig::blank(7, 0).check(8);
    }

    #[test]
    #[should_panic(expected = "power of two")]
    fn a_window_of_an_odd_size_is_refused() {
        WindowConfig::observed(0).check(12);
    }
}
