//! Paths and symbols in back-ticks in the README of every folder: each must be in the project.
//!
//! A path is relative to the root, to the README's folder, to the `src` in that folder, or to a folder above; behind
//! another path it may be relative to the folder of that one, as in "`src/host/window.rs`, `memory.rs`". What counts as
//! a path is as on the pages of `pointers`, with the names of more kinds of files. In place of a `*` name the folder.

use std::path::Path;

use crate::failure::{Outcome, none_found};
use crate::pointers::{Checkout, Project, missing_symbol, spans};
use crate::source::{self, SourceFile};

/// The name of the pages.
const NAME: &str = "README.md";
/// Kinds of files of which a name alone is a path.
const KINDS: [&str; 12] = ["rs", "md", "sv", "toml", "csv", "py", "rdl", "tcl", "h", "c", "cpp", "json"];

/// Checks every README.
pub fn run() -> Outcome {
    let mut pages = source::files(&["md"])?;
    pages.retain(|page| Path::new(&page.path).file_name().is_some_and(|name| name == NAME));
    let found: usize = pages.iter().map(|page| spans(&page.text, is_path).len()).sum();
    let lost: Vec<String> = pages.iter().flat_map(|page| lost(page, &Checkout)).collect();
    none_found("READMEs point at what is not there", lost)?;
    println!("  {found} paths and symbols of {} READMEs are where they say", pages.len());
    Ok(())
}

/// Whether a span in back-ticks is a path, with or without a symbol.
fn is_path(span: &str) -> bool {
    let path = span.split_once("::").map_or(span, |(path, _)| path);
    let is_name = path.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && KINDS.contains(&kind));
    let of_a_path = |c: char| c.is_alphanumeric() || "_./-*".contains(c);
    (path.contains('/') || is_name) && path.chars().all(of_a_path) && !path.starts_with(['/', '-', '*'])
}

/// What is wrong with a README.
fn lost(page: &SourceFile, project: &impl Project) -> Vec<String> {
    let own = page.path.strip_suffix(NAME).unwrap_or_default();
    let mut findings = Vec::new();
    let mut last = own.to_owned();
    for (line, span) in spans(&page.text, is_path) {
        let (path, symbol) =
            span.split_once("::").map_or((span.as_str(), None), |(path, symbol)| (path, Some(symbol)));
        let places = places(path, own, &last).into_iter().map(|place| place + path);
        let Some(found) = places.into_iter().find(|place| project.has(place)) else {
            findings.push(format!(
                "{}:{line}: `{span}`: there is no {path} here, above or at the root; write what took its place",
                page.path
            ));
            continue;
        };
        if let Some(why) = symbol.and_then(|symbol| missing_symbol(&found, symbol, project)) {
            findings.push(format!("{}:{line}: `{span}`: {why}", page.path));
        }
        last = found.rfind('/').map_or_else(String::new, |slash| found[..=slash].to_owned());
    }
    findings
}

/// The folders that `path`, in the README of `own` behind a path into `last`, may be relative to; the likely one first.
/// Each is empty or ends in a slash.
fn places(path: &str, own: &str, last: &str) -> Vec<String> {
    let mut places = vec![String::new(), own.to_owned(), format!("{own}src/")];
    places.extend(own.match_indices('/').map(|(slash, _)| own[..=slash].to_owned()));
    // A name in a list is meant beside the one before it, also where another file is called so.
    places.insert(if path.contains('/') { places.len() } else { 0 }, last.to_owned());
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample;

    impl Project for Sample {
        fn has(&self, path: &str) -> bool {
            const THERE: [&str; 6] = [
                "nic/model",
                "nic/model/src/nic.rs",
                "nic/model/src/mmio/",
                "nic/syn/area.csv",
                "spec/",
                "host",
            ];
            THERE.contains(&path) || self.text(path).is_some()
        }

        fn text(&self, path: &str) -> Option<String> {
            (path == "nic/model/src/mmio/queue.rs").then(|| "struct Queue;".to_owned())
        }
    }

    fn findings(path: &str, text: &str) -> Vec<String> {
        lost(&SourceFile::new(path, text), &Sample)
    }

    #[test]
    fn what_is_there_passes() {
        let readme = "`nic/model` `src/nic.rs` `nic.rs` `mmio/` `src/mmio/queue.rs` `queue.rs::Queue` `spec/`\n\
            `make run` `Queue` `mmio` `--flag/x` `/dev/shm` `Device::next` `.rs` `*_proof.sv`\n```\n`gone.rs`\n```\n";
        assert_eq!(findings("nic/model/README.md", readme), [] as [String; 0]);
        assert_eq!(findings("nic/model/src/mmio/README.md", "`queue.rs` `nic.rs`"), ["x"; 0]);
        assert_eq!(findings("nic/README.md", "`syn/area.csv` `area.csv`"), ["x"; 0]);
    }

    #[test]
    fn what_is_gone_is_named_with_page_and_line() {
        for (text, said) in [
            ("\n\n`src/gone.rs`", "nic/model/README.md:3: `src/gone.rs`: there is no src/gone.rs here"),
            ("`gone.csv`", "there is no gone.csv"),
            ("`link/`", "there is no link/"),
            ("`queue.rs`", "there is no queue.rs"),
            ("| a |\n|---|\n| `mmio/gone.sv` |", "README.md:3: `mmio/gone.sv`"),
            ("`mmio/queue.rs::Ring`", "does not define `Ring`"),
            ("`nic/model::Nic`", "is a folder"),
        ] {
            let found = findings("nic/model/README.md", text);
            assert!(found.len() == 1 && found[0].contains(said), "{text}: {found:?}");
        }
    }
}
