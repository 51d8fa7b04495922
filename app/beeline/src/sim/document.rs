//! Results as JSON has them, in a file and in a page.

use serde::Serialize;

use super::row::Row;

/// The rows of a sweep, and where they come from.
#[derive(Serialize)]
pub struct Document<'a> {
    /// What kind of figures these are.
    label: &'static str,
    /// Of which program.
    version: &'static str,
    /// The points, in the order of the sweep.
    rows: &'a [Row],
}

impl<'a> Document<'a> {
    pub fn new(rows: &'a [Row]) -> Self {
        Document { label: "simulated", version: env!("CARGO_PKG_VERSION"), rows }
    }
}
