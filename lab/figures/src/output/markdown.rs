//! The page of the documentation: every figure, its error, and what was used to fit.

use std::fmt::Write;

use crate::evaluate::RowResult;
use crate::registry::Class;
use crate::run::Outcome;

use super::{error_words, ours, percent, remarks, yes};

/// `docs/figures.md` of an outcome. Inputs that are no quantity of a machine, and what was only said, are left to the CSV.
pub fn markdown(outcome: &Outcome) -> String {
    let mut text = String::from(HEAD);
    let all = &outcome.score.all;
    let _ = writeln!(
        text,
        "Scored: {} rows and {} without a figure. Median error {}, {} within 15 % (aims: 5 % and 90 %, none missing). \
         Used to fit: {} rows. Shapes: {} hold, {} do not. Ranges and limits: {} hold, {} do not.\n",
        all.rows,
        all.missing.len(),
        percent(all.median_percent),
        percent(all.near_percent),
        outcome.fit_set.len(),
        outcome.score.shapes.holding,
        outcome.score.shapes.failing,
        outcome.score.contained.holding,
        outcome.score.contained.failing,
    );
    let mut source = "";
    for row in outcome.rows.iter().filter(|row| is_shown(row)) {
        if row.source != source {
            source = &row.source;
            let _ = writeln!(text, "\n## {source}\n\n{COLUMNS}");
        }
        let _ = writeln!(text, "{}", line(row));
    }
    text.push_str("\n## Lost\n\n");
    for lost in &outcome.lost {
        let _ = writeln!(text, "- {} ({}): lost in the text", lost.what, lost.place);
    }
    text
}

const HEAD: &str = "\
# The published figures beside ours

Made by `BEELINE_FIGURES_SNAPSHOT=write cargo test -p beeline-figures --test snapshot`; a test compares. `beeline figures`
shows the same, and draws the papers' figures with `--html`. *Published* is what a source prints, *ours* is **simulated** in
virtual time on the platform that is named ([platforms.md](platforms.md)), never measured on a machine. *Fit* says whether a
constant of a platform file was solved from the row. What a class means stands in [lab/figures/README.md](../lab/figures/README.md).
The platform files and the fit set are frozen (`lab/figures/frozen.toml`), which is not blind: the numbers were known.

";

const COLUMNS: &str = "| row | quantity | platform | class | fit | published | ours | error | remarks |\n\
    |---|---|---|---|---|---|---|---|---|";

fn is_shown(row: &RowResult) -> bool {
    let is_of_machine = row.ours.figure().is_some();
    match row.class {
        Class::Input | Class::Said => is_of_machine,
        _ => row.seed.is_some() || row.class != Class::Lost,
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
