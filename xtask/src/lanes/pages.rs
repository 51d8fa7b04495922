//! Lanes that read what people read: pages, READMEs, links and rustdoc.

use super::cargo;
use crate::effort::Effort;
use crate::failure::{Failure, Outcome};
use crate::{citations, claims, links, pointers, promises, readmes, tour};

/// Every check is run, so that one look shows everything that moved.
pub fn tour() -> Outcome {
    let checks = [tour::run, pointers::run, promises::run, readmes::run, claims::run, citations::run];
    let failed: Vec<String> =
        checks.into_iter().filter_map(|check| check().err()).map(|e| e.to_string()).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("\n"))) }
}

/// Links in Markdown files, and rustdoc.
pub fn docs(effort: Effort) -> Outcome {
    let links = links::run();
    cargo::docs(effort)?;
    links
}
