//! An outcome as something to read: tables for a terminal, JSON, CSV, a page with plots.

mod beside;
mod markdown;
mod page;
mod table;

use crate::error::Error;
use crate::evaluate::{Ours, RowResult};
use crate::run::Outcome;
use crate::snapshot::six_digits;

pub use beside::{renewed, unsaid};
pub use markdown::markdown;
pub use page::page;
pub use table::{WIDTH, tables};

/// Returns the whole outcome as indented JSON.
///
/// # Errors
/// [`Error::Output`] if a value has no form in JSON.
pub fn json(outcome: &Outcome) -> Result<String, Error> {
    serde_json::to_string_pretty(outcome).map_err(|error| Error::Output(error.to_string()))
}

/// Every row as CSV: what was published, what is ours, the error, whether the row was used to fit, and why it is what it is.
pub fn csv(outcome: &Outcome) -> Result<String, Error> {
    let fail = |error: String| Error::Output(error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = [
        "id",
        "source",
        "section",
        "quantity",
        "platforms",
        "class",
        "used_to_fit",
        "published",
        "unit",
        "ours",
        "error_percent",
        "inside",
        "notes",
    ];
    writer.write_record(header).map_err(|error| fail(error.to_string()))?;
    for row in &outcome.rows {
        let fields = [
            row.id.to_string(),
            row.source.clone(),
            row.section.clone(),
            row.what.clone(),
            row.machines.join(" "),
            row.class.word().to_owned(),
            yes(row.was_fitted).to_owned(),
            row.printed.clone(),
            row.unit.clone(),
            row.ours.figure().map(six_digits).unwrap_or_default(),
            row.error_percent.map(|error| format!("{error:.2}")).unwrap_or_default(),
            holds_word(row).to_owned(),
            remarks(row).join("; "),
        ];
        writer.write_record(fields).map_err(|error| fail(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| fail(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| fail(error.to_string()))
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Whether a range, a limit, a shape or arithmetic holds; empty where that is no question.
fn holds_word(row: &RowResult) -> &'static str {
    match (&row.ours, row.is_inside) {
        (Ours::Shape(finding), _) => yes(finding.holds),
        (_, Some(is_inside)) => yes(is_inside),
        (_, None) => "",
    }
}

/// The error of a row in a few words, or whether it holds.
fn error_words(row: &RowResult) -> String {
    match (row.error_percent, holds_word(row)) {
        (Some(error), _) => format!("{error:+.1} %"),
        (None, "yes") => "holds".to_owned(),
        (None, "no") => "does not hold".to_owned(),
        (None, _) => "-".to_owned(),
    }
}

/// Everything said of a row, its shape's figures and why it has none included.
fn remarks(row: &RowResult) -> Vec<String> {
    let own = match &row.ours {
        Ours::Shape(finding) => Some(finding.evidence.clone()),
        Ours::None(why) if !why.is_empty() => Some(why.clone()),
        Ours::None(_) | Ours::Figure(_) => None,
    };
    let moved = row
        .seen_before
        .iter()
        .map(|moved| format!("moved after it had been compared, {} until then: {}", moved.before, moved.why));
    let mut remarks: Vec<String> = own.into_iter().chain(row.notes.iter().cloned()).chain(moved).collect();
    remarks.dedup();
    remarks
}

/// Our side of a row in a few words.
fn ours(row: &RowResult) -> String {
    match &row.ours {
        Ours::Figure(value) => short(*value),
        Ours::Shape(finding) if finding.holds => "holds".to_owned(),
        Ours::Shape(_) => "fails".to_owned(),
        Ours::None(_) => "-".to_owned(),
    }
}

/// A number with four digits that count.
fn short(value: f64) -> String {
    let text = format!("{value:.3e}");
    match text.parse::<f64>() {
        Ok(rounded) if rounded.abs() >= 1e7 || (rounded != 0.0 && rounded.abs() < 1e-4) => text,
        Ok(rounded) => rounded.to_string(),
        Err(_) => text,
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1} %"))
}
