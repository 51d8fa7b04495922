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
