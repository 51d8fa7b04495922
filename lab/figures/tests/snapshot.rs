//! The committed snapshots of all figures, the freeze, and which rows a change moved.
//!
//! `BEELINE_FIGURES_SNAPSHOT="why" cargo test -p beeline-figures --test snapshot` takes the snapshots anew and adds the rows whose
//! figures moved to `moves.csv`, with the reason; the word `write` is enough where none did;
//! `BEELINE_FIGURES_FREEZE="why" cargo test -p beeline-figures --test snapshot` adds a stand to `frozen.toml` with the rows that
//! moved since the committed snapshot, so it is run before the snapshot is taken anew.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beeline_figures::evaluate::RowResult;
use beeline_figures::freeze::{Frozen, State};
use beeline_figures::published;
use beeline_figures::published::RowId;
use beeline_figures::quantity::Quantity;
use beeline_figures::registry::{Class, Registry};
use beeline_figures::score::IMPLIED_WITHIN_PERCENT;
use beeline_figures::snapshot::Moved;
use beeline_figures::unit::Base;
use beeline_figures::{Arithmetic, Options, Simulator, VirtualTime, moves, output, run, snapshot};

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
    if let Ok(why) = std::env::var("BEELINE_FIGURES_SNAPSHOT") {
        record_moves(&moved(folder, rows), &why);
        std::fs::create_dir_all(here(folder)).unwrap();
        for (name, text) in snapshot::files(rows).unwrap() {
            std::fs::write(here(folder).join(name), text).unwrap();
        }
    }
    let moved = moved(folder, rows);
    assert!(moved.is_empty(), "{folder} moved:\n{moved:#?}");
}

/// Adds the rows whose figures moved to `moves.csv`.
fn record_moves(moved: &[Moved], why: &str) {
    let seen: Vec<&Moved> = moved.iter().filter(|moved| moved.is_seen_move()).collect();
    if seen.is_empty() {
        return;
    }
    assert!(why != "write", "say why in BEELINE_FIGURES_SNAPSHOT, figures moved: {seen:#?}");
    std::fs::write(
        here("moves.csv"),
        snapshot::with_moves(&moves::committed().unwrap(), moved, why).unwrap(),
    )
    .unwrap();
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

/// A move of a row that was seen is kept for good, and the last one led to the figure of today.
#[test]
fn moves_end_at_the_committed_figures() {
    let outcome = run(&Options::default(), &mut VirtualTime::new(1).unwrap()).unwrap();
    for row in &outcome.rows {
        let Some(last) = row.seen_before.last() else { continue };
        assert_eq!(last.after, snapshot::ours(row), "{} moved, and moves.csv does not say so", row.id);
    }
}

/// Which of two figures on one machine would be the other times a number that needs no machine: the same, or as many times as
/// it has bytes or lines.
fn is_arithmetic_on(ours: f64, bytes: Option<u64>, other: f64, other_bytes: Option<u64>) -> bool {
    let mut factors = vec![1.0];
    if let Some((bytes, other)) = bytes.zip(other_bytes) {
        factors.push(bytes as f64 / other as f64);
        factors.push(bytes.div_ceil(64) as f64 / other.div_ceil(64) as f64);
    }
    factors.iter().any(|factor| (ours / (factor * other) - 1.0).abs() < 0.005)
}

/// No scored row is arithmetic on a fitted one of its machine, nor on the machine's interval of lines.
#[test]
fn scored_rows_are_no_arithmetic_on_fitted_ones() {
    let mut simulator = VirtualTime::new(1).unwrap();
    let outcome = run(&Options::default(), &mut simulator).unwrap();
    assert_eq!(outcome.conflicts, [""; 0]);
    let registry = Registry::of(&published::rows().unwrap()).unwrap();
    let single = |row: &RowResult| -> Option<(String, Quantity, f64)> {
        let [(_, Some(machine), quantity)] = registry.entries[&row.id].measures()[..] else { return None };
        Some((machine.to_owned(), quantity.clone(), row.ours.figure()?))
    };
    let of = |class| outcome.rows.iter().filter(move |row: &&RowResult| row.class == class);
    let fitted: Vec<_> = of(Class::Fitted).filter_map(|row| Some((row, single(row)?))).collect();
    let (mut found, mut asked) = (Vec::new(), 0);
    for (row, (machine, quantity, ours)) in of(Class::Scored).filter_map(|row| Some((row, single(row)?))) {
        asked += 1;
        let unit =
            published::rows().unwrap().iter().find(|other| other.id == row.id).unwrap().unit().unwrap();
        for (other, (other_machine, other_quantity, figure)) in &fitted {
            let is_alike = *other_machine == machine && other_quantity.base() == quantity.base();
            if is_alike && is_arithmetic_on(ours, quantity.bytes(), *figure, other_quantity.bytes()) {
                found.push(format!("{} is arithmetic on {}", row.id, other.id));
            }
        }
        if let Quantity::StoreTime { bytes, .. } | Quantity::StoreRate { bytes, .. } = quantity {
            let interval = simulator.measure(&machine, &Quantity::LineInterval).unwrap();
            let lines_ns = interval * bytes.div_ceil(64) as f64;
            let implied = match unit.base {
                Base::Gbps => bytes as f64 * 8.0 / lines_ns,
                _ => lines_ns,
            };
            if (ours * unit.size / implied - 1.0).abs() < IMPLIED_WITHIN_PERCENT / 100.0 {
                found.push(format!("{} is its lines at the interval of lines", row.id));
            }
        }
    }
    assert!(asked > 30, "{asked}");
    assert!(found.is_empty(), "scored, and follow from fitted or declared values: {found:#?}");
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

/// The pages of the papers say of every row of the five sources that is compared with a run, what it is and how far off.
#[test]
fn the_map_of_the_papers_has_every_error() {
    let mut simulator = VirtualTime::new(1).unwrap();
    let outcome = run(&Options::default(), &mut simulator).unwrap();
    let mut whole = String::new();
    let pages = std::fs::read_dir(here("../../docs/papers")).unwrap();
    for path in pages.map(|page| page.unwrap().path()) {
        let mut text = std::fs::read_to_string(&path).unwrap();
        let renewed = output::renewed(&text, &outcome);
        if std::env::var_os("BEELINE_FIGURES_SNAPSHOT").is_some() {
            std::fs::write(&path, &renewed).unwrap();
            text.clone_from(&renewed);
        }
        let differs = text.lines().zip(renewed.lines()).find(|(committed, now)| committed != now);
        assert!(text == renewed, "{} is not what a run gives, first here: {differs:#?}", path.display());
        whole += &text;
    }
    let unsaid: Vec<String> = output::unsaid(&whole, &outcome).iter().map(|row| row.id.to_string()).collect();
    assert!(unsaid.is_empty(), "docs/papers has no \"rNNNN: ours (error)\" of {unsaid:?}");
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
