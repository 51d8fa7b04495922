//! Citations of decisions and of sections of the design, in every file: what is cited must be there.
//!
//! `docs/design.md, decision 4` (or `decisions 2 and 4`, `decisions 3 to 7`) names decisions of that page,
//! `docs/design.md, Vocabulary` a heading of it, and `decision 0004`, `record 0004` or `docs/decisions/0004` a record. A number of
//! fewer than four digits behind anything else says neither. A citation may go over the end of a line. Claims of the
//! papers are checked elsewhere (`claims`), links and paths in back-ticks too (`links`, `pointers`, `readmes`).

use std::collections::BTreeSet;
use std::fs;

use crate::failure::{Context, Failure, Outcome, none_found};
use crate::run::root;
use crate::source::{self, SourceFile};

/// The page with the decisions of the whole system.
const DESIGN: &str = "docs/design.md";
/// The folder of the records.
const RECORDS: &str = "docs/decisions";
/// Kinds of files in which people cite.
const KINDS: [&str; 15] =
    ["rs", "sv", "svh", "py", "md", "toml", "json", "rdl", "sby", "c", "h", "cpp", "sh", "proto", "tcl"];
/// This file has citations that must be found wrong; the page of the design says what forms are.
const EXEMPT: [&str; 1] = ["xtask/src/citations.rs"];
const RECORD_DIGITS: usize = 4;

/// Names that a page can cite.
struct Known {
    /// Numbers of the decisions of the design.
    decisions: BTreeSet<u32>,
    /// Headings of the design.
    headings: Vec<String>,
    /// Files of the records, without folder.
    records: Vec<String>,
}

/// A word of a file, without the marks of comments, and its line.
struct Word<'a> {
    line: usize,
    text: &'a str,
}

/// Checks every file of the project.
pub fn run() -> Outcome {
    let page = fs::read_to_string(root().join(DESIGN)).while_doing(format!("read {DESIGN}"))?;
    let records = records()?;
    let known = Known::new(&page, records)?;
    let files = source::files(&KINDS)?;
    let mut count = 0;
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str())) {
        let (cited, wrong) = check(file, &known);
        count += cited;
        findings.extend(wrong);
    }
    none_found("citations of what is not there", findings)?;
    println!("  {count} citations of {DESIGN} and {RECORDS} name what is there");
    Ok(())
}

/// Names of the files of the records.
fn records() -> Outcome<Vec<String>> {
    let entries = fs::read_dir(root().join(RECORDS)).while_doing(format!("look into {RECORDS}"))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect::<std::io::Result<_>>().while_doing(format!("look into {RECORDS}"))
}

impl Known {
    /// What `page`, the design, and the `records` have.
    fn new(page: &str, records: Vec<String>) -> Outcome<Self> {
        let headings: Vec<String> = page
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| line.trim_start_matches('#').trim().to_owned())
            .collect();
        let number = |heading: &String| {
            let rest = heading.strip_prefix("Decision ")?;
            rest.split(':').next().and_then(|number| number.trim().parse().ok())
        };
        let decisions: BTreeSet<u32> = headings.iter().filter_map(number).collect();
        if decisions.is_empty() {
            return Err(Failure::new(format!("{DESIGN} has no heading \"Decision N: ...\"")));
        }
        Ok(Known { decisions, headings, records })
    }

    /// Whether there is a record; `name` is its number, or its file.
    fn has_record(&self, name: &str) -> bool {
        if name.len() == RECORD_DIGITS {
            self.records.iter().any(|record| record.starts_with(&format!("{name}-")))
        } else {
            self.records.iter().any(|record| record == name)
        }
    }

    /// Whether a heading begins with this word.
    fn has_heading(&self, first: &str) -> bool {
        self.headings.iter().any(|heading| heading.split(' ').next() == Some(first))
    }
}

/// How many citations a file has, and what is wrong with them.
fn check(file: &SourceFile, known: &Known) -> (usize, Vec<String>) {
    let all = words(&file.text);
    let (mut count, mut findings) = (0, Vec::new());
    for (at, word) in all.iter().enumerate() {
        let mut say = |why: String| findings.push(format!("{}:{}: {why}", file.path, word.line));
        if let Some(name) = record_path(word.text) {
            count += 1;
            if !known.has_record(name) {
                say(format!("there is no record {RECORDS}/{name}"));
            }
        }
        let before = at.checked_sub(1).map_or("", |before| all[before].text);
        let name = bare(word.text).to_lowercase();
        let is_record = ["record", "records"].contains(&name.as_str());
        if is_record || ["decision", "decisions"].contains(&name.as_str()) {
            let of_design = file.path == DESIGN || is_design(before);
            let mut cited = numbers(&all[at + 1..]);
            // Records of other things have numbers too.
            cited.retain(|number| !is_record || number.len() == RECORD_DIGITS);
            for number in cited {
                count += 1;
                known.wrong(&number, of_design).into_iter().for_each(&mut say);
            }
        } else if is_design(before) && before.ends_with(',') {
            let section = bare(word.text);
            if section.starts_with(|c: char| c.is_uppercase()) {
                count += 1;
                if !known.has_heading(section) {
                    say(format!("{DESIGN} has no section that begins with \"{section}\""));
                }
            }
        }
    }
    (count, findings)
}

impl Known {
    /// Why a number behind "decision" names nothing.
    fn wrong(&self, number: &str, of_design: bool) -> Option<String> {
        if number.len() == RECORD_DIGITS {
            return (!self.has_record(number)).then(|| format!("there is no record {number} in {RECORDS}"));
        }
        if !of_design {
            return Some(format!(
                "\"decision {number}\" says not which; write \"{DESIGN}, decision {number}\", or a record's four digits"
            ));
        }
        let is_known = number.parse().is_ok_and(|number| self.decisions.contains(&number));
        (!is_known).then(|| format!("{DESIGN} has no decision {number}"))
    }
}

/// Words of a text; marks of comments at the beginning of a line are none.
fn words(text: &str) -> Vec<Word<'_>> {
    const MARKS: [&str; 7] = ["//!", "///", "//", "#", "*", "/*", ">"];
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let pieces = line.split_whitespace().enumerate();
        let kept = pieces.filter(|(place, piece)| *place > 0 || !MARKS.contains(piece));
        found.extend(kept.map(|(_, text)| Word { line: index + 1, text }));
    }
    found
}

/// A word without what stands around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word is the path of the design, relative to whatever folder.
fn is_design(word: &str) -> bool {
    bare(word).ends_with("design.md")
}

/// The numbers of "4", "2 and 4", "3, 4 and 6" or "3 to 7".
fn numbers(words: &[Word<'_>]) -> Vec<String> {
    let digits = |word: &str| -> String { bare(word).chars().take_while(char::is_ascii_digit).collect() };
    let mut found = Vec::new();
    let mut rest = words;
    while let [first, tail @ ..] = rest {
        let number = digits(first.text);
        if number.is_empty() {
            break;
        }
        found.push(number);
        rest = match tail {
            [join, next @ ..] if ["and", "to", "or"].contains(&join.text) => next,
            _ if first.text.ends_with(',') => tail,
            _ => break,
        };
    }
    found
}

/// What a path into the folder of the records names: the number of a record, or its file.
fn record_path(word: &str) -> Option<&str> {
    let (_, name) = word.split_once("decisions/")?;
    let end = name.find(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)).unwrap_or(name.len());
    let name = name[..end].trim_end_matches(['.', '-']);
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# The design\n## Vocabulary\n## Decisions\n### Decision 3: a\n### Decision 4: b\n";

    fn known() -> Known {
        Known::new(PAGE, vec!["0004-cached.md".to_owned(), "README.md".to_owned()]).unwrap()
    }

    fn checked(path: &str, text: &str) -> (usize, Vec<String>) {
        check(&SourceFile::new(path, text), &known())
    }

    #[test]
    fn citations_of_what_is_there_pass() {
        for (count, text) in [
            (1, "//! pushed, never read (docs/design.md, decision 3)."),
            (2, "docs/design.md, decisions 3 and 4; HotOS'25"),
            (2, "docs/design.md, decisions 3 to 4"),
            (1, "//! a sender (docs/design.md,\n//! decision 3). More"),
            (1, "  // a sender (docs/design.md, decision\n  // 4), so"),
            (1, "{\"source\": \"docs/design.md, Vocabulary (escape)\"}"),
            (1, "docs/design.md, decision 4, takes 3"),
            (1, "records say so (decision 0004)."),
            (2, "[decision 0004](decisions/0004-cached.md)"),
            (1, "docs/decisions/0004; more"),
            (1, "Record 0004 says so; record 7 of the batch"),
            (0, "docs/design.md, which says it; a decision is taken; `docs/decisions/NNNN`"),
        ] {
            assert_eq!(checked("a.rs", text), (count, Vec::new()), "{text}");
        }
        assert_eq!(checked("docs/design.md", "as decision 4 says").1, [] as [String; 0]);
    }

    #[test]
    fn citations_of_nothing_are_named_with_their_line() {
        for (text, said) in [
            ("\n(docs/design.md, decision 5)", "a.rs:2: docs/design.md has no decision 5"),
            ("docs/design.md, decisions 3 and 5", "has no decision 5"),
            ("docs/design.md, decisions 3 to 9", "has no decision 9"),
            ("docs/design.md, Layers", "no section that begins with \"Layers\""),
            ("(decision 4)", "\"decision 4\" says not which; write \"docs/design.md, decision 4\""),
            ("DESIGN decision 4", "says not which"),
            ("records 0004 and 0005", "there is no record 0005"),
            ("decision 0005", "there is no record 0005 in docs/decisions"),
            ("docs/decisions/0005", "there is no record docs/decisions/0005"),
            ("`docs/decisions/0004-other.md`", "there is no record docs/decisions/0004-other.md"),
        ] {
            let (_, found) = checked("a.rs", text);
            assert!(found.len() == 1 && found[0].contains(said), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_design_without_decisions_is_refused() {
        assert!(Known::new("# The design\n", Vec::new()).is_err());
    }
}
