//! A row of the table of lanes.

use crate::effort::Effort;
use crate::failure::Outcome;

/// A lane of `ci` and `long`.
pub struct Lane {
    pub name: &'static str,
    /// Only in `long`.
    pub is_long: bool,
    /// Runs cargo in `target/`, so that a second one would wait for the lock.
    pub takes_target: bool,
    /// What nobody needs once the lane has passed, in `ci` and `long`.
    pub scratch: &'static [&'static str],
    pub run: fn(Effort) -> Outcome,
}

impl Lane {
    pub const fn new(name: &'static str, run: fn(Effort) -> Outcome) -> Self {
        Lane { name, is_long: false, takes_target: false, scratch: &[], run }
    }

    pub const fn in_target(self) -> Self {
        Lane { takes_target: true, ..self }
    }

    pub const fn only_long(self) -> Self {
        Lane { is_long: true, ..self }
    }

    pub const fn leaving(self, scratch: &'static [&'static str]) -> Self {
        Lane { scratch, ..self }
    }
}
