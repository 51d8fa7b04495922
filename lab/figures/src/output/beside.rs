//! Figures beside the claims of another page: `r0029: 216 (-6.9 %)`, ours and its error, kept as a run gives them.

use crate::evaluate::RowResult;
use crate::run::Outcome;

use super::{error_words, ours};

/// What a page says of a row.
fn said(row: &RowResult) -> String {
    format!("{}: {} ({})", row.id, ours(row), error_words(row))
}

/// The text of a page with every `rNNNN: ... (...)` of it as this outcome has it. Names of rows alone are left as they are.
pub fn renewed(text: &str, outcome: &Outcome) -> String {
    let mut renewed = text.to_owned();
    for row in &outcome.rows {
        let name = format!("{}: ", row.id);
        let mut from = 0;
        while let Some(at) = renewed[from..].find(&name).map(|at| from + at) {
            let Some(end) = renewed[at..].find(')').map(|end| at + end + 1) else { break };
            let now = said(row);
            renewed.replace_range(at..end, &now);
            from = at + now.len();
        }
    }
    renewed
}

/// Rows of the five sources that are compared with a machine's figure or shape, and that a page says nothing of.
pub fn unsaid<'a>(text: &str, outcome: &'a Outcome) -> Vec<&'a RowResult> {
    let is_compared = |row: &&RowResult| row.seed.is_some() && row.class.is_compared();
    outcome.rows.iter().filter(is_compared).filter(|row| !text.contains(&said(row))).collect()
}
