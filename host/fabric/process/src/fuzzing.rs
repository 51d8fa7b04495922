//! What the bytes of another process and of a file go through first, reachable for the fuzz targets alone (`fuzz/`).
//!
//! Compiled only with `--cfg fuzzing`, so none of it is part of the crate's interface.

use std::ffi::OsString;
use std::path::Path;

use crate::config::{Configuration, Said};
use crate::packets::{Fetch, Fetched, Hello, Welcome};
use crate::questions::{Question, report_of, report_to_bytes};

/// Which kinds of packet these bytes are; each one that is taken is what it is written as.
pub fn packet(bytes: &[u8]) -> usize {
    let taken = [
        Hello::of(bytes).map(Hello::to_bytes).ok(),
        Welcome::of(bytes).map(Welcome::to_bytes).ok(),
        Fetch::of(bytes).map(Fetch::to_bytes).ok(),
        Fetched::of(bytes).map(Fetched::to_bytes).ok(),
        Question::of(bytes).map(Question::to_bytes).ok(),
    ];
    // Two bytes of some are not looked at.
    taken.iter().flatten().for_each(|again| assert_eq!(again.len(), bytes.len()));
    taken.iter().flatten().count()
}

/// How many segments an answer names beyond `after`. What is taken comes back.
pub fn report(bytes: &[u8], after: u64) -> Option<usize> {
    let (report, segments) = report_of(bytes, after).ok()?;
    assert!(segments.iter().all(|segment| segment.number > after));
    assert!(segments.is_sorted_by(|one, next| one.number < next.number));
    assert_eq!(report_of(&report_to_bytes(&report, &segments), after), Ok((report, segments.clone())));
    Some(segments.len())
}

/// Whether a file of this text says something, as a process with this variable reads it. What it says is in the limits of a fabric, and an error
/// says where.
pub fn configuration(text: &str, node: Option<&str>) -> bool {
    let said = Said { node: node.map(OsString::from), memory: None };
    match Configuration::of_text(Path::new("beeline.toml"), text, said) {
        Ok(read) => {
            assert!((1..=251).contains(&read.fabric.node.0));
            assert!(read.fabric.adapters.iter().all(|adapter| adapter.number() < 16));
            assert!(read.fabric.nodes.contains(&read.fabric.node));
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}
