//! Who measures: a machine in virtual time stands behind [`Simulator`]. This crate builds none; it only asks.

use serde::Serialize;

use crate::published::RowId;
use crate::quantity::Quantity;

/// Why a quantity has no figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{why}")]
pub struct NotModelled {
    /// The reason, in one clause.
    pub why: String,
}

impl NotModelled {
    /// A reason, in one clause.
    pub fn because(why: impl Into<String>) -> Self {
        NotModelled { why: why.into() }
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Setting {
    /// A number, in the unit of the parameter's name.
    Number(f64),
    /// One of the words that the parameter allows.
    Word(String),
}

/// A parameter of a platform, as its file gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// `table.name`.
    pub key: String,
    pub value: Setting,
    /// Whether it counts as one of the platform's knobs: fitted, or assumed and not shared with all of its kind.
    pub is_knob: bool,
    /// Rows that its value was solved from or chosen by: [`crate::sources::solved_from`] of its source.
    pub solved_from: Vec<RowId>,
}

/// What is known of a platform without running it.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// Name, which [`Simulator::measure`] takes.
    pub name: String,
    /// `nic`, `ntb`, `dma` or `memory`.
    pub kind: String,
    /// Files it is made of that other platforms include as well.
    pub parts: Vec<String>,
    /// Generation of the host's link.
    pub generation: u8,
    /// All parameters.
    pub parameters: Vec<Parameter>,
}

impl Card {
    /// The platform's own fitted and assumed parameters.
    pub fn knobs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.is_knob)
    }

    /// Rows that constants of the platform were solved from.
    pub fn fit_set(&self) -> impl Iterator<Item = &RowId> {
        self.parameters.iter().flat_map(|parameter| &parameter.solved_from)
    }

    /// A parameter by name.
    pub fn parameter(&self, key: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.key == key)
    }
}

/// A parameter that a run takes instead of the file's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replacement {
    /// `table.name`.
    pub key: String,
    pub value: Setting,
}

/// Measures quantities on platforms in virtual time.
///
/// The same question has the same answer, whatever was asked before: a simulator may keep answers, and this crate asks for
/// some of them more than once. An answer is finite, in the unit that [`Quantity::base`] says.
pub trait Simulator {
    /// All platforms that can be asked for.
    fn platforms(&self) -> Vec<Card>;

    /// Measures a quantity with some parameters replaced.
    fn measure_with(
        &mut self,
        platform: &str,
        replacements: &[Replacement],
        quantity: &Quantity,
    ) -> Result<f64, NotModelled>;

    /// Measures a quantity on the platform as its file has it.
    fn measure(&mut self, platform: &str, quantity: &Quantity) -> Result<f64, NotModelled> {
        self.measure_with(platform, &[], quantity)
    }
}

/// A simulator without a machine: only what is arithmetic on declared inputs gets a figure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arithmetic;

impl Simulator for Arithmetic {
    fn platforms(&self) -> Vec<Card> {
        Vec::new()
    }

    fn measure_with(&mut self, _: &str, _: &[Replacement], _: &Quantity) -> Result<f64, NotModelled> {
        Err(NotModelled::because("no machine is behind this run"))
    }
}
