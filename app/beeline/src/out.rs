//! Standard output and standard error. Results go to the first and must arrive; remarks go to the second and may be lost.
//!
//! A reader that has seen enough (`| head`) closes the pipe: the command then ends at once and in good order. A disk that is
//! full, or anything else that keeps a result from arriving, is a failure. Nothing here panics, as `println!` does.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a text as it is, and flushes.
///
/// # Errors
/// It does not arrive; [`Failure::is_quiet`] when nobody reads any more.
pub fn text(text: impl Display) -> Result<(), Failure> {
    bytes(text.to_string().as_bytes())
}

/// Prints a line, and flushes.
///
/// # Errors
/// Those of [`text`].
pub fn line(text: impl Display) -> Result<(), Failure> {
    bytes(format!("{text}\n").as_bytes())
}

/// Prints bytes as they are, and flushes.
///
/// # Errors
/// Those of [`text`].
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(failed)
}

/// Prints results as JSON, indented for people.
///
/// # Errors
/// Those of [`text`].
pub fn json(results: &impl Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(results).map_err(|e| Failure::new("cannot write JSON").because(e))?)
}

/// What it means that standard output was not written.
pub fn failed(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::nobody_reads(),
        _ => Failure::new("cannot write to standard output").because(error),
    }
}

/// Says something on standard error, if it can be said.
pub fn remark(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_pipe_is_quiet_and_full_disk_is_not() {
        assert!(failed(ErrorKind::BrokenPipe.into()).is_quiet());
        let full = failed(ErrorKind::StorageFull.into());
        assert!(!full.is_quiet() && full.to_string().starts_with("cannot write to standard output: "));
    }
}
