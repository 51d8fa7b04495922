//! How a guest is lost: what a command is answered by that gets no answer.

use std::fmt;
use std::time::Duration;

use crate::failure::Failure;

/// Why a command of a guest has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Its kernel stopped, or found a fault in itself; the line by which it said so.
    Panicked(String),
    /// The emulator ended; how.
    Ended(String),
    /// Nothing came in this time.
    Silent(Duration),
    /// The socket to its agent failed.
    Cut(String),
    /// The command was not sent, since it cannot be; the guest is as it was.
    Refused(String),
}

/// A guest that is lost. It is killed when it is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    pub cause: Cause,
    /// What was waited for.
    pub doing: String,
    /// The last lines of the console, and what the emulator said.
    pub console: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = &self.doing;
        match &self.cause {
            Cause::Refused(why) => return write!(out, "{why} ({doing})"),
            Cause::Panicked(line) => write!(out, "the guest's kernel stopped ({doing}): {line}")?,
            Cause::Ended(how) => write!(out, "the emulator ended ({doing}): {how}")?,
            Cause::Silent(limit) => {
                write!(out, "the guest did not answer within {} s ({doing})", limit.as_secs())?;
            }
            Cause::Cut(why) => write!(out, "the guest's agent cannot be reached ({doing}): {why}")?,
        }
        write!(out, "\nits console, at the end:\n{}", self.console)
    }
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Self {
        Failure::new(lost.to_string())
    }
}
