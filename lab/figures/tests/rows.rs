//! The rows and what is said of them.

use std::collections::BTreeMap;

use beeline_figures::published;
use beeline_figures::registry::{Class, Registry};

#[test]
fn every_row_has_exactly_one_entry_that_describes_it() {
    let rows = published::rows().unwrap();
    // Reading checks it: an entry missing, twice, of no row, or without what its class needs is an error.
    let registry = Registry::of(&rows).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(registry.entries.len(), rows.len());
}

#[test]
fn what_the_five_sources_measured_is_not_waved_through() {
    let rows = published::rows().unwrap();
    let registry = Registry::of(&rows).unwrap();
    // (source, rows that are not modelled and may not be more): a row may leave this list only by being modelled.
    let limits: BTreeMap<u8, usize> = [(0, 1), (1, 0), (2, 4), (3, 6), (4, 0)].into();
    for (seed, limit) in limits {
        let of_seed = rows.iter().filter(|row| row.seed() == Some(seed));
        let count = of_seed.filter(|row| registry.entries[&row.id].class == Class::NotModelled).count();
        assert!(count <= limit, "source {seed:03}: {count} rows are not modelled, at most {limit} may be");
    }
}

#[test]
fn rows_that_another_folder_has_too_are_the_same() {
    let other = published::read(include_str!("../../../bench/published/figures.csv")).unwrap();
    let rows = published::rows().unwrap();
    assert!(!other.is_empty());
    for theirs in other {
        let ours = rows.iter().find(|row| row.id == theirs.id).unwrap_or_else(|| panic!("{}", theirs.id));
        assert_eq!(
            (&ours.printed, &ours.printed_unit),
            (&theirs.printed, &theirs.printed_unit),
            "{}",
            ours.id
        );
    }
}

/// A row has a line in a table of the page or stands in the list of those without, once.
#[test]
fn every_row_is_shown_on_the_page_or_said_why_not() {
    let page = include_str!("../../../docs/figures.md");
    let (tables, list) = page.split_once("## Rows without a line above").unwrap();
    for row in published::rows().unwrap() {
        let lines = tables.lines().filter(|line| line.starts_with(&format!("| {} |", row.id))).count();
        let named = list.split(|c: char| !c.is_alphanumeric()).filter(|word| *word == row.id.0).count();
        assert_eq!(lines + named, 1, "{}: {lines} lines, {named} times without a line", row.id);
    }
}
