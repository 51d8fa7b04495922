//! Shape of files: length, names, READMEs, nothing unfinished.

use std::collections::BTreeMap;
use std::path::Path;

use crate::source::{SourceFile, code_only, is_generated, words};

/// Lines a file of code may have.
const LINES: usize = 600;
/// Lines the README of a folder may have; the root's is for everybody and may have more.
const README_LINES: usize = 30;
/// Names that say nothing about what is inside.
const VAGUE: [&str; 9] =
    ["util", "utils", "common", "manager", "managers", "helper", "helpers", "misc", "stuff"];

/// Files of code that are longer than a reader holds in mind.
pub fn too_long(files: &[SourceFile]) -> Vec<String> {
    let code = |file: &&SourceFile| ["rs", "c", "h", "sv", "py", "sh", "rdl"].contains(&file.extension());
    files
        .iter()
        .filter(code)
        .filter(|file| !is_generated(file))
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES)
        .map(|(file, lines)| format!("{}: {lines} lines, at most {LINES}; split it by concern", file.path))
        .collect()
}

/// Files and folders with a name that could hold anything.
pub fn vague_names(files: &[SourceFile]) -> Vec<String> {
    let vague = |file: &&SourceFile| {
        let stem = Path::new(&file.path).with_extension("");
        stem.iter().any(|part| VAGUE.contains(&part.to_string_lossy().to_lowercase().as_str()))
    };
    let finding =
        |file: &SourceFile| format!("{}: a name says what is inside; this one says nothing", file.path);
    files.iter().filter(vague).map(finding).collect()
}

/// Examples of two crates with one name: `cargo run --example` at the root cannot tell them apart, and Cargo writes both programs
/// to one path.
pub fn doubled_examples(files: &[SourceFile]) -> Vec<String> {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs") {
        let Some((folder, rest)) = file.path.split_once("/examples/") else { continue };
        let name = rest.split('/').next().map(|first| first.trim_end_matches(".rs")).unwrap_or_default();
        let first = *known.entry(name).or_insert(folder);
        if first != folder {
            findings.push(format!("{}: {first} has an example `{name}` too", file.path));
        }
    }
    findings
}

/// Marks that say that something is missing.
pub fn unfinished(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs" && !file.path.starts_with("xtask/")) {
        for (index, line) in file.text.lines().enumerate() {
            if ["TODO", "FIXME", "XXX"].iter().any(|mark| line.contains(mark)) {
                findings.push(format!(
                    "{}:{}: a mark of something missing; finish it or leave it out",
                    file.path,
                    index + 1
                ));
            }
        }
        for (line, word) in words(&code_only(&file.text)) {
            if ["todo", "unimplemented"].contains(&word) {
                findings.push(format!("{}:{line}: `{word}` is a stub", file.path));
            }
        }
    }
    findings
}

/// Folders of crates without a README, and READMEs of folders that are too long.
pub fn readmes(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        if file.path.ends_with("/Cargo.toml") {
            let readme = folder.join("README.md").to_string_lossy().into_owned();
            if files.iter().all(|other| other.path != readme) {
                findings
                    .push(format!("{readme} is missing: what the folder is, enter from, leave to, not here"));
            }
        }
        let lines = file.text.lines().count();
        if file.path.ends_with("/README.md") && lines > README_LINES {
            findings.push(format!("{}: {lines} lines, at most {README_LINES}", file.path));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Vec<SourceFile> {
        vec![SourceFile::new(path, text)]
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(too_long(&file("a/b.rs", &"x\n".repeat(600))).len(), 0);
        assert!(too_long(&file("a/b.rs", &"x\n".repeat(601)))[0].contains("a/b.rs: 601 lines"));
        assert_eq!(too_long(&file("spec/generated/rust/regs.rs", &"x\n".repeat(601))).len(), 0);
        assert_eq!(too_long(&file("docs/long.md", &"x\n".repeat(601))).len(), 0);
    }

    #[test]
    fn a_vague_name_is_found() {
        for path in ["host/x/src/utils.rs", "host/common/src/lib.rs", "nic/Manager.rs"] {
            assert_eq!(vague_names(&file(path, "")).len(), 1, "{path}");
        }
        assert_eq!(vague_names(&file("host/window/src/commonly.rs", "")).len(), 0);
    }

    #[test]
    fn examples_of_two_crates_with_one_name_are_found() {
        let two = |second: &str| [file("a/examples/rate.rs", ""), file(second, "")].concat();
        assert!(doubled_examples(&two("b/c/examples/rate.rs"))[0].contains("a has an example `rate` too"));
        assert_eq!(doubled_examples(&two("b/c/examples/rate/main.rs")).len(), 1);
        for good in ["b/examples/rates.rs", "a/examples/other.rs", "b/tests/rate.rs", "b/examples/rate.c"] {
            assert_eq!(doubled_examples(&two(good)).len(), 0, "{good}");
        }
    }

    #[test]
    fn unfinished_code_is_found() {
        assert_eq!(unfinished(&file("a.rs", "// TODO: later\n")).len(), 1);
        assert_eq!(unfinished(&file("a.rs", "fn f() {\n    todo!()\n}")).len(), 1);
        assert_eq!(unfinished(&file("a.rs", "let s = \"todo!\";")).len(), 0);
    }

    #[test]
    fn a_missing_and_a_long_readme_are_found() {
        let folder = file("host/x/Cargo.toml", "");
        assert!(readmes(&folder)[0].contains("host/x/README.md is missing"));
        let with = |lines: usize| [folder.clone(), file("host/x/README.md", &"x\n".repeat(lines))].concat();
        assert_eq!(readmes(&with(30)).len(), 0);
        assert!(readmes(&with(31))[0].contains("31 lines, at most 30"));
        assert_eq!(readmes(&file("README.md", &"x\n".repeat(90))).len(), 0);
    }
}
