//! What the bytes of a file go through first, reachable for the fuzz targets alone (`fuzz/`).
//!
//! Compiled only with `--cfg fuzzing`, so none of it is part of the crate's interface.

use crate::kept::parsed;
use crate::measure::Timing;
use crate::tuning::Tuning;

/// What was read of one placement.
#[derive(Debug)]
pub struct Read {
    pub line_ns: f64,
    /// Where all of it was timed.
    pub tuning: Option<Tuning>,
    pub timings: Vec<Timing>,
}

/// What is believed of a file of this text that speaks of the machine `fuzz`.
pub fn file(text: &[u8]) -> Option<Vec<Read>> {
    let entries = parsed(text, "fuzz")?.into_iter();
    let read =
        entries.map(|entry| Read { line_ns: entry.line_ns, tuning: entry.tuning(), timings: entry.timings });
    Some(read.collect())
}
