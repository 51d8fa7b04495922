//! The page of the documentation: the score, every figure with its error, what was used to fit, and every row that has no line.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::evaluate::RowResult;
use crate::registry::Class;
use crate::run::Outcome;

use super::{error_words, ours, percent, remarks, yes};

/// `docs/figures.md` of an outcome: the five sources first, then other people's data. Rows that are no quantity of a machine
/// are named at the end, so that each row of the file stands on the page once.
pub fn markdown(outcome: &Outcome) -> String {
    let mut text = String::from(HEAD);
    score(outcome, &mut text);
    let mut source = "";
    let shown = || outcome.rows.iter().filter(|row| unshown(row).is_none());
    let (own, others) = (shown().filter(|row| row.seed.is_some()), shown().filter(|row| row.seed.is_none()));
    for row in own.chain(others) {
        if row.source != source {
            source = &row.source;
            let _ = writeln!(text, "\n## {source}\n\n{COLUMNS}");
        }
        let _ = writeln!(text, "{}", line(row));
    }
    text.push_str("\n## Rows without a line above\n\n");
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &outcome.rows {
        if let Some(why) = unshown(row) {
            groups.entry(why).or_default().push(&row.id.0);
        }
    }
    for (why, ids) in groups {
        let _ = writeln!(text, "- {why}: {}", ids.join(", "));
    }
    text.push_str("\n## Lost\n\n");
    for lost in &outcome.lost {
        let _ = writeln!(text, "- {} ({}): lost in the text", lost.what, lost.place);
    }
    text
}

fn score(outcome: &Outcome, text: &mut String) {
    text.push_str(SCORE_COLUMNS);
    for (name, tally) in outcome.score.groups() {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} |",
            tally.rows,
            tally.missing.len(),
            percent(tally.median_percent),
            percent(tally.worst_percent),
            percent(tally.near_percent),
        );
    }
    let count = |class| outcome.rows.iter().filter(|row| row.class == class).count();
    let _ = writeln!(
        text,
        "\nUsed to fit: {} rows. Implied by declared or fitted values and not scored: {}. Shapes: {} hold, {} do not, {} not run. \
         Ranges and limits: {} hold, {} do not.",
        outcome.fit_set.len(),
        count(Class::Implied),
        outcome.score.shapes.holding,
        outcome.score.shapes.failing,
        outcome.score.shapes.untested,
        outcome.score.contained.holding,
        outcome.score.contained.failing,
    );
}

const HEAD: &str = "\
# The published figures beside ours

Made by `BEELINE_FIGURES_SNAPSHOT=write cargo test -p beeline-figures --test snapshot`; a test compares. `beeline figures`
shows the same, and draws the papers' figures with `--html`. *Published* is what a source prints. *Ours* is **simulated** in
virtual time on the platform that is named ([platforms.md](platforms.md)), never measured on a machine; a remark says what of
a figure is no run but arithmetic on constants of the platform file. Rows r0102 to r0105 and r0934 are run with as
many hosts as they name, whose programs are members of the fabric (`lab/hosts`); a round trip of frames of a NIC is one way twice.
*Fit* says whether a constant of a platform file was solved from the row. What a class means stands in
[lab/figures/README.md](../lab/figures/README.md). The platform files and the fit set are frozen (`lab/figures/frozen.toml`),
which is not blind: the numbers were known, and a row that moved after it had been compared says what it was.

";

const SCORE_COLUMNS: &str = "\
| scored rows of | rows | without a figure | median error | worst | within 15 % |
|---|---|---|---|---|---|
";

const COLUMNS: &str = "| row | quantity | platform | class | fit | published | ours | error | remarks |\n\
    |---|---|---|---|---|---|---|---|---|";

/// Why a row has no line in a table, or `None` if it has one.
fn unshown(row: &RowResult) -> Option<&'static str> {
    let is_of_machine = row.ours.figure().is_some() || !row.machines.is_empty();
    match row.class {
        Class::Input if !is_of_machine => Some("conditions of a measurement, no quantity of a machine"),
        Class::Said if !is_of_machine => {
            Some("claimed, cited, defined or derived, with nothing of ours to set beside it")
        }
        Class::Lost if row.seed.is_none() => Some("other people's rows whose subject is lost"),
        _ => None,
    }
}

fn line(row: &RowResult) -> String {
    let cells = [
        row.id.to_string(),
        row.what.clone(),
        row.machines.join(", "),
        row.class.word().to_owned(),
        yes(row.was_fitted).to_owned(),
        format!("{} {}", row.printed, row.unit),
        ours(row),
        error_words(row),
        remarks(row).join("; "),
    ];
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).join(" | "))
}
