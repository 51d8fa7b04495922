//! Rows whose figure of ours changed after it had been set beside the published one, with what it was before.
//!
//! `moves.csv` begins at the freeze. Taking the snapshots anew adds a line for every row that moved, whatever moved it: a
//! platform file, the simulator, or what the row measures. Lines are never taken out, so a good error that came late shows.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::published::RowId;

/// The committed moves.
pub const FILE: &str = include_str!("../moves.csv");

/// One change of our figure for a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    pub id: RowId,
    /// Our figure before, as the snapshot had it.
    pub before: String,
    /// Our figure since; empty if there is none any more.
    pub after: String,
    /// What was changed.
    pub why: String,
}

/// The committed moves, oldest first.
pub fn committed() -> Result<Vec<Move>, Error> {
    read(FILE)
}

/// The moves of a text in the file's format.
pub fn read(text: &str) -> Result<Vec<Move>, Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().map_err(|error| Error::Csv(error.to_string()))
}
