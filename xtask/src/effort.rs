//! Short or long: what `ci` and `long` ask of a lane.

/// Share of a lane that is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// What `make test` runs, in less than an hour.
    Short,
    /// As long as it takes.
    Long,
}
