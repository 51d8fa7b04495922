//! The claims of the papers: every row of docs/papers/*.md has a number, a state, and what that state needs: code and a test,
//! code and a figure, or a reason why there is neither.
//!
//! Whether what a row points at is there is checked for all pages alike (`pointers`). Published figures are named by
//! rows of `bench/published/figures.csv`, which are checked here.

use std::fs;

use crate::failure::{Context, Failure, Outcome, none_found};
use crate::pointers::is_pointer;
use crate::run::root;
use crate::table::{Cell, Row, Table, tables};

const FIGURES: &str = "bench/published/figures.csv";
/// The head row of a table of claims.
const COLUMNS: [&str; 5] = ["claim", "section", "state", "code", "test or figure"];
/// The letter of each source, and its page.
const PAGES: [(char, &str); 5] = [
    ('K', "docs/papers/kpio.md"),
    ('H', "docs/papers/hotos25.md"),
    ('R', "docs/papers/ramcloud.md"),
    ('D', "docs/papers/dolphin.md"),
    ('N', "docs/papers/niq.md"),
];

/// How far a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Built, and a test holds it.
    Built,
    /// Built and tested but for what the cell names.
    Partly,
    /// A run in virtual time shows it.
    Simulated,
    /// A benchmark or a command measures it on this machine.
    Measured,
    /// Not built, not applicable or lost, for the reason that the cell gives.
    Absent,
}

/// Checks the committed pages.
pub fn run() -> Outcome {
    let figures = fs::read_to_string(root().join(FIGURES)).while_doing(format!("read {FIGURES}"))?;
    let (mut findings, mut count, mut built) = (Vec::new(), 0, 0);
    for (letter, page) in PAGES {
        let text = fs::read_to_string(root().join(page)).while_doing(format!("read {page}"))?;
        let claims = claims(page, &text)?;
        findings.extend(unheld((letter, page), &claims, &figures));
        let states = claims.rows.iter().filter_map(|row| state(&row.cells[2].text));
        built += states.filter(|(state, _)| *state != State::Absent).count();
        count += claims.rows.len();
    }
    none_found("claims of the papers that nothing holds".to_owned(), findings)?;
    println!("  of {count} claims {built} point at code and at a test or figure, the others say why not");
    Ok(())
}

fn claims(page: &str, text: &str) -> Outcome<Table> {
    let is_claims = |table: &Table| table.columns.iter().map(|cell| cell.text.as_str()).eq(COLUMNS);
    let mut found = tables(text).into_iter().filter(is_claims);
    match (found.next(), found.next()) {
        (Some(table), None) if !table.rows.is_empty() => Ok(table),
        _ => Err(Failure::new(format!(
            "{page} must have one table of claims; its columns are {}",
            COLUMNS.join(" | ")
        ))),
    }
}

/// Reads a state and the reason behind its colon.
fn state(cell: &str) -> Option<(State, &str)> {
    let (word, reason) = cell.split_once(':').unwrap_or((cell, ""));
    let state = match word.trim() {
        "built" => State::Built,
        "partly" => State::Partly,
        "simulated" => State::Simulated,
        "measured" => State::Measured,
        "not built" | "not applicable" | "lost" => State::Absent,
        _ => return None,
    };
    Some((state, reason.trim()))
}

/// What is wrong with the claims of a page; `figures` is the file of published figures.
fn unheld((letter, page): (char, &str), claims: &Table, figures: &str) -> Vec<String> {
    let known: Vec<&str> = figures.lines().filter_map(|line| line.split(',').next()).collect();
    let mut findings = Vec::new();
    for (index, row) in claims.rows.iter().enumerate() {
        let [claim, section, ..] = row.cells.as_slice() else { continue };
        let mut say = |what: String| findings.push(format!("{page}:{}: \"{}\" {what}", row.line, claim.text));
        let number = format!("{letter}{} ", index + 1);
        if !claim.text.starts_with(&number) {
            say(format!("does not begin with its number, {number}"));
        }
        if section.text.is_empty() {
            say("does not say where it stands in its source; name the section".to_owned());
        }
        if let Some(what) = lacking(row) {
            say(what.to_owned());
        }
        for id in row.cells.iter().flat_map(|cell| published(&cell.text)) {
            if !known.contains(&id) {
                say(format!("names {id}, which is no row of {FIGURES}; name the row, or add it"));
            }
        }
    }
    findings
}

/// What a row lacks that its state needs.
fn lacking(row: &Row) -> Option<&'static str> {
    let [_, _, cell, code, test] = row.cells.as_slice() else { return Some("has not five cells") };
    let Some((state, reason)) = state(&cell.text) else {
        return Some(
            "has no state; write built, partly: what is missing, simulated, measured, not built: why, not applicable: why, \
             or lost: what",
        );
    };
    let is_test = |span: &String| {
        span.contains("::")
            || span.contains("/tests/")
            || span.contains("spec/vectors/")
            || span.contains("nic/formal/")
    };
    let has_test = test.code.iter().any(is_test);
    let has_figure = published(&test.text).next().is_some();
    let has_measurement = test.code.iter().any(|span| span.starts_with("bench/") || span.starts_with("app/"));
    match state {
        State::Absent => reason.is_empty().then_some("does not say why there is nothing"),
        State::Partly if reason.is_empty() => Some("does not say what is missing"),
        _ if !points(code) => Some("points at no code; name a file in back-ticks"),
        State::Built if !has_test => Some("is built, and no test holds it; name `path::test`"),
        State::Partly if !has_test && !has_figure && !has_measurement => {
            Some("points at no test or figure; name `path::test`")
        }
        State::Simulated if !has_test && !has_figure => {
            Some("is simulated, and names neither a test nor a published row beside its figure")
        }
        State::Measured if !has_measurement => {
            Some("is measured, and names no benchmark or command that does it")
        }
        State::Built | State::Partly | State::Simulated | State::Measured => None,
    }
}

fn points(cell: &Cell) -> bool {
    cell.code.iter().any(|span| is_pointer(span))
}

/// Ids of published figures in a text: an `r` and four digits.
fn published(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| {
        word.len() == 5
            && word.strip_prefix('r').is_some_and(|id| id.bytes().all(|digit| digit.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: &str = "id,source\nr0001,K\nr0002,K\n";
    const HEAD: &str = "| claim | section | state | code | test or figure |\n|---|---|---|---|---|\n";

    fn findings(row: &str) -> Vec<String> {
        let table = claims("page.md", &format!("# Claims\n\n{HEAD}{row}\n")).unwrap();
        unheld(('K', "page.md"), &table, FIGURES)
    }

    #[test]
    fn rows_that_have_what_their_state_needs_pass() {
        for row in [
            "| K1 fast (r0001, r0002) | I | built | `a/b.rs` | `a/b.rs::it_is` |",
            "| K1 fast | I | partly: no RTL | `a/b.rs` | `spec/vectors/cases/a.json` |",
            "| K1 fast | I | simulated | `a/b.rs` | ns: r0001: 5 (+1.0 %) |",
            "| K1 fast | I | measured | `a/b.rs` | `bench/src/store.rs` |",
            "| K1 fast | I | not built: no Linux driver | | |",
            "| K1 fast | I | lost: the picture | | |",
        ] {
            assert_eq!(findings(row), [""; 0], "{row}");
        }
    }

    #[test]
    fn rows_that_lack_what_their_state_needs_are_named() {
        for (row, said) in [
            (
                "| K1 fast | I | built | the driver | `a/b.rs::it_is` |",
                "page.md:5: \"K1 fast\" points at no code",
            ),
            ("| K1 fast | I | built | `a/b.rs` | `bench/src/store.rs` |", "no test holds it"),
            ("| K1 fast | I | partly | `a/b.rs` | `a/b.rs::it_is` |", "does not say what is missing"),
            ("| K1 fast | I | simulated | `a/b.rs` | |", "names neither a test nor"),
            ("| K1 fast | I | measured | `a/b.rs` | `a/b.rs::it_is` |", "names no benchmark"),
            ("| K1 fast | I | not built | | |", "does not say why there is nothing"),
            ("| K1 fast | I | works | `a/b.rs` | `a/b.rs::it_is` |", "has no state"),
            ("| K2 fast | I | lost: all | | |", "does not begin with its number, K1"),
            ("| K1 fast | | lost: all | | |", "does not say where it stands"),
            (
                "| K1 fast (r0009) | I | lost: all | | |",
                "names r0009, which is no row of bench/published/figures.csv",
            ),
        ] {
            let found = findings(row);
            assert!(found.len() == 1 && found[0].contains(said), "{row}: {found:?}");
        }
    }

    #[test]
    fn page_without_its_table_is_refused() {
        let refused = |page: &str| claims("page.md", page).unwrap_err().to_string();
        assert!(refused("# Claims\n").contains("page.md must have one table of claims"));
        assert!(refused(HEAD).contains("page.md must have one table of claims"));
    }
}
