//! Relative links of every Markdown file: the file must exist, and the heading that a `#` names.
//!
//! Links to the outside are not followed: a check that needs the network fails for reasons that are not ours.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::failure::{Outcome, none_found};
use crate::run::root;
use crate::source::{self, SourceFile};

/// Checks the whole project.
pub fn run() -> Outcome {
    let pages = source::files(&["md"])?;
    let top = root();
    none_found("links that lead nowhere", broken(&pages, |path| top.join(path).exists()))?;
    println!("  the relative links of {} Markdown files lead somewhere", pages.len());
    Ok(())
}

/// What is wrong with the links of `pages`; `exists` tells whether a path from the root is there.
fn broken(pages: &[SourceFile], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&str, Vec<String>> =
        pages.iter().map(|page| (page.path.as_str(), headings(&page.text))).collect();
    let mut findings = Vec::new();
    for page in pages {
        for (line, link) in links(&page.text) {
            if let Some(why) = wrong(&page.path, &link, &anchors, &exists) {
                findings.push(format!("{}:{line}: [{link}] {why}", page.path));
            }
        }
    }
    findings
}

fn wrong(
    page: &str,
    link: &str,
    anchors: &BTreeMap<&str, Vec<String>>,
    exists: &impl Fn(&str) -> bool,
) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = match file {
        "" => page.to_owned(),
        file if file.starts_with('/') => {
            return Some("is absolute; write it relative to the page".to_owned());
        }
        file => match normal(Path::new(page).parent().unwrap_or(Path::new("")), file) {
            Some(target) => target,
            None => return Some("leads out of the project".to_owned()),
        },
    };
    if !exists(&target) {
        return Some(format!("there is no {target}"));
    }
    let anchor = anchor?;
    let known = anchors.get(target.as_str())?;
    if known.iter().any(|heading| heading == anchor) {
        None
    } else {
        Some(format!("{target} has no heading #{anchor}"))
    }
}

/// `folder/file` without `.` and `..`; `None` when it leaves the root.
fn normal(folder: &Path, file: &str) -> Option<String> {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path.to_string_lossy().into_owned())
}

/// Destinations of links and images, with the line each stands on.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            found.push((text[..range.start].matches('\n').count() + 1, dest_url.into_string()));
        }
    }
    found
}

/// Anchors of the headings, as GitHub makes them.
fn headings(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => current = Some(String::new()),
            Event::Text(piece) | Event::Code(piece) => {
                if let Some(heading) = &mut current {
                    heading.push_str(&piece);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&current.take().unwrap_or_default());
                let earlier = found.iter().filter(|known| **known == slug).count();
                found.push(if earlier == 0 { slug } else { format!("{slug}-{earlier}") });
            }
            _ => {}
        }
    }
    found
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let pages = [
            SourceFile::new("docs/page.md", text),
            SourceFile::new("README.md", "# The `beeline` program\n## Twice\n## Twice\n"),
        ];
        broken(&pages, |path| ["docs/page.md", "README.md", "spec", "spec/nic.rdl"].contains(&path))
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# Here\n[a](../README.md) [b](../README.md#the-beeline-program) [c](#here) [d](../spec/nic.rdl)\n\
                    [e](https://example.org/x#y) ![f](../spec) [g](../README.md#twice-1)\n```\n[no](link.md)\n```\n";
        assert_eq!(findings(text), [] as [String; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_named_with_their_line() {
        for (text, said) in [
            ("one\n\n[a](gone.md)", "docs/page.md:3: [gone.md] there is no docs/gone.md"),
            ("[a](../README.md#absent)", "README.md has no heading #absent"),
            ("[a](#absent)", "docs/page.md has no heading #absent"),
            ("[a](/README.md)", "is absolute"),
            ("[a](../../x.md)", "leads out of the project"),
            ("![a](picture.svg)", "there is no docs/picture.svg"),
        ] {
            let found = findings(text);
            assert!(found.len() == 1 && found[0].contains(said), "{text}: {found:?}");
        }
    }
}
