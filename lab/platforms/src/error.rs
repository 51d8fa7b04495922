//! What can be wrong with a platform file, with the place, the value and what to do.

use std::path::PathBuf;

use thiserror::Error;

use crate::{Bounds, Place};

/// Why there is no platform.
#[derive(Debug, Error)]
pub enum PlatformError {
    /// No built-in platform has this name.
    #[error("no platform is called {name:?}{}; there are: {}", nearest_clause(.nearest), known.join(", "))]
    NoSuchPlatform {
        /// The name asked for.
        name: String,
        /// The one that looks most like it.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{place}: not TOML: {message}")]
    NotToml {
        place: Place,
        /// Message of the parser.
        message: String,
    },
    /// Something has the wrong form.
    #[error("{place}: {key} is {found}; write {wanted}")]
    Form { place: Place, key: String, found: String, wanted: &'static str },
    /// There is no such key.
    #[error("{place}: no parameter is called {key:?}{}", nearest_clause(.nearest))]
    UnknownKey {
        place: Place,
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
    #[error("{place}: {key} = {value} is out of bounds; give {bounds}")]
    OutOfBounds {
        place: Place,
        key: String,
        value: String,
        /// Values that are allowed.
        bounds: Bounds,
    },
    /// Two values that each keep their bounds do not go together.
    #[error("{place}: {key} = {value}: {problem}")]
    Contradiction {
        place: Place,
        key: String,
        value: String,
        /// With what it does not go together, and what to do.
        problem: String,
    },
    /// A source says nothing.
    #[error("{place}: the source of {key} is {problem}")]
    Source { place: Place, key: String, problem: &'static str },
    /// A key stands in two files.
    #[error("{second}: {key} is given at {first} too; leave one of them out")]
    Twice {
        key: String,
        /// First definition.
        first: Place,
        /// Second definition.
        second: Place,
    },
    /// A part cannot be included.
    #[error("{place}: cannot include {path:?}: {problem}")]
    Include {
        place: Place,
        /// The part.
        path: String,
        /// Why not.
        problem: String,
    },
}

fn nearest_clause(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// The candidate that looks most like the word, if one looks enough like it to have been meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let likeness = |candidate: &str| strsim::jaro_winkler(word, candidate);
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate.to_owned())
}
