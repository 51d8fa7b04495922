//! The freeze: platform files and fit set as they were before the comparison was scored, and every edit since with the rows it
//! moved. `frozen.toml` is written by [`Frozen::edited`], never by hand, and compared with the files on each run.
//!
//! Frozen is not blind: the published numbers were known when the files were written.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::published::RowId;

/// The committed state.
pub const FILE: &str = include_str!("../frozen.toml");

const HEADER: &str = "# The platform files and the fit set at the freeze, and each edit since with the rows it moved.\n\
                      # Written by `Frozen::edited` (lab/figures/src/freeze.rs); lab/figures/README.md says when.\n\n";

/// A platform file: its name, relative to the folder of platforms, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformFile {
    pub name: String,
    pub text: String,
}

/// Files and fit set at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stand {
    /// Why it was taken.
    pub why: String,
    /// Rows whose figures of ours differ from those of the stand before.
    pub moved: BTreeSet<RowId>,
    /// Rows that constants were solved from.
    pub fit_set: BTreeSet<RowId>,
    /// SHA-256 of each file.
    pub files: BTreeMap<String, String>,
}

/// All stands; the first is the freeze. Without one, nothing is frozen yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    /// In the order in which they were taken.
    #[serde(default)]
    pub stand: Vec<Stand>,
}

/// How the files are to the last stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing was frozen: a score is of a model that is still being fitted.
    Open,
    /// The files are those of the last stand.
    Frozen {
        /// Edits since the freeze.
        edits: usize,
    },
    /// Files or fit set changed and no stand says so.
    Changed(Vec<String>),
}

impl Frozen {
    /// The committed state.
    pub fn committed() -> Result<Frozen, Error> {
        Frozen::read(FILE)
    }

    /// Reads a state.
    pub fn read(text: &str) -> Result<Frozen, Error> {
        toml::from_str(text)
            .map_err(|error| Error::Toml { file: "frozen.toml".to_owned(), problem: error.to_string() })
    }

    /// Compares files and fit set with the last stand.
    pub fn state(&self, files: &[PlatformFile], fit_set: &BTreeSet<RowId>) -> State {
        let Some(last) = self.stand.last() else { return State::Open };
        let now = hashes(files);
        let mut changes = Vec::new();
        for (name, hash) in &now {
            match last.files.get(name) {
                None => changes.push(format!("{name} is new")),
                Some(old) if old != hash => changes.push(format!("{name} is another")),
                Some(_) => {}
            }
        }
        changes.extend(last.files.keys().filter(|n| !now.contains_key(*n)).map(|n| format!("{n} is gone")));
        changes.extend(fit_set.difference(&last.fit_set).map(|row| format!("{row} is in the fit set now")));
        changes.extend(last.fit_set.difference(fit_set).map(|row| format!("{row} left the fit set")));
        if changes.is_empty() {
            State::Frozen { edits: self.stand.len() - 1 }
        } else {
            State::Changed(changes)
        }
    }

    /// The state with one stand more, as the text of `frozen.toml`. `moved` is what [`crate::snapshot::moved`] found.
    pub fn edited(
        &self,
        why: &str,
        files: &[PlatformFile],
        fit_set: &BTreeSet<RowId>,
        moved: BTreeSet<RowId>,
    ) -> Result<String, Error> {
        let mut next = self.clone();
        // The freeze is the first stand: there is nothing before it that could have moved.
        let moved = if next.stand.is_empty() { BTreeSet::new() } else { moved };
        next.stand.push(Stand { why: why.to_owned(), moved, fit_set: fit_set.clone(), files: hashes(files) });
        let text = toml::to_string(&next).map_err(|error| Error::Output(error.to_string()))?;
        Ok(format!("{HEADER}{text}"))
    }
}

fn hashes(files: &[PlatformFile]) -> BTreeMap<String, String> {
    let hash = |text: &str| -> String {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    files.iter().map(|file| (file.name.clone(), hash(&file.text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> PlatformFile {
        PlatformFile { name: name.to_owned(), text: text.to_owned() }
    }

    fn rows(ids: &[&str]) -> BTreeSet<RowId> {
        ids.iter().map(|id| (*id).into()).collect()
    }

    #[test]
    fn every_change_since_the_last_stand_is_named() {
        let files = [file("a.toml", "a = 1\n"), file("b.toml", "b = 1\n")];
        let frozen =
            Frozen::read(&Frozen::default().edited("freeze", &files, &rows(&["r0033"]), rows(&[])).unwrap());
        let frozen = frozen.unwrap();
        assert_eq!(frozen.state(&files, &rows(&["r0033"])), State::Frozen { edits: 0 });
        let later = [file("a.toml", "a = 2\n"), file("c.toml", "")];
        let State::Changed(changes) = frozen.state(&later, &rows(&["r0029"])) else { panic!("a change") };
        assert_eq!(
            changes,
            [
                "a.toml is another",
                "c.toml is new",
                "b.toml is gone",
                "r0029 is in the fit set now",
                "r0033 left the fit set"
            ]
        );
    }

    #[test]
    fn an_edit_lists_what_it_moved_and_ends_the_complaint() {
        let before = [file("a.toml", "a = 1\n")];
        let first =
            Frozen::read(&Frozen::default().edited("freeze", &before, &rows(&[]), rows(&["r0001"])).unwrap());
        let first = first.unwrap();
        assert!(first.stand[0].moved.is_empty(), "a freeze moves nothing");
        let after = [file("a.toml", "a = 2\n")];
        let text = first.edited("a was wrong", &after, &rows(&[]), rows(&["r0029", "r0030"])).unwrap();
        let second = Frozen::read(&text).unwrap();
        assert_eq!(second.stand[1].moved, rows(&["r0029", "r0030"]));
        assert_eq!(second.state(&after, &rows(&[])), State::Frozen { edits: 1 });
        assert_eq!(second.stand[0], first.stand[0], "history stays");
    }

    #[test]
    fn before_the_freeze_the_state_is_open() {
        assert_eq!(Frozen::default().state(&[file("a.toml", "")], &rows(&[])), State::Open);
    }
}
