//! What can be wrong with a platform file, with the place, the value and what to do.

use std::path::PathBuf;

use thiserror::Error;

use crate::{Bounds, Location};

/// Why there is no platform.
#[derive(Debug, Error)]
pub enum PlatformError {
    /// No built-in platform has this name.
    #[error("no platform is called {name:?}{}", near_clause(.near))]
    NoSuchPlatform {
        /// The name asked for.
        name: String,
        /// Those that look most like it, the likeliest first; none where none looks like it.
        near: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{location}: not TOML: {message}")]
    NotToml {
        location: Location,
        /// Message of the parser.
        message: String,
    },
    /// Something has the wrong form.
    #[error("{location}: {key} is {found}; write {wanted}")]
    Form { location: Location, key: String, found: String, wanted: &'static str },
    /// There is no such key.
    #[error("{location}: no parameter is called {key:?}{}", nearest_clause(.nearest))]
    UnknownKey {
        location: Location,
        key: String,
        /// The one that looks most like it.
        nearest: Option<String>,
    },
    #[error("{file}: {key} is missing; give {bounds}, with its source")]
    Missing {
        /// The platform's file.
        file: String,
        key: String,
        /// Values that are allowed.
        bounds: String,
    },
    #[error("{location}: {key} = {value} is out of bounds; give {bounds}")]
    OutOfBounds {
        location: Location,
        key: String,
        value: String,
        /// Values that are allowed.
        bounds: Bounds,
    },
    /// Two values that each keep their bounds do not go together.
    #[error("{location}: {key} = {value}: {problem}")]
    Contradiction {
        location: Location,
        key: String,
        value: String,
        /// With what it does not go together, and what to do.
        problem: String,
    },
    /// A source says nothing.
    #[error("{location}: the source of {key} is {problem}")]
    Source { location: Location, key: String, problem: &'static str },
    /// A key stands in two files.
    #[error("{second}: {key} is given at {first} too; leave one of them out")]
    Twice {
        key: String,
        /// First definition.
        first: Location,
        /// Second definition.
        second: Location,
    },
    /// A part cannot be included.
    #[error("{location}: cannot include {path:?}: {problem}")]
    Include {
        location: Location,
        /// The part.
        path: String,
        /// Reason why the part cannot be included.
        problem: String,
    },
}

fn nearest_clause(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

fn near_clause(near: &[String]) -> String {
    let names: Vec<String> = near.iter().map(|name| format!("{name:?}")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

/// How many names are offered in place of one that is not there.
const NEAR: usize = 3;
/// How much less like the word than the likeliest a name may be to be offered too.
const NEAR_ENOUGH: f64 = 0.03;

/// The candidates that look most like the word, the likeliest first, if any looks enough like it to have been meant.
pub(crate) fn near<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut rated = rated(word, candidates);
    rated.sort_by(|a, b| b.0.total_cmp(&a.0));
    let least = rated.first().map_or(1.0, |(best, _)| best - NEAR_ENOUGH);
    rated
        .into_iter()
        .take(NEAR)
        .filter(|(likeness, _)| *likeness >= least)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// The candidate that looks most like the word, if one looks enough like it to have been meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let rated = rated(word, candidates);
    rated.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate.to_owned())
}

/// The candidates that look enough like the word to have been meant, and how much they do.
fn rated<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<(f64, &'a str)> {
    let likeness = |candidate: &str| strsim::jaro_winkler(word, candidate);
    let rated = candidates.into_iter().map(|candidate| (likeness(candidate), candidate));
    rated.filter(|(likeness, _)| *likeness > 0.7).collect()
}
