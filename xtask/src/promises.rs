//! The promises of SECURITY.md: each names a test that attacks it, and every test that is named is there.
//!
//! A promise is an item of the list under its heading, or a row of the table of what an allowed uid can do. A test is named
//! `path::a_test`, by the path of a file or folder of tests or of a fuzz target (whether those are there `pointers` checks), or by
//! its name alone, which has three underscores or more.

use std::collections::BTreeSet;
use std::fs;

use crate::failure::{Context, Failure, Outcome, none_found};
use crate::pointers::{is_pointer, spans};
use crate::run::root;
use crate::source::{self, code_only, words};
use crate::table::{Table, tables};

const PAGE: &str = "SECURITY.md";
/// The heading of the list.
const PROMISED: &str = "## What is promised";
/// The heading of the table.
const ALLOWED: &str = "What an allowed uid can do";

/// Checks the committed page.
pub fn run() -> Outcome {
    let page = fs::read_to_string(root().join(PAGE)).while_doing(format!("read {PAGE}"))?;
    let sources = source::files(&["rs"])?;
    let tests: BTreeSet<String> = sources.iter().flat_map(|file| tests(&file.text)).collect();
    let mut promises = items(&page)?;
    promises.extend(rows(&tables(&page))?);
    none_found(format!("promises of {PAGE} that no test attacks"), findings(&page, &promises, &tests))?;
    println!("  {} promises of {PAGE} name tests that are there", promises.len());
    Ok(())
}

/// A promise, and the line on which it begins.
struct Promise {
    line: usize,
    text: String,
}

/// The items of the list.
fn items(page: &str) -> Outcome<Vec<Promise>> {
    let mut found: Vec<Promise> = Vec::new();
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != PROMISED).skip(1);
    for (index, line) in lines.take_while(|(_, line)| !line.starts_with('#')) {
        match (line.strip_prefix("- "), found.last_mut()) {
            (Some(text), _) => found.push(Promise { line: index + 1, text: text.to_owned() }),
            (None, Some(promise)) => promise.text = format!("{}\n{line}", promise.text),
            (None, None) => {}
        }
    }
    if found.is_empty() {
        return Err(Failure::new(format!("{PAGE} has no list under \"{PROMISED}\"")));
    }
    Ok(found)
}

/// The rows of the table: what an allowed uid cannot do, which is the last cell.
fn rows(tables: &[Table]) -> Outcome<Vec<Promise>> {
    let Some(table) = tables.iter().find(|table| table.heading.contains(ALLOWED)) else {
        return Err(Failure::new(format!("{PAGE} has no table under \"{ALLOWED}\"")));
    };
    let promise = |code: &[String], line| Promise {
        line,
        text: code.iter().map(|span| format!("`{span}` ")).collect(),
    };
    Ok(table
        .rows
        .iter()
        .map(|row| promise(row.cells.last().map_or(&[], |cell| cell.code.as_slice()), row.line))
        .collect())
}

fn findings(page: &str, promises: &[Promise], tests: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    for Promise { line, text } in promises {
        if spans(text, names_a_test).is_empty() {
            findings.push(format!("{PAGE}:{line}: this promise names no test that attacks it"));
        }
    }
    for (line, name) in spans(page, is_test_name) {
        if !tests.contains(&name) {
            findings
                .push(format!("{PAGE}:{line}: there is no test `{name}`; name the one that took its place"));
        }
    }
    findings
}

fn names_a_test(span: &str) -> bool {
    let is_in_tests = span.contains("::") || span.contains("tests") || span.contains("fuzz_targets/");
    is_test_name(span) || is_pointer(span) && is_in_tests
}

/// Whether a span has the form of a test's name: a sentence of words. Functions of the C API are called so too.
fn is_test_name(span: &str) -> bool {
    let of_a_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    span.matches('_').count() >= 3 && span.chars().all(of_a_name) && !span.starts_with("beeline_")
}

/// The names of the tests in a file.
fn tests(text: &str) -> Vec<String> {
    let code = code_only(text);
    let after_each = code.split("#[test]").skip(1);
    let name = |rest: &str| {
        let words: Vec<&str> = words(rest).map(|(_, word)| word).collect();
        let at = words.iter().position(|word| *word == "fn")?;
        words.get(at + 1).map(|name| (*name).to_owned())
    };
    after_each.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Security\n\n## What is promised\n- **One** thing that\n  `one_thing_is_so` holds.\n- Another: `a/tests/b.rs`.\n\
        \n## What an allowed uid can do\n\n| offer | can | cannot |\n|---|---|---|\n| any | all | nothing (`nothing_can_be_done`) |\n";

    fn found(page: &str) -> Vec<String> {
        let names = ["one_thing_is_so", "nothing_can_be_done"].map(str::to_owned);
        let mut promises = items(page).unwrap();
        promises.extend(rows(&tables(page)).unwrap());
        findings(page, &promises, &BTreeSet::from(names))
    }

    #[test]
    fn promises_with_tests_pass() {
        assert_eq!(items(PAGE).unwrap().len(), 2);
        assert_eq!(found(PAGE), [""; 0]);
        assert_eq!(found(&PAGE.replace("`a/tests/b.rs`", "`a/b.rs::it_is`")), [""; 0]);
    }

    #[test]
    fn promises_without_a_test_and_tests_that_are_gone_are_named() {
        for (old, new, said) in [
            ("`one_thing_is_so`", "nobody", "SECURITY.md:4: this promise names no test"),
            ("`a/tests/b.rs`", "`a/b.rs`, `max_memory_bytes`", "SECURITY.md:6: this promise names no test"),
            ("(`nothing_can_be_done`)", "", "SECURITY.md:12: this promise names no test"),
            (
                "`one_thing_is_so`",
                "`two_things_are_so`",
                "SECURITY.md:5: there is no test `two_things_are_so`",
            ),
        ] {
            let found = found(&PAGE.replace(old, new));
            assert!(found.len() == 1 && found[0].contains(said), "{new}: {found:?}");
        }
    }

    #[test]
    fn page_without_promises_is_refused() {
        assert!(items("# Security\n").is_err());
        assert!(rows(&[]).is_err());
    }

    #[test]
    fn tests_are_found_behind_their_attribute() {
        let text = "#[test]\n#[ignore = \"slow\"]\nfn one_is_here() {}\nfn helper() {}\n// #[test] fn gone()\n#[test] fn two() {}";
        assert_eq!(tests(text), ["one_is_here", "two"]);
    }
}
