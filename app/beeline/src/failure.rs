//! What a person sees when a command fails: what, why, what to do.

use std::error::Error;
use std::fmt::{self, Write as _};

use beeline_floor::FloorError;
use beeline_session::{NicError, Program, with_causes};

/// A failed command. Printed on standard error; the program then exits with 1.
#[derive(Debug)]
pub struct Failure {
    what: String,
    because: Option<String>,
    remedy: Option<String>,
    is_quiet: bool,
}

impl Failure {
    /// `what` went wrong, in a phrase without a full stop.
    pub fn new(what: impl Into<String>) -> Self {
        Failure { what: what.into(), because: None, remedy: None, is_quiet: false }
    }

    /// The reader of standard output has seen enough: the command ends at once, and nothing is wrong.
    pub fn nobody_reads() -> Self {
        Failure { is_quiet: true, ..Failure::new("nobody reads the output any more") }
    }

    /// Whether to end without a word and with success.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// The cause, with its own causes.
    #[must_use]
    pub fn because(mut self, error: impl Error) -> Self {
        self.because = Some(with_causes(&error));
        self
    }

    /// Remedy that the user can apply.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_safely(out, &self.what)?;
        if let Some(because) = &self.because {
            out.write_str(": ")?;
            write_safely(out, because)?;
        }
        if let Some(remedy) = &self.remedy {
            out.write_str("\n  try: ")?;
            write_safely(out, remedy)?;
        }
        Ok(())
    }
}

/// Writes text for a terminal. What a user typed, or a file or peer says, may hold sequences that a terminal obeys: control
/// characters are shown and not sent, line ends apart.
fn write_safely(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|c| match c {
        '\n' => out.write_char(c),
        _ if c.is_control() => write!(out, "{}", c.escape_default()),
        _ => out.write_char(c),
    })
}

impl Error for Failure {}

impl From<FloorError> for Failure {
    fn from(error: FloorError) -> Self {
        let because = error.source().map(with_causes);
        Failure { because, remedy: error.remedy(), ..Failure::new(error.to_string()) }
    }
}

impl From<NicError> for Failure {
    fn from(error: NicError) -> Self {
        let because = error.source().map(with_causes);
        Failure { because, remedy: error.remedy(), ..Failure::new(error.to_string()) }
    }
}

/// This program, to start others of its commands from.
///
/// # Errors
/// The system does not tell where it is.
pub fn own_program() -> Result<Program, Failure> {
    Ok(Program::own().map_err(NicError::Program)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let cause = std::io::Error::other("disk full");
        let failure = Failure::new("cannot write out.pcap").because(cause).remedy("free some space");
        assert_eq!(failure.to_string(), "cannot write out.pcap: disk full\n  try: free some space");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let failure = Failure::new("no store \u{1b}[31mx").remedy("one\nline\r");
        assert_eq!(failure.to_string(), "no store \\u{1b}[31mx\n  try: one\nline\\r");
    }

    #[test]
    fn a_nic_error_keeps_its_cause_and_its_remedy() {
        let started =
            NicError::Start { program: "/x".into(), source: std::io::Error::other("no more processes") };
        assert_eq!(
            Failure::from(started).to_string(),
            "cannot start a NIC process from /x: no more processes"
        );
        let program = NicError::Program(std::io::Error::other("no /proc"));
        assert_eq!(
            Failure::from(program).to_string(),
            "cannot find this program's own file: no /proc\n  try: run it by its full path"
        );
    }
}
