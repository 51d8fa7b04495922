//! The files that the crate carries: all of them, and each readable.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
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
