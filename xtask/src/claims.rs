//! The claims of the papers: every row of docs/papers.md points at code and at a test or figure, or says that it is not
//! built yet, or that the source lost it.
//!
//! Whether what a row points at is there is checked for all pages alike (`pointers`). Published figures are named by
//! rows of `bench/published/figures.csv`, which are checked here.

use std::fs;

use crate::failure::{Context, Failure, Outcome, none_found};
use crate::pointers::is_pointer;
use crate::run::root;
use crate::table::{Cell, Table, tables};

const PAGE: &str = "docs/papers.md";
const FIGURES: &str = "bench/published/figures.csv";
/// The head row of a table of claims.
const COLUMNS: [&str; 4] = ["claim", "section", "code", "test or figure"];
/// The sources, each of which has a table.
const SOURCES: [&str; 5] = ["K:", "H:", "R:", "D:", "N:"];

/// Checks the committed page.
pub fn run() -> Outcome {
    let page = fs::read_to_string(root().join(PAGE)).while_doing(format!("read {PAGE}"))?;
    let figures = fs::read_to_string(root().join(FIGURES)).while_doing(format!("read {FIGURES}"))?;
    let claims = claims(&page)?;
    none_found(format!("claims of {PAGE} that nothing holds"), unheld(&claims, &figures))?;
    let rows = || claims.iter().flat_map(|table| &table.rows);
    let built = rows().filter(|row| !excused(&row.cells[2])).count();
    println!(
        "  of {} claims {built} point at code and at a test or figure, the others say why not",
        rows().count()
    );
    Ok(())
}

/// The tables of claims; every source must have one.
fn claims(page: &str) -> Outcome<Vec<Table>> {
    let is_claims = |table: &Table| table.columns.iter().map(|cell| cell.text.as_str()).eq(COLUMNS);
    let found: Vec<Table> = tables(page).into_iter().filter(is_claims).collect();
    for source in SOURCES {
        if !found.iter().any(|table| table.heading.starts_with(source) && !table.rows.is_empty()) {
            return Err(Failure::new(format!(
                "{PAGE} has no claims under a heading that begins with \"{source}\"; its columns are {}",
                COLUMNS.join(" | ")
            )));
        }
    }
    Ok(found)
}

/// What is wrong with the claims; `figures` is the file of published figures.
fn unheld(claims: &[Table], figures: &str) -> Vec<String> {
    let known: Vec<&str> = figures.lines().filter_map(|line| line.split(',').next()).collect();
    let mut findings = Vec::new();
    for row in claims.iter().flat_map(|table| &table.rows) {
        let [claim, section, code, test] = row.cells.as_slice() else { continue };
        let mut say = |what: String| findings.push(format!("{PAGE}:{}: \"{}\" {what}", row.line, claim.text));
        if section.text.is_empty() {
            say("does not say where it stands in its source; name the section".to_owned());
        }
        if !points(code) && !excused(code) {
            say("points at no code; name a file in back-ticks, or say \"not built yet\"".to_owned());
        }
        if !points(test) && !excused(test) && !excused(code) {
            say("points at no test or figure; name `path::test`, or say \"not built yet\"".to_owned());
        }
        for id in row.cells.iter().flat_map(|cell| published(&cell.text)) {
            if !known.contains(&id) {
                say(format!("names {id}, which is no row of {FIGURES}; name the row, or add it"));
            }
        }
    }
    findings
}

fn points(cell: &Cell) -> bool {
    cell.code.iter().any(|span| is_pointer(span))
}

fn excused(cell: &Cell) -> bool {
    cell.text.contains("not built yet") || cell.text.trim() == "lost"
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

    fn page(row: &str) -> String {
        let head = "| claim | section | code | test or figure |\n|---|---|---|---|\n";
        let good = "| x | I | lost | |\n";
        let first = format!("# Claims\n\n## {} x\n\n{head}{row}\n\n", SOURCES[0]);
        SOURCES[1..].iter().fold(first, |page, source| format!("{page}## {source} x\n\n{head}{good}\n"))
    }

    fn findings(row: &str) -> Vec<String> {
        unheld(&claims(&page(row)).unwrap(), FIGURES)
    }

    #[test]
    fn rows_that_point_or_say_why_not_pass() {
        for row in [
            "| fast (r0001, r0002) | I | `a/b.rs` | `a/b.rs::it_is` |",
            "| fast | I | `a/b.rs` | figures not built yet |",
            "| fast | I | not built yet (RTL) | |",
            "| fast | I | lost | |",
        ] {
            assert_eq!(findings(row), [] as [String; 0], "{row}");
        }
    }

    #[test]
    fn rows_that_nothing_holds_are_named() {
        for (row, said) in [
            ("| fast | I | the driver | `a/b.rs::it_is` |", "docs/papers.md:7: \"fast\" points at no code"),
            ("| fast | I | `a/b.rs` | the tests |", "points at no test or figure"),
            ("| fast | I | `a/b.rs` | |", "points at no test or figure"),
            ("| fast | I | `Writer::send` | `a/b.rs::it_is` |", "points at no code"),
            ("| fast | | `a/b.rs` | `a/b.rs::it_is` |", "does not say where it stands"),
            ("| fast (r0009) | I | lost | |", "names r0009, which is no row of bench/published/figures.csv"),
        ] {
            let found = findings(row);
            assert!(found.len() == 1 && found[0].contains(said), "{row}: {found:?}");
        }
    }

    #[test]
    fn a_source_without_claims_is_noticed() {
        let refused = |page: &str| claims(page).unwrap_err().to_string();
        let good = page("| fast | I | lost | |");
        assert!(refused(&good.replace("## N: x", "## M: x")).contains("begins with \"N:\""));
        assert!(refused(&good.replacen("| claim |", "| said |", 1)).contains("begins with \"K:\""));
    }
}
