//! What each row of the file is to us: the entries of `rows/*.toml`, exactly one a row.
//!
//! A file has lists of rows without more to say (`input`, `said`), groups with one reason (`not-modelled`), what is
//! lost and has no row (`lost`), entries (`rows`), and entries by the platform they are run on (`machines`).

mod check;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::published::RowId;
use crate::quantity::Quantity;
use crate::shape::Shape;

pub use check::{bounds, check};

/// The files, by name.
pub(super) const FILES: [(&str, &str); 8] = [
    ("rows/seed000.toml", include_str!("../rows/seed000.toml")),
    ("rows/seed001.toml", include_str!("../rows/seed001.toml")),
    ("rows/seed002.toml", include_str!("../rows/seed002.toml")),
    ("rows/seed003.toml", include_str!("../rows/seed003.toml")),
    ("rows/seed004.toml", include_str!("../rows/seed004.toml")),
    ("rows/bounds.toml", include_str!("../rows/bounds.toml")),
    ("rows/pcie-bench.toml", include_str!("../rows/pcie-bench.toml")),
    ("rows/others.toml", include_str!("../rows/others.toml")),
];

/// What a row is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A condition of a measurement; free for platform files. Where it is a quantity of ours too, ours is shown.
    Input,
    /// An outcome that a constant of a platform file was solved from; shown, never scored.
    Fitted,
    /// An outcome that stands in its source, one number, predicted by a run.
    Scored,
    /// An outcome whose figure of ours is arithmetic on declared or fitted values, whatever the machine does: `implied-by` is
    /// that arithmetic. Shown, never scored.
    Implied,
    /// An outcome printed as a range or as a limit: inside bounds on both sides or not.
    Contained,
    /// An outcome that survives in words.
    Shape,
    /// Arithmetic on declared inputs alone. It checks the arithmetic and says nothing of a machine.
    Computed,
    /// Not independent of another row.
    SameAs,
    /// Claimed, cited, defined or derived by others: ours stands beside it where we have it.
    Said,
    /// The figure or machine that the row is about is lost.
    Lost,
    /// The machine has no such thing; the entry says why.
    NotModelled,
}

impl Class {
    /// The word of the files.
    pub fn word(self) -> &'static str {
        match self {
            Class::Input => "input",
            Class::Fitted => "fitted",
            Class::Scored => "scored",
            Class::Implied => "implied",
            Class::Contained => "contained",
            Class::Shape => "shape",
            Class::Computed => "computed",
            Class::SameAs => "same-as",
            Class::Said => "said",
            Class::Lost => "lost",
            Class::NotModelled => "not-modelled",
        }
    }

    /// Whether an outcome is set beside what a run gives, by its own numbers or words.
    pub fn is_compared(self) -> bool {
        matches!(self, Class::Fitted | Class::Scored | Class::Implied | Class::Contained | Class::Shape)
    }
}

/// Something to measure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Platform, if it is not the entry's.
    pub machine: Option<String>,
    pub quantity: Quantity,
}

/// What `rows/*.toml` says of a row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Entry {
    pub class: Class,
    /// Platform it is run on: the `machines` table it stands in.
    #[serde(skip)]
    pub machine: Option<String>,
    /// What is measured there; `measured` in the formula.
    pub quantity: Option<Quantity>,
    /// Several things to measure, by their names in the formula.
    #[serde(default)]
    pub measure: BTreeMap<String, Measure>,
    /// Our figure, in the printed unit. Without it, it is what was measured.
    pub formula: Option<String>,
    /// Arithmetic on published rows that our figure of an implied row follows from.
    pub implied_by: Option<String>,
    /// How far a computed figure may be from the print; without it, as far as rounding goes.
    pub within_percent: Option<f64>,
    /// The rows that this one depends on.
    #[serde(default)]
    pub same_as: Vec<RowId>,
    /// The property of a shape that is tested.
    pub shape: Option<Shape>,
    /// A range, where the file has words.
    pub range: Option<[f64; 2]>,
    /// Why it is lost or not modelled.
    pub why: Option<String>,
    /// Which size stands for the printed words.
    pub size: Option<String>,
    /// What in the source disagrees with what.
    pub disagrees: Option<String>,
    pub remark: Option<String>,
}

impl Entry {
    /// An entry that is only a class.
    fn of(class: Class, why: Option<String>) -> Entry {
        Entry {
            class,
            machine: None,
            quantity: None,
            measure: BTreeMap::new(),
            formula: None,
            implied_by: None,
            within_percent: None,
            same_as: Vec::new(),
            shape: None,
            range: None,
            why,
            size: None,
            disagrees: None,
            remark: None,
        }
    }

    /// Everything that is measured for it: name in the formula, platform, quantity.
    pub fn measures(&self) -> Vec<(&str, Option<&str>, &Quantity)> {
        let single = self.quantity.iter().map(|quantity| (MEASURED, self.machine.as_deref(), quantity));
        let several = self.measure.iter().map(|(name, measure)| {
            (name.as_str(), measure.machine.as_deref().or(self.machine.as_deref()), &measure.quantity)
        });
        single.chain(several).collect()
    }

    /// Every platform it is run on.
    pub fn machines(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.measures().into_iter().filter_map(|(_, machine, _)| machine.map(str::to_owned)).collect();
        names.extend(self.machine.clone());
        if let Some(shape) = &self.shape {
            names.extend(shape.machines());
        }
        names.sort();
        names.dedup();
        names
    }
}

/// Name of an entry's single quantity in its formula.
pub const MEASURED: &str = "measured";

/// A figure that is lost in the source's text and has no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// The source, 0 to 4.
    #[serde(skip_deserializing)]
    pub seed: u8,
    pub what: String,
    /// Section or figure of the source.
    #[serde(rename = "where")]
    pub place: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    rows: Vec<RowId>,
    why: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    input: Vec<RowId>,
    #[serde(default)]
    said: Vec<RowId>,
    #[serde(default)]
    not_modelled: Vec<Group>,
    #[serde(default)]
    lost: Vec<Lost>,
    #[serde(default)]
    rows: BTreeMap<RowId, Entry>,
    #[serde(default)]
    machines: BTreeMap<String, BTreeMap<RowId, Entry>>,
}

/// All entries, and what is lost.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    pub entries: BTreeMap<RowId, Entry>,
    /// Figures that are lost in the sources' texts and have no row.
    pub lost: Vec<Lost>,
    /// Rows that are named twice.
    twice: Vec<RowId>,
}

impl Registry {
    /// The entries of some files.
    pub fn read(files: &[(&str, &str)]) -> Result<Registry, Error> {
        let mut registry = Registry::default();
        for (name, text) in files {
            let file: File = toml::from_str(text)
                .map_err(|error| Error::Toml { file: (*name).to_owned(), problem: error.to_string() })?;
            registry.take(name, file);
        }
        Ok(registry)
    }

    fn take(&mut self, name: &str, file: File) {
        for row in file.input {
            self.add(row, Entry::of(Class::Input, None));
        }
        for row in file.said {
            self.add(row, Entry::of(Class::Said, None));
        }
        for group in file.not_modelled {
            for row in group.rows {
                self.add(row, Entry::of(Class::NotModelled, Some(group.why.clone())));
            }
        }
        for (row, entry) in file.rows {
            self.add(row, entry);
        }
        for (machine, rows) in file.machines {
            for (row, entry) in rows {
                self.add(row, Entry { machine: Some(machine.clone()), ..entry });
            }
        }
        let seed = name.bytes().rev().find(u8::is_ascii_digit).map_or(0, |digit| digit - b'0');
        self.lost.extend(file.lost.into_iter().map(|lost| Lost { seed, ..lost }));
    }

    fn add(&mut self, row: RowId, entry: Entry) {
        if self.entries.insert(row.clone(), entry).is_some() {
            self.twice.push(row);
        }
    }
}
