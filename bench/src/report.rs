//! The result of a bench: figures, checks, and what could not be measured.

use serde::{Deserialize, Serialize};

use crate::{Check, Figure};

/// Result of one bench.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub figures: Vec<Figure>,
    /// Targets, and whether they are met.
    pub checks: Vec<Check>,
    /// Figures that could not be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Benches that failed. What the others measured stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// What a reader of the figures has to know besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Report {
    /// Adds what another bench gave.
    pub fn append(&mut self, mut other: Report) {
        self.figures.append(&mut other.figures);
        self.checks.append(&mut other.checks);
        self.missing.append(&mut other.missing);
        self.failed.append(&mut other.failed);
        self.notes.append(&mut other.notes);
    }
}

/// A figure that cannot be had on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The bench it belongs to.
    pub bench: String,
    /// Figure that would have been measured.
    pub name: String,
    /// Why it was not, and what to do about it.
    pub why: String,
}

/// A bench that ended in an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its name.
    pub bench: String,
    /// The error with its causes.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;

    #[test]
    fn a_report_comes_back_from_json() -> Result<(), serde_json::Error> {
        let [bench, name, why] = ["b", "n", "not installed"].map(str::to_owned);
        let row =
            Row { bench: "b", name: "n", kernel: "cached", memory: "private", size_bytes: 64, count: 10 };
        let mut report = Report { figures: vec![Figure::rate(row, vec![1.0])], ..Report::default() };
        let missing = Report { missing: vec![Missing { bench, name, why }], ..Report::default() };
        report.append(missing);
        assert_eq!((report.figures.len(), report.missing.len()), (1, 1));
        assert_eq!(serde_json::from_str::<Report>(&serde_json::to_string(&report)?)?, report);
        Ok(())
    }
}
