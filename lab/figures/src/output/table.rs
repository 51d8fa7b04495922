//! Tables that fit a terminal.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::{holds_word, ours, percent, remarks, short, yes};
use crate::evaluate::RowResult;
use crate::fences::HYPOTHESES;
use crate::freeze::State;
use crate::published::seed_name;
use crate::registry::Class;
use crate::run::Outcome;
use crate::score::{Holds, MEDIAN_TARGET_PERCENT, NEAR_PERCENT, NEAR_TARGET_PERCENT, Tally};

/// Columns a table may take.
pub const WIDTH: u16 = 100;
/// Columns of a row's description.
const WORDS: usize = 26;

/// All tables of an outcome, with headings. Rows of others than the five sources are counted, not listed, unless `all` is set.
pub fn tables(outcome: &Outcome, all: bool) -> String {
    let mut text = String::from("Published figures beside simulated ones (platforms in virtual time)\n");
    text += &format!("{}\n", state(&outcome.state));
    for conflict in &outcome.conflicts {
        text += &format!("CONFLICT: {conflict}\n");
    }
    for seed in 0..5 {
        let rows: Vec<&RowResult> = outcome.rows.iter().filter(|row| row.seed == Some(seed)).collect();
        let Some(first) = rows.first() else { continue };
        text += &format!("\n{}\n{}", first.source, row_table(&rows));
        for lost in outcome.lost.iter().filter(|lost| lost.seed == seed) {
            text += &format!("lost in the text: {} ({})\n", lost.what, lost.place);
        }
    }
    let others: Vec<&RowResult> = outcome.rows.iter().filter(|row| row.seed.is_none()).collect();
    let listed: Vec<&RowResult> =
        others.iter().copied().filter(|row| all || row.class == Class::Scored).collect();
    text += &format!("\nOthers: {} of {} rows\n{}", listed.len(), others.len(), row_table(&listed));
    text += &disagreements(outcome);
    text += &fences(outcome);
    text += &left_out(outcome);
    text += &score(outcome);
    text
}

/// How the platform files are to the freeze, in a sentence.
pub fn state(state: &State) -> String {
    match state {
        State::Open => {
            "Not frozen: platform files and fit set may still follow the rows they are compared with."
                .to_owned()
        }
        State::Frozen { edits: 0 } => {
            "Frozen: platform files and fit set are as they were before scoring.".to_owned()
        }
        State::Frozen { edits } => {
            format!(
                "Platform files were frozen before scoring; of {edits} edits since, each is written down with the rows it moved \
                 (frozen.toml)."
            )
        }
        State::Changed(changes) => {
            let (first, more) = changes.split_at(changes.len().min(FIRST_CHANGES));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            format!("CHANGED since the freeze, not recorded: {}{more}.", first.join("; "))
        }
    }
}

/// Changes that are named; the others are counted.
const FIRST_CHANGES: usize = 1;

/// An empty table: words to the left, figures (from column `figures` on) to the right.
fn empty(header: &[&str], figures: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_width(WIDTH).set_header(header.to_vec());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((u16::from(index > 0), 0));
        if index >= figures {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row_table(rows: &[&RowResult]) -> String {
    let mut table =
        empty(&["row", "quantity", "class", "fit", "published", "unit", "ours", "error", "in"], 4);
    for row in rows {
        table.add_row([
            Cell::new(&row.id),
            Cell::new(cut(&row.what, WORDS)),
            Cell::new(row.class.word()),
            Cell::new(if row.was_fitted { "yes" } else { "" }),
            Cell::new(cut(&row.printed, 10)),
            Cell::new(cut(&row.unit, 8)),
            Cell::new(ours(row)),
            Cell::new(row.error_percent.map_or(String::new(), |error| format!("{error:+.1} %"))),
            Cell::new(holds_word(row)),
        ]);
    }
    format!("{table}\n")
}

/// A text of at most so many columns.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns - 1).collect();
    format!("{}…", kept.trim_end())
}

/// What was said of rows that are not as published: what in the source disagrees, why there is nothing, what a shape showed.
fn disagreements(outcome: &Outcome) -> String {
    let mut text = String::from("\nRemarks\n");
    for row in outcome.rows.iter().filter(|row| row.seed.is_some() || row.class == Class::Shape) {
        for remark in remarks(row) {
            text += &wrap(&format!("{}: {remark}", row.id));
        }
    }
    text
}

/// A paragraph no wider than a table, its later lines indented.
fn wrap(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > usize::from(WIDTH) {
            lines += "\n      ";
            column = 6;
        } else if column > 0 {
            lines += " ";
            column += 1;
        }
        lines += word;
        column += width;
    }
    lines + "\n"
}

fn fences(outcome: &Outcome) -> String {
    let header: Vec<&str> =
        ["platform", "published, ns", "file says"].into_iter().chain(HYPOTHESES).collect();
    let mut table = empty(&header, 1);
    for row in &outcome.fences {
        let mut cells = vec![
            Cell::new(format!("{} ({})", row.platform, row.row)),
            Cell::new(short(row.published_ns)),
            Cell::new(row.chosen.as_deref().unwrap_or("-")),
        ];
        cells.extend(row.ours_ns.iter().map(|ns| Cell::new(ns.map_or("-".to_owned(), short))));
        table.add_row(cells);
    }
    format!("\nA fence after each 64 B message, ns, by what it waits for (besides empty buffers)\n{table}\n")
}

fn left_out(outcome: &Outcome) -> String {
    if outcome.left_out.is_empty() {
        return String::new();
    }
    let mut table =
        empty(&["platform left out", "knobs of", "replaced", "kept", "rows", "median", "fitted"], 2);
    for left in &outcome.left_out {
        let fitted = outcome.score.platforms.iter().find(|score| score.platform == left.platform);
        table.add_row([
            Cell::new(&left.platform),
            Cell::new(left.kin.as_deref().unwrap_or("no kin")),
            Cell::new(left.replaced.len()),
            Cell::new(left.kept.len()),
            Cell::new(left.errors_percent.len()),
            Cell::new(percent(left.median_percent)),
            Cell::new(percent(fitted.and_then(|score| score.tally.median_percent))),
        ]);
    }
    format!(
        "\nEach platform with the knobs of its nearest kin: median error so, and as fitted\n{table}\n\
         all: {}\n",
        left_out_words(outcome)
    )
}

/// The errors of all platforms left out, in a clause.
pub fn left_out_words(outcome: &Outcome) -> String {
    let error = outcome.left_out_error;
    format!(
        "median error {} over {} rows, {} within {NEAR_PERCENT} %",
        percent(error.median_percent),
        error.rows,
        percent(error.near_percent)
    )
}

fn score(outcome: &Outcome) -> String {
    let score = &outcome.score;
    let mut table =
        empty(&["platform", "knobs", "fitted rows", "scored", "missing", "median", "worst", "near"], 1);
    let mut add = |name: &str, knobs: String, fitted: String, tally: &Tally| {
        table.add_row([
            Cell::new(name),
            Cell::new(knobs),
            Cell::new(fitted),
            Cell::new(tally.rows),
            Cell::new(tally.missing.len()),
            Cell::new(percent(tally.median_percent)),
            Cell::new(percent(tally.worst_percent)),
            Cell::new(percent(tally.near_percent)),
        ]);
    };
    for platform in &score.platforms {
        let (knobs, fitted) = (platform.knobs.len(), platform.fitted_rows.len());
        add(&cut(&platform.platform, 33), knobs.to_string(), fitted.to_string(), &platform.tally);
    }
    for (seed, tally) in &score.seeds {
        add(seed_name(*seed), String::new(), String::new(), tally);
    }
    for (name, tally) in score.groups() {
        add(name, String::new(), String::new(), tally);
    }
    let holds = |holds: Holds| {
        format!("{} hold, {} do not, {} not run", holds.holding, holds.failing, holds.untested)
    };
    format!(
        "\nScore (near: error at most {NEAR_PERCENT} %; aims: median at most {MEDIAN_TARGET_PERCENT} %, near at least \
         {NEAR_TARGET_PERCENT} %, none missing)\n{table}\n\
         aims met by the five sources: {}\nranges and limits: {}; shapes: {};\narithmetic: {}\n",
        yes(score.own.is_met()),
        holds(score.contained),
        holds(score.shapes),
        holds(score.computed),
    )
}
