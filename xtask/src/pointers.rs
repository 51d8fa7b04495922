//! Paths and symbols in back-ticks on the pages that people find their way with: each must be in the project.
//!
//! A span without blanks is a path when it has a slash in it or ends in `.rs` or `.md`; it is relative to the root.
//! `path::Symbol` says that the file defines the symbol, `path::a_test` that it has a function of that name. Spans that
//! begin with a slash are paths of the machine, not of the project. Links are checked elsewhere (`links`), and
//! the READMEs of folders (`readmes`).

use std::fs;

use pulldown_cmark::{Event, Options, Parser};

use crate::failure::{Context, Outcome, none_found};
use crate::run::root;
use crate::source::{SourceFile, code_only, words};
use crate::table::line_of;
use crate::tour::defines;

const PAGES: [&str; 13] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/design.md",
    "docs/papers.md",
    "docs/papers/kpio.md",
    "docs/papers/hotos25.md",
    "docs/papers/ramcloud.md",
    "docs/papers/dolphin.md",
    "docs/papers/niq.md",
    "docs/interfaces.md",
    "docs/glossary.md",
];

/// What the root of the project holds.
pub trait Project {
    /// Whether there is a file or folder.
    fn has(&self, path: &str) -> bool;
    /// The text of a file.
    fn text(&self, path: &str) -> Option<String>;
}

/// The project on disk.
pub struct Checkout;

impl Project for Checkout {
    fn has(&self, path: &str) -> bool {
        root().join(path).exists()
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(root().join(path)).ok()
    }
}

/// Checks the committed pages.
pub fn run() -> Outcome {
    let read = |page: &&str| {
        let text = fs::read_to_string(root().join(page)).while_doing(format!("read {page}"))?;
        Ok(SourceFile::new(*page, text))
    };
    let pages = PAGES.iter().map(read).collect::<Outcome<Vec<_>>>()?;
    let found: usize = pages.iter().map(|page| pointers(&page.text).len()).sum();
    none_found("pages point at what is not there", lost(&pages, &Checkout))?;
    println!("  {found} paths and symbols of {} pages are where they say", pages.len());
    Ok(())
}

/// What is wrong with the pages.
fn lost(pages: &[SourceFile], project: &impl Project) -> Vec<String> {
    let mut findings = Vec::new();
    for page in pages {
        for (line, span) in pointers(&page.text) {
            if let Some(why) = wrong(&span, project) {
                findings.push(format!("{}:{line}: `{span}`: {why}", page.path));
            }
        }
    }
    findings
}

fn wrong(span: &str, project: &impl Project) -> Option<String> {
    let (path, symbol) = span.split_once("::").map_or((span, None), |(path, symbol)| (path, Some(symbol)));
    if !project.has(path) {
        return Some(format!("there is no {path}; write the path, from the root, of what took its place"));
    }
    symbol.and_then(|symbol| missing_symbol(path, symbol, project))
}

/// Reasons for which a file does not have a symbol.
pub fn missing_symbol(path: &str, symbol: &str, project: &impl Project) -> Option<String> {
    let Some(text) = project.text(path) else {
        return Some(format!("{path} is a folder; name the file in it that has {symbol}"));
    };
    let code = code_only(&text);
    let last = symbol.rsplit("::").next().unwrap_or(symbol);
    if last.starts_with(|c: char| c.is_ascii_lowercase()) && !has_function(&code, last) {
        return Some(format!("{path} has no `fn {last}`; name the one that took its place, or leave it out"));
    }
    (!defines(&code, symbol))
        .then(|| format!("{path} does not define `{symbol}`; name what took its place, or leave it out"))
}

fn has_function(code: &str, name: &str) -> bool {
    let all: Vec<&str> = words(code).map(|(_, word)| word).collect();
    all.windows(2).any(|pair| pair == ["fn", name])
}

/// Spans in back-ticks that point into the project, with the line each stands on.
fn pointers(page: &str) -> Vec<(usize, String)> {
    spans(page, is_pointer)
}

/// Spans in back-ticks that are `wanted`, with the line each stands on.
pub fn spans(page: &str, wanted: impl Fn(&str) -> bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Code(span) = event
            && wanted(&span)
        {
            found.push((line_of(page, range.start), span.into_string()));
        }
    }
    found
}

/// Whether a span in back-ticks is a path of the project, with or without a symbol.
pub fn is_pointer(span: &str) -> bool {
    let path = span.split_once("::").map_or(span, |(path, _)| path);
    let of_a_path = |c: char| c.is_alphanumeric() || "_./-*".contains(c);
    let looks = path.contains('/') || path.ends_with(".rs") || path.ends_with(".md");
    looks && path.chars().all(of_a_path) && !path.starts_with(['/', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample;

    impl Project for Sample {
        fn has(&self, path: &str) -> bool {
            path == "host" || path == "host/" || self.text(path).is_some()
        }

        fn text(&self, path: &str) -> Option<String> {
            (path == "host/a.rs").then(|| {
                "impl Writer { fn reserve() {} }\n// fn gone\nmod tests { #[test] fn one_arrives() {} }\nstruct Writer;\n\
                 mod inner {}"
                    .to_owned()
            })
        }
    }

    fn findings(text: &str) -> Vec<String> {
        lost(&[SourceFile::new("docs/page.md", text)], &Sample)
    }

    #[test]
    fn what_is_there_passes() {
        let page = "`host/a.rs` `host/` `host/a.rs::Writer` `host/a.rs::Writer::reserve` `host/a.rs::one_arrives`\n\
                    `host/a.rs::tests::one_arrives` `Writer::gone` `/sys/gone` `cargo xtask a/b` `https://a/b` `a`\n\
                    ```\n`host/gone.rs`\n```\n";
        assert_eq!(findings(page), [] as [String; 0]);
        assert_eq!(pointers(page).len(), 6);
    }

    #[test]
    fn what_is_gone_is_named_with_page_line_and_remedy() {
        for (text, said) in [
            (
                "\n\n`host/gone.rs`",
                "docs/page.md:3: `host/gone.rs`: there is no host/gone.rs; write the path",
            ),
            ("| a |\n|---|\n| `hots/a.rs` |", "docs/page.md:3: `hots/a.rs`: there is no hots/a.rs"),
            ("`gone.rs`", "there is no gone.rs"),
            ("`GONE.md`", "there is no GONE.md"),
            ("`host/*.rs`", "there is no host/*.rs"),
            ("`host/a.rs::two_arrive`", "host/a.rs has no `fn two_arrive`; name the one"),
            ("`host/a.rs::gone`", "has no `fn gone`"),
            ("`host/a.rs::inner`", "has no `fn inner`"),
            ("`host/a.rs::Reader`", "does not define `Reader`; name what took its place"),
            ("`host/a.rs::Reader::reserve`", "does not define `Reader::reserve`"),
            ("`host/::Writer`", "host/ is a folder; name the file"),
        ] {
            let found = findings(text);
            assert!(found.len() == 1 && found[0].contains(said), "{text}: {found:?}");
        }
    }
}
