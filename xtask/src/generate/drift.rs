//! Keeps generated files, or says how those that are kept differ from what would be generated.

use std::fs;
use std::path::Path;

use similar::{ChangeTag, TextDiff};

use super::generated::Generated;
use crate::failure::{Context, Outcome, none_found};

/// Changed lines shown of each file.
const SHOWN_LINES: usize = 12;

/// Writes those files that changed into `folder`, and removes what is not generated any more.
pub fn write(folder: &Path, files: &[Generated]) -> Outcome {
    let mut written = 0;
    for Generated { path, text } in files {
        let target = folder.join(path);
        if fs::read_to_string(&target).is_ok_and(|kept| kept == *text) {
            continue;
        }
        let parent = target.parent().unwrap_or(folder);
        fs::create_dir_all(parent).while_doing(format!("make {}", parent.display()))?;
        fs::write(&target, text).while_doing(format!("write {}", target.display()))?;
        println!("  wrote spec/generated/{path}");
        written += 1;
    }
    for stray in strays(folder, files)? {
        fs::remove_file(folder.join(&stray)).while_doing(format!("remove spec/generated/{stray}"))?;
        println!("  removed spec/generated/{stray}, which nothing generates");
    }
    println!("  {written} of {} generated files changed", files.len());
    Ok(())
}

/// Fails with a summary of the differences when a file in `folder` is not what would be generated.
pub fn check(folder: &Path, files: &[Generated]) -> Outcome {
    let mut findings = Vec::new();
    for Generated { path, text } in files {
        match fs::read_to_string(folder.join(path)) {
            Ok(kept) if kept == *text => {}
            Ok(kept) => findings.push(summary(path, &kept, text)),
            Err(_) => findings.push(format!("spec/generated/{path} is missing")),
        }
    }
    findings.extend(
        strays(folder, files)?.iter().map(|stray| format!("spec/generated/{stray}: nothing generates it")),
    );
    none_found(
        "generated files have drifted from spec/nic.rdl or spec/formats.toml; run `cargo xtask gen`",
        findings,
    )?;
    println!("  {} generated files are what the sources say", files.len());
    Ok(())
}

/// Paths under `folder` that are not among `files`; a README is written by hand.
fn strays(folder: &Path, files: &[Generated]) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).while_doing(format!("look into {}", next.display()))? {
            let path = entry.while_doing(format!("look into {}", next.display()))?.path();
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name != "README.md" && files.iter().all(|generated| generated.path != name) {
                found.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Counts of changed lines and the first of them: `-` committed, `+` generated.
fn summary(path: &str, kept: &str, generated: &str) -> String {
    let diff = TextDiff::from_lines(kept, generated);
    let changes: Vec<_> = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).collect();
    let removed = changes.iter().filter(|change| change.tag() == ChangeTag::Delete).count();
    let mut text =
        format!("spec/generated/{path}: {removed} lines committed, {} generated", changes.len() - removed);
    for change in changes.iter().take(SHOWN_LINES) {
        let (mark, line) = match change.tag() {
            ChangeTag::Delete => ('-', change.old_index()),
            _ => ('+', change.new_index()),
        };
        let line = line.map_or(0, |index| index + 1);
        text += &format!("\n    {mark} {line:>5} {}", change.value().trim_end());
    }
    if changes.len() > SHOWN_LINES {
        text += &format!("\n    … and {} more", changes.len() - SHOWN_LINES);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<Generated> {
        let texts = [("rust/regs.rs", "one\ntwo\nthree\n"), ("sv/nic_pkg.sv", "package\n")];
        texts.map(|(path, text)| Generated { path, text: text.to_owned() }).into()
    }

    #[test]
    fn what_was_written_has_not_drifted() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &files()).unwrap();
        assert_eq!(check(folder.path(), &files()), Ok(()));
    }

    #[test]
    fn a_changed_a_missing_and_a_stray_file_are_named() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &files()).unwrap();
        fs::write(folder.path().join("rust/regs.rs"), "one\n2\nthree\n").unwrap();
        fs::remove_file(folder.path().join("sv/nic_pkg.sv")).unwrap();
        fs::write(folder.path().join("rust/old.rs"), "").unwrap();
        let said = check(folder.path(), &files()).unwrap_err().to_string();
        for part in [
            "run `cargo xtask gen`",
            "rust/regs.rs: 1 lines committed, 1 generated",
            "-     2 2",
            "+     2 two",
        ] {
            assert!(said.contains(part), "no `{part}` in:\n{said}");
        }
        assert!(
            said.contains("sv/nic_pkg.sv is missing") && said.contains("rust/old.rs: nothing generates it"),
            "{said}"
        );
        write(folder.path(), &files()).unwrap();
        assert_eq!(check(folder.path(), &files()), Ok(()));
    }

    #[test]
    fn a_long_difference_is_cut() {
        let generated: String = (0..40).map(|i| format!("{i}\n")).collect();
        assert!(summary("x", "", &generated).contains("… and 28 more"));
    }
}
