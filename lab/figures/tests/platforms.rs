//! Rows and platform files: what a file was solved from is not scored, and what is called fitted was used.
//!
//! A tree without a folder of platforms has nothing to hold against the rows; then only its being so is checked.

use std::collections::BTreeSet;
use std::path::Path;

use beeline_figures::evaluate::with_dependents;
use beeline_figures::freeze::{Frozen, PlatformFile, State};
use beeline_figures::published::{self, RowId};
use beeline_figures::registry::{Class, Registry};
use beeline_figures::sources;

/// Files of the folder of platforms and of its parts, as `name` or `parts/name`.
fn files() -> Vec<PlatformFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../platforms");
    let mut files = Vec::new();
    for below in ["", "parts"] {
        let Ok(entries) = std::fs::read_dir(folder.join(below)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".toml") && name != "Cargo.toml" {
                let text = std::fs::read_to_string(entry.path()).expect("a platform file is text");
                files.push(PlatformFile { name: Path::new(below).join(name).display().to_string(), text });
            }
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

/// Rows that parameters were solved from, each with the files and keys that did it.
fn uses(files: &[PlatformFile]) -> Vec<(RowId, String)> {
    let mut uses = Vec::new();
    for file in files {
        for (key, rows) in sources::of_file(file).unwrap_or_else(|error| panic!("{error}")) {
            uses.extend(rows.into_iter().map(|row| (row, format!("{}: {key}", file.name))));
        }
    }
    uses
}

#[test]
fn what_a_platform_was_solved_from_is_not_scored() {
    let rows = published::rows().unwrap();
    let registry = Registry::of(&rows).unwrap();
    let files = files();
    let uses = uses(&files);
    assert_eq!(files.is_empty(), uses.is_empty(), "platform files that were solved from nothing");
    let fit_set = with_dependents(&registry, uses.iter().map(|(row, _)| row).collect());
    let users =
        |id: &RowId| uses.iter().filter(|(row, _)| row == id).map(|(_, user)| user.as_str()).collect();
    let mut findings = Vec::new();
    for (id, entry) in &registry.entries {
        let users: Vec<&str> = users(id);
        match entry.class {
            Class::Scored | Class::Contained if fit_set.contains(id) => {
                findings.push(format!("{id} is {} and was used: {}", entry.class.word(), users.join(", ")));
            }
            Class::Fitted if !files.is_empty() && !fit_set.contains(id) => {
                findings.push(format!("{id} is fitted, but no platform was solved from it"));
            }
            _ => {}
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn every_platform_of_a_row_has_a_file() {
    let registry = Registry::of(&published::rows().unwrap()).unwrap();
    let files = files();
    let machines: BTreeSet<String> = registry.entries.values().flat_map(|entry| entry.machines()).collect();
    let missing: Vec<&String> = machines
        .iter()
        .filter(|machine| files.iter().all(|file| file.name != format!("{machine}.toml")))
        .collect();
    assert!(files.is_empty() || missing.is_empty(), "no file for {missing:?}");
}

#[test]
fn the_platform_files_are_those_of_the_last_stand() {
    let files = files();
    let fit_set: BTreeSet<RowId> = uses(&files).into_iter().map(|(row, _)| row).collect();
    if let State::Changed(changes) = Frozen::committed().unwrap().state(&files, &fit_set) {
        panic!(
            "changed since the freeze, and frozen.toml does not say which rows moved:\n{}",
            changes.join("\n")
        );
    }
}
