//! What a person sees when a command fails: what, why, what to do.

use std::fmt;

/// A failed command. Printed on standard error; the program then exits with 1.
#[derive(Debug)]
pub struct Failure {
    what: String,
    because: Option<String>,
    remedy: Option<String>,
}

impl Failure {
    /// `what` went wrong, in a phrase without a full stop.
    pub fn new(what: impl Into<String>) -> Self {
        Failure { what: what.into(), because: None, remedy: None }
    }

    /// The cause, with its own causes.
    #[must_use]
    pub fn because(mut self, error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let inner_text = inner.to_string();
            if !text.contains(&inner_text) {
                text.push_str(": ");
                text.push_str(&inner_text);
            }
            source = inner.source();
        }
        self.because = Some(text);
        self
    }

    /// What the person can do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.what)?;
        if let Some(because) = &self.because {
            write!(out, ": {because}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(out, "\n  try: {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let cause = std::io::Error::other("disk full");
        let failure = Failure::new("cannot write out.pcap").because(cause).remedy("free some space");
        assert_eq!(failure.to_string(), "cannot write out.pcap: disk full\n  try: free some space");
    }
}
