//! A run of `beeline run --why`: boards of its processes outlive these until it has read them.

use std::fmt;

use super::process::{Life, Recorded};
use crate::RUN_VARIABLE;

/// A run: a random number, and the process that reads its boards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Never 0.
    number: u64,
    pid: u32,
    start: u64,
}

impl Run {
    /// A run that this process reads.
    ///
    /// # Errors
    /// The kernel has no random number.
    pub fn of_this_process() -> std::io::Result<Self> {
        let number = getrandom::u64().map_err(|error| std::io::Error::other(error.to_string()))?.max(1);
        let Recorded { pid, start, .. } = Recorded::of_this_process();
        Ok(Run { number, pid, start })
    }

    /// The run that [`RUN_VARIABLE`] names; `None` where it names none.
    pub fn of_environment() -> Option<Self> {
        std::env::var(RUN_VARIABLE).ok()?.parse().ok()
    }

    pub(super) fn words(self) -> [u64; 3] {
        [self.number, self.pid.into(), self.start]
    }

    pub(super) fn of_words([number, pid, start]: [u64; 3]) -> Option<Self> {
        let pid = u32::try_from(pid).ok()?;
        (number != 0).then_some(Run { number, pid, start })
    }

    /// Whether its boards are still to be read by somebody: `board` is a process of the run.
    pub(super) fn is_awaited(self, board: &Recorded) -> bool {
        let reader = Recorded { pid: self.pid, start: self.start, image: 0, ..*board };
        reader.life() == Life::Running
    }
}

impl fmt::Display for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}-{}-{}", self.number, self.pid, self.start)
    }
}

/// The text is no run.
#[derive(Debug, PartialEq, Eq)]
pub struct NoRun;

impl std::str::FromStr for Run {
    type Err = NoRun;

    fn from_str(text: &str) -> Result<Self, NoRun> {
        let parse = || {
            let mut parts = text.split('-');
            let number = u64::from_str_radix(parts.next()?, 16).ok()?;
            let (pid, start) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            if parts.next().is_some() {
                return None;
            }
            Run::of_words([number, pid, start])
        };
        parse().ok_or(NoRun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_is_the_same_when_it_has_been_text_or_words() {
        let run = Run::of_this_process().unwrap();
        assert_eq!(run.to_string().parse(), Ok(run));
        assert_eq!(Run::of_words(run.words()), Some(run));
        for odd in ["", "0-1-2", "1-2", "1-2-3-4", "x-1-2", "1--2"] {
            assert_eq!(odd.parse::<Run>(), Err(NoRun), "{odd}");
        }
    }
}
