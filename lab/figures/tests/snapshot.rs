//! The committed snapshots of all figures, the freeze, and which rows a change moved.
//!
//! `BEELINE_FIGURES_SNAPSHOT=write cargo test -p beeline-figures --test snapshot` takes the snapshots anew;
//! `BEELINE_FIGURES_FREEZE="why" cargo test -p beeline-figures --test snapshot` adds a stand to `frozen.toml` with the rows that
//! moved since the committed snapshot, so it is run before the snapshot is taken anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beeline_figures::evaluate::RowResult;
use beeline_figures::freeze::{Frozen, State};
use beeline_figures::published::RowId;
use beeline_figures::registry::Class;
use beeline_figures::snapshot::Moved;
use beeline_figures::{Arithmetic, Options, VirtualTime, output, run, snapshot};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What moved against the files of a folder.
fn moved(folder: &str, rows: &[RowResult]) -> Vec<Moved> {
    let files = snapshot::files(rows).unwrap();
    let moved = files.into_iter().flat_map(|(name, text)| {
        let committed = std::fs::read_to_string(here(folder).join(name)).unwrap_or_default();
        snapshot::moved(&committed, &text).unwrap()
    });
    moved.collect()
}

/// Compares with the files of a folder, or writes them if that was asked for.
fn compare(folder: &str, rows: &[RowResult]) {
    if std::env::var_os("BEELINE_FIGURES_SNAPSHOT").is_some() {
        std::fs::create_dir_all(here(folder)).unwrap();
        for (name, text) in snapshot::files(rows).unwrap() {
            std::fs::write(here(folder).join(name), text).unwrap();
        }
    }
    let moved = moved(folder, rows);
    assert!(moved.is_empty(), "{folder} moved:\n{moved:#?}");
}

fn machines() -> Vec<RowResult> {
    let mut simulator = VirtualTime::new(1).unwrap();
    let outcome = run(&Options::default(), &mut simulator).unwrap();
    outcome.rows.into_iter().filter(|row| row.class != Class::Computed).collect()
}

#[test]
fn rows_without_a_machine_are_as_committed() {
    let outcome = run(&Options::default(), &mut Arithmetic).unwrap();
    let rows: Vec<RowResult> = outcome.rows.into_iter().filter(|row| row.class == Class::Computed).collect();
    compare("snapshot/arithmetic", &rows);
}

/// For one seed: a number that changes is seen in review.
#[test]
fn rows_of_machines_are_as_committed() {
    compare("snapshot/machines", &machines());
}

/// The page of the documentation is that of the last run.
#[test]
fn the_page_of_the_documentation_is_as_committed() {
    let mut simulator = VirtualTime::new(1).unwrap();
    let options = Options { files: VirtualTime::files(), ..Options::default() };
    let text = output::markdown(&run(&options, &mut simulator).unwrap());
    let path = here("../../docs/figures.md");
    if std::env::var_os("BEELINE_FIGURES_SNAPSHOT").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let differs = committed.lines().zip(text.lines()).find(|(committed, now)| committed != now);
    assert!(committed == text, "docs/figures.md is not what a run gives, first here: {differs:#?}");
}

/// `docs/papers.md` says of every row of the five sources that a machine has a figure for, what it is and how far off.
#[test]
fn the_map_of_the_papers_has_every_error() {
    let mut simulator = VirtualTime::new(1).unwrap();
    let outcome = run(&Options::default(), &mut simulator).unwrap();
    let path = here("../../docs/papers.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let renewed = output::renewed(&text, &outcome);
    if std::env::var_os("BEELINE_FIGURES_SNAPSHOT").is_some() {
        std::fs::write(&path, &renewed).unwrap();
        text.clone_from(&renewed);
    }
    let differs = text.lines().zip(renewed.lines()).find(|(committed, now)| committed != now);
    assert!(text == renewed, "docs/papers.md is not what a run gives, first here: {differs:#?}");
    let unsaid: Vec<String> = output::unsaid(&text, &outcome).iter().map(|row| row.id.to_string()).collect();
    assert!(unsaid.is_empty(), "docs/papers.md has no \"rNNNN: ours (error)\" of {unsaid:?}");
}

/// Platform files and fit set are those of the freeze, or each edit since stands there with the rows that it moved.
#[test]
fn platform_files_are_those_of_the_last_stand() {
    let mut simulator = VirtualTime::new(1).unwrap();
    let files = VirtualTime::files();
    let options = Options { files: files.clone(), ..Options::default() };
    let outcome = run(&options, &mut simulator).unwrap();
    if let Ok(why) = std::env::var("BEELINE_FIGURES_FREEZE") {
        let ids: BTreeSet<RowId> =
            moved("snapshot/machines", &machines()).into_iter().map(|moved| moved.id).collect();
        let text = Frozen::committed().unwrap().edited(&why, &files, &outcome.fit_set, ids).unwrap();
        std::fs::write(here("frozen.toml"), text).unwrap();
        return;
    }
    assert!(matches!(outcome.state, State::Frozen { .. }), "{:#?}", outcome.state);
}
