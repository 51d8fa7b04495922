//! Short or long: what `ci` and `long` ask of a lane.

/// How much of a lane to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Inside the hour of `make test`.
    Short,
    /// As long as it takes.
    Long,
}
