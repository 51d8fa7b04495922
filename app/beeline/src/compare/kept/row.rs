//! A file of a kept run, row by row; an error names file, line and column.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use csv::{ReaderBuilder, StringRecord};

use crate::failure::Failure;

/// A row, and where it stands.
#[derive(Debug)]
pub struct Row {
    path: PathBuf,
    line: u64,
    columns: &'static [&'static str],
    record: StringRecord,
}

/// The rows of a file with exactly these columns.
///
/// # Errors
/// The file cannot be read, is cut off, or is none with these columns.
pub fn rows(path: &Path, columns: &'static [&'static str]) -> Result<Vec<Row>, Failure> {
    let failed = |e| whole(Failure::new(format!("cannot read {}", path.display())).because(e));
    let bytes = std::fs::read(path).map_err(failed)?;
    if bytes.last() != Some(&b'\n') {
        let line = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        return Err(at(path, line, "the file ends in the middle of a line"));
    }
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(&bytes[..]);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| wrong_record(path, &e))?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push(Row { path: path.to_owned(), line, columns, record });
    }
    if rows.is_empty() {
        return Err(at(path, 1, "the file is empty"));
    }
    let header = rows.remove(0);
    if header.record != *columns {
        let found: Vec<_> = header.record.iter().collect();
        let what = format!("the columns are {}, not {}", found.join(","), columns.join(","));
        return Err(at(path, header.line, &what));
    }
    Ok(rows)
}

/// An error in a line of a file.
pub fn at(path: &Path, line: u64, what: &str) -> Failure {
    whole(Failure::new(format!("{}, line {line}: {what}", path.display())))
}

fn whole(failure: Failure) -> Failure {
    failure.remedy(
        "name a folder as this version's `beeline compare --csv DIR` writes it; where a file was changed or lost, measure again",
    )
}

fn wrong_record(path: &Path, error: &csv::Error) -> Failure {
    let line = error.position().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            at(path, line, &format!("{len} columns where the first line has {expected_len}"))
        }
        csv::ErrorKind::Utf8 { err, .. } => {
            at(path, line, &format!("column {} is no text (UTF-8)", err.field() + 1))
        }
        _ => at(path, line, &error.to_string()),
    }
}

impl Row {
    /// The text of a column that the file has.
    pub fn text(&self, column: &str) -> &str {
        let index = self.columns.iter().position(|name| *name == column);
        index.and_then(|index| self.record.get(index)).expect("the file was read with this column")
    }

    /// An error about a column.
    pub fn wrong(&self, column: &str, wanted: &str) -> Failure {
        let what = format!("column {column}: {:?} is not {wanted}", self.text(column));
        at(&self.path, self.line, &what)
    }

    /// A column's value.
    pub fn parse<T: FromStr>(&self, column: &str, wanted: &str) -> Result<T, Failure> {
        self.text(column).parse().map_err(|_| self.wrong(column, wanted))
    }

    /// Returns a whole number that fits its type, or says what stands there.
    pub fn count<T: FromStr>(&self, column: &str) -> Result<T, Failure> {
        self.parse(column, "a whole number that fits")
    }

    /// A time, a rate or a share.
    pub fn number(&self, column: &str) -> Result<f64, Failure> {
        const WANTED: &str = "a number, zero or more";
        let number: f64 = self.parse(column, WANTED)?;
        let is_sound = number.is_finite() && number >= 0.0;
        is_sound.then_some(number).ok_or_else(|| self.wrong(column, WANTED))
    }

    /// Returns the one of `words` that stands there, or lists them in the error.
    pub fn one_of(&self, column: &str, words: &[&'static str]) -> Result<&'static str, Failure> {
        let found = words.iter().find(|word| **word == self.text(column));
        found.copied().ok_or_else(|| self.wrong(column, &format!("one of {}", words.join(", "))))
    }
}
