//! The one error of this program: a sentence that says what failed, where, and what to do.

use std::fmt;

/// What went wrong, ready to be read by the person who typed the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

/// Result of every lane.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure told by `sentence`.
    pub fn new(sentence: impl Into<String>) -> Self {
        Failure(sentence.into())
    }

    /// A failure that lists several findings under one heading, each on its own line.
    pub fn listing(heading: impl fmt::Display, findings: &[String]) -> Self {
        Failure(format!("{heading}:\n  {}", findings.join("\n  ")))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Says what was being done when something failed.
pub trait Context<T> {
    /// Puts `doing` before the cause: "cannot {doing}: {cause}".
    fn while_doing(self, doing: impl fmt::Display) -> Outcome<T>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn while_doing(self, doing: impl fmt::Display) -> Outcome<T> {
        self.map_err(|cause| Failure(format!("cannot {doing}: {cause}")))
    }
}

/// Fails with all `findings` under `heading` unless there are none.
pub fn none_found(heading: impl fmt::Display, findings: Vec<String>) -> Outcome {
    if findings.is_empty() { Ok(()) } else { Err(Failure::listing(heading, &findings)) }
}
