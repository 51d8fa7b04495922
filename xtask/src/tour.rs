//! The tour check: every stop of ARCHITECTURE.md's **follow one …** tables (a frame, a call) names a file that exists and
//! symbols that are defined in it.
//!
//! A stop is a row `| stop | file | symbol | what happens |`; the file is relative to the root, and several symbols are
//! separated by commas. A symbol is a path (`Writer::try_send`): its last part must be defined in the file, its other
//! parts must occur there.

use std::fs;

use crate::failure::{Context, Failure, Outcome, none_found};
use crate::run::root;
use crate::source::{code_only, words};
use crate::table::tables;

/// The page with the table.
const PAGE: &str = "ARCHITECTURE.md";
/// How the headings above the tables begin, lower case.
const HEADING: &str = "follow one ";
/// The one that must be there.
const FRAME: &str = "follow one frame";

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stop {
    name: String,
    file: String,
    symbols: Vec<String>,
}

/// Checks the committed page.
pub fn run() -> Outcome {
    let page = fs::read_to_string(root().join(PAGE)).while_doing(format!("read {PAGE}"))?;
    let stops = stops(&page)?;
    none_found(
        format!("the tour in {PAGE} names what is not there"),
        gone(&stops, |file| fs::read_to_string(root().join(file)).ok()),
    )?;
    println!("  {} stops of the tour are where {PAGE} says", stops.len());
    Ok(())
}

/// The rows of the table.
fn stops(page: &str) -> Outcome<Vec<Stop>> {
    let tours: Vec<_> =
        tables(page).into_iter().filter(|table| table.heading.to_lowercase().contains(HEADING)).collect();
    if !tours.iter().any(|table| table.heading.to_lowercase().contains(FRAME)) {
        return Err(Failure::new(format!("{PAGE} has no table under a heading that says \"{FRAME}\"")));
    }
    let mut stops = Vec::new();
    for row in tours.into_iter().flat_map(|table| table.rows) {
        let cells: Vec<String> = row.cells.into_iter().map(|cell| cell.text).collect();
        let [name, file, symbols, what] = <[String; 4]>::try_from(cells).map_err(|cells| {
            Failure::new(format!("{PAGE}:{}: a row of the tour has {} cells, not 4", row.line, cells.len()))
        })?;
        if what.is_empty() {
            return Err(Failure::new(format!("{PAGE}: stop `{name}` does not say what happens")));
        }
        let symbols = symbols.split(',').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect();
        stops.push(Stop { name, file, symbols });
    }
    if stops.is_empty() { Err(Failure::new(format!("{PAGE}: the tour has no stop"))) } else { Ok(stops) }
}

/// What is wrong with the stops; `read` gives the text of a file.
fn gone(stops: &[Stop], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut findings = Vec::new();
    for Stop { name, file, symbols } in stops {
        let Some(text) = read(file) else {
            findings.push(format!("stop `{name}`: there is no file {file}"));
            continue;
        };
        if symbols.is_empty() {
            findings.push(format!("stop `{name}` names no symbol of {file}"));
        }
        let code = code_only(&text);
        for symbol in symbols {
            if !defines(&code, symbol) {
                findings.push(format!("stop `{name}`: {file} does not define `{symbol}`"));
            }
        }
    }
    findings
}

/// Whether code (without comments and strings) defines the last part of a path and mentions the others.
pub fn defines(code: &str, symbol: &str) -> bool {
    const KEYWORDS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "macro_rules"];
    let all: Vec<&str> = words(code).map(|(_, word)| word).collect();
    let parts: Vec<&str> = symbol.trim_end_matches("()").trim_end_matches('!').split("::").collect();
    let Some((last, outer)) = parts.split_last() else { return false };
    let defined = all.windows(2).any(|pair| KEYWORDS.contains(&pair[0]) && pair[1] == *last);
    // A variant of an enum has no keyword of its own; its enum must be defined here.
    let variant = outer.last().is_some_and(|name| all.windows(2).any(|pair| pair == ["enum", name]))
        && all.contains(last);
    (defined || variant) && outer.iter().all(|part| all.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Architecture\n\n| other | table |\n|---|---|\n| a | b |\n\n## Follow one frame\n\nText.\n\n\
        | stop | file | symbol | what happens |\n|---|---|---|---|\n\
        | send | `host/a.rs` | `Writer::try_send` | words are stored |\n\
        | wire | `nic/b.rs` | `Want::Transmit`, `step` | a frame leaves |\n";

    fn read(file: &str) -> Option<String> {
        match file {
            "host/a.rs" => Some("impl<P> Writer<P> { pub fn try_send(&mut self) {} } // fn gone".to_owned()),
            "nic/b.rs" => Some("pub enum Want<'a> { Transmit { frame: &'a [u8] } }\nfn step() {}".to_owned()),
            _ => None,
        }
    }

    fn findings(page: &str) -> Vec<String> {
        gone(&stops(page).unwrap(), read)
    }

    #[test]
    fn stops_that_are_there_pass() {
        let stops = stops(PAGE).unwrap();
        assert_eq!(stops.len(), 2);
        assert_eq!(stops[1].symbols, ["Want::Transmit", "step"]);
        assert_eq!(findings(PAGE), [] as [String; 0]);
    }

    #[test]
    fn every_tour_is_checked() {
        let second = "\n## Follow one call\n\n| stop | file | symbol | what happens |\n|---|---|---|---|\n\
            | call | `host/c.rs` | `call` | it is called |\n";
        let found = findings(&format!("{PAGE}{second}"));
        assert!(found.len() == 1 && found[0].contains("there is no file host/c.rs"), "{found:?}");
    }

    #[test]
    fn stops_that_are_gone_are_named() {
        for (from, to, said) in [
            ("host/a.rs", "host/c.rs", "stop `send`: there is no file host/c.rs"),
            ("Writer::try_send", "Writer::gone", "does not define `Writer::gone`"),
            ("Writer::try_send", "Reader::try_send", "does not define `Reader::try_send`"),
            ("Writer::try_send", "Writer", "does not define `Writer`"),
            ("Want::Transmit", "Want::Receive", "does not define `Want::Receive`"),
            ("`Writer::try_send`", "", "names no symbol"),
        ] {
            let found = findings(&PAGE.replace(from, to));
            assert!(found.len() == 1 && found[0].contains(said), "{to}: {found:?}");
        }
    }

    #[test]
    fn a_page_without_a_whole_table_is_refused() {
        let refused = |page: &str| stops(page).unwrap_err().to_string();
        assert!(refused("# Follow one frame\nNo table.").contains("no table"));
        assert!(refused(&PAGE.replace("Follow", "Leave")).contains("no table"));
        assert!(refused(&PAGE[..PAGE.find("| send").unwrap()]).contains("no stop"));
        assert!(refused(&PAGE.replace("a frame leaves", "")).contains("does not say what happens"));
    }
}
