//! The published figures: one typed [`Row`] for each line of `published_figures.csv`, which is never edited to fit.
//!
//! What a row is worth to us (an input, a figure to reproduce, lost) does not stand there; [`crate::registry`] says it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::unit::Unit;

/// The file, whole.
pub const FILE: &str = include_str!("../published_figures.csv");

/// Name of a row: an `r` and four digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowId(pub String);

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for RowId {
    fn from(id: &str) -> Self {
        RowId(id.to_owned())
    }
}

/// What the number was in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A condition of the measurement.
    Input,
    /// A result of a measurement.
    Outcome,
    /// Said, not measured.
    Claim,
    /// Fixed by the design.
    Definition,
    /// Cited from elsewhere.
    Context,
    /// The most that arithmetic allows.
    Bound,
}

/// Whether the number stands in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The value was read in the source.
    Read,
    /// It is arithmetic on what stands there.
    Derived,
}

/// A line of the file. Every text is as printed; [`Row::value`] and [`Row::unit`] read it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    /// Name of the row.
    pub id: RowId,
    /// Document it stands in.
    pub source: String,
    /// Section or figure of the document.
    pub figure_section: String,
    /// Processor, device and link, in the source's words.
    pub platform: String,
    /// How the data travelled, in the source's words.
    pub interface: String,
    /// What the value is, in the source's words.
    pub quantity: String,
    /// Bytes of the message, or words about it.
    #[serde(rename = "message_size_B")]
    pub message_size: String,
    #[serde(rename = "value")]
    pub printed: String,
    /// The least value that the print allows.
    pub value_lo: Option<f64>,
    /// The greatest.
    pub value_hi: Option<f64>,
    /// Unit of the three, with words such as "about".
    #[serde(rename = "unit")]
    pub printed_unit: String,
    /// What the number was in its source.
    pub role: Role,
    /// Whether the value was read in the source.
    pub status: Status,
    /// What a reader must know before using the row.
    pub notes: String,
}

impl Row {
    /// Returns the printed number, or `None` for a range and for what is no number.
    pub fn value(&self) -> Option<f64> {
        let is_one = self.value_lo.is_some() && self.value_lo == self.value_hi;
        self.printed.parse().ok().filter(|_| is_one)
    }

    /// The unit, where we have that quantity.
    pub fn unit(&self) -> Option<Unit> {
        Unit::parse(&self.printed_unit)
    }

    /// Returns the number that the row's message size begins with, if it begins with one.
    pub fn message_bytes(&self) -> Option<u64> {
        self.message_size.split(' ').next()?.parse().ok()
    }

    /// Which of the five sources Beeline is built on (0 to 4) printed it, if one of them did.
    pub fn seed(&self) -> Option<u8> {
        self.source
            .strip_prefix("seed00")?
            .bytes()
            .next()
            .filter(u8::is_ascii_digit)
            .map(|digit| digit - b'0')
    }
}

/// What people call a source of [`Row::seed`].
pub fn seed_name(seed: u8) -> &'static str {
    match seed {
        0 => "kPIO+WC (NAS'15)",
        1 => "HotOS'25",
        2 => "RAMCloud, HiStar (notes)",
        3 => "eXpressWare",
        _ => "NIQ (ATC'13)",
    }
}

/// All rows, in the file's order.
pub fn rows() -> Result<Vec<Row>, Error> {
    read(FILE)
}

/// The rows of a text in the file's format.
pub fn read(text: &str) -> Result<Vec<Row>, Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().map_err(|error| Error::Csv(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_printed() {
        let rows = rows().unwrap();
        let of = |id: &str| rows.iter().find(|row| row.id == id.into()).unwrap();
        let row = of("r0037");
        assert_eq!((row.value(), row.message_bytes(), row.seed()), (Some(43.0), Some(64), Some(0)));
        assert_eq!((row.role, row.status), (Role::Outcome, Status::Read));
        assert_eq!((of("r0004").value(), of("r0004").value_hi), (None, Some(10.0)), "a range is not a value");
        assert_eq!((of("r0055").message_bytes(), of("r0035").message_bytes()), (Some(64), None));
        assert_eq!((of("r0134").seed(), of("r0131").seed()), (None, Some(4)));
    }

    #[test]
    fn ids_are_used_once() {
        let mut ids: Vec<RowId> = rows().unwrap().into_iter().map(|row| row.id).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
