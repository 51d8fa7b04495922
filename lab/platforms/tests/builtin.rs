//! The files that the crate carries: all of them, each readable, each part shared.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use beeline_platforms::{Platform, Source};

fn stems(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let stem = |file: &Path| file.file_stem().unwrap().to_string_lossy().into_owned();
    files.filter(|file| file.extension().is_some_and(|e| e == "toml")).map(|file| stem(&file)).collect()
}

#[test]
fn every_file_is_built_in_and_reads() {
    let mut files = stems("");
    assert!(files.remove("Cargo"), "the manifest of the crate");
    let platforms = Platform::all().unwrap();
    let names: BTreeSet<String> = platforms.iter().map(|platform| platform.name.clone()).collect();
    assert_eq!(names, files);
    for platform in &platforms {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{}.toml", platform.name));
        let read = Platform::read(&file).unwrap();
        assert_eq!(values(&read), values(platform));
        assert!(platform.describe(120).contains(&platform.summary));
    }
}

fn values(platform: &Platform) -> Vec<(String, String, Option<Source>)> {
    platform.rows().into_iter().map(|row| (row.key, row.value, row.source)).collect()
}

/// An assumption in a part does not count as chosen for one machine. That is only honest if several include the part.
#[test]
fn every_part_is_shared() {
    let mut users: BTreeMap<String, BTreeSet<String>> =
        stems("parts").into_iter().map(|part| (part, BTreeSet::new())).collect();
    for platform in Platform::all().unwrap() {
        let locations = platform.rows().into_iter().filter(|row| row.shared).filter_map(|row| row.location);
        for part in locations.map(|location| location.file).filter(|file| file.starts_with("parts/")) {
            let stem = Path::new(&part).file_stem().unwrap().to_string_lossy().into_owned();
            users.get_mut(&stem).unwrap().insert(platform.name.clone());
        }
    }
    for (part, users) in users {
        assert!(users.len() > 1, "parts/{part}.toml is included by {users:?} alone");
    }
}

/// A handful a machine, as the comparison with published figures promises.
#[test]
fn knobs_are_few() {
    for platform in Platform::all().unwrap() {
        let knobs: Vec<String> = platform.knobs().into_iter().map(|row| row.key).collect();
        assert!(knobs.len() <= 12, "{}: {} knobs: {knobs:?}", platform.name, knobs.len());
    }
}
