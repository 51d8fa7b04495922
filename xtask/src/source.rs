//! The files of the project, and Rust source without its comments and strings, for checks that read code.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Context, Outcome};
use crate::run::root;

/// Folders that hold what tools made.
const SKIPPED: [&str; 6] = ["target", ".git", ".venv", "corpus", "artifacts", "out"];

/// A file: its path from the root of the workspace, with `/`, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path from the root.
    pub path: String,
    /// Contents.
    pub text: String,
}

impl SourceFile {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        SourceFile { path: path.into(), text: text.into() }
    }

    /// The part of the name after the last dot.
    pub fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|ext| ext.to_str()).unwrap_or_default()
    }
}

/// Whether nobody wrote the file by hand.
pub fn is_generated(file: &SourceFile) -> bool {
    file.path.starts_with("spec/generated/")
}

/// Every file of the project with one of these extensions, by path.
pub fn files(extensions: &[&str]) -> Outcome<Vec<SourceFile>> {
    let top = root();
    let mut found = Vec::new();
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).while_doing(format!("look into {}", folder.display()))? {
            let path = entry.while_doing(format!("look into {}", folder.display()))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !SKIPPED.contains(&name) {
                folders.push(path);
            } else if path
                .extension()
                .and_then(|ext| ext.to_str())
                .is_some_and(|ext| extensions.contains(&ext))
            {
                found.push(read(&top, path)?);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn read(top: &Path, path: PathBuf) -> Outcome<SourceFile> {
    let text = fs::read_to_string(&path).while_doing(format!("read {}", path.display()))?;
    let relative = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
    Ok(SourceFile::new(relative, text))
}

/// `text` with comments and the insides of strings replaced by spaces; lines and columns stay.
pub fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kept, blanked) = next_piece(rest, first);
        out.push_str(&rest[..kept]);
        out.extend(rest[kept..kept + blanked].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[kept + blanked..];
    }
    out
}

/// Bytes to keep, then bytes to blank, at the start of `rest`.
fn next_piece(rest: &str, first: char) -> (usize, usize) {
    if rest.starts_with("//") {
        return (0, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (0, block_comment(rest));
    }
    if first == '"' {
        return (1, string_body(&rest[1..]));
    }
    if let Some(hashes) = raw_string_hashes(rest) {
        let open = 2 + hashes;
        let close = format!("\"{}", "#".repeat(hashes));
        return (open, rest[open..].find(&close).map_or(rest.len() - open, |at| at + close.len()));
    }
    if first == '\'' {
        return char_literal(rest);
    }
    if first.is_alphanumeric() || first == '_' {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return (word, 0);
    }
    (first.len_utf8(), 0)
}

/// Bytes of a block comment, nested ones included.
fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Bytes of a string after its opening quote, the closing one included.
fn string_body(body: &str) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    body.len()
}

/// Number of `#` when `rest` starts a raw string.
fn raw_string_hashes(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// A character literal is blanked; a lifetime is kept.
fn char_literal(rest: &str) -> (usize, usize) {
    let body = &rest[1..];
    if let Some(escape) = body.strip_prefix('\\') {
        let skip = escape.chars().next().map_or(0, char::len_utf8);
        let end = escape.get(skip..).and_then(|tail| tail.find('\'')).map_or(0, |at| 1 + skip + at + 1);
        return (1, end);
    }
    let mut chars = body.char_indices().skip(1);
    match chars.next() {
        Some((at, '\'')) => (1, at + 1),
        _ => (1, 0),
    }
}

/// Identifiers and keywords of code that went through [`code_only`], with their line numbers (from 1).
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(index, line)| {
        let pieces = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        pieces.filter(|word| !word.is_empty()).map(move |word| (index + 1, word))
    })
}

/// The name of the package that a manifest describes.
pub fn package_name(manifest: &str) -> Option<&str> {
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
    Some(name.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_vanish_and_code_stays() {
        let code = code_only(
            "let a = \"un\\\"safe\"; // unsafe\n/* unsafe /* nested */ */ fn b<'a>(c: &'a u8) {}\n",
        );
        assert!(!code.contains("safe"), "{code}");
        assert!(code.contains("fn b<'a>(c: &'a u8) {}"), "{code}");
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn raw_strings_and_characters_vanish_too() {
        let code = code_only(
            r##"let r = r#"unsafe " x"#; let c = '"'; let d = '\''; unsafe_code(); for r in x {}"##,
        );
        assert!(!words(&code).any(|(_, word)| word == "unsafe"), "{code}");
        assert!(code.contains("unsafe_code()") && code.contains("for r in x"), "{code}");
    }

    #[test]
    fn words_carry_their_lines() {
        assert_eq!(words("a.b\n  c_d").collect::<Vec<_>>(), [(1, "a"), (1, "b"), (2, "c_d")]);
    }
}
