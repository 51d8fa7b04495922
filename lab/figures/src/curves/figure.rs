//! What a figure is made of.

use crate::quantity::Quantity;
use crate::simulator::{Replacement, Setting};

/// One line of a figure: what is measured at each size, and rows whose values are printed.
pub struct Curve {
    /// Name in the figure.
    pub name: &'static str,
    /// Platform.
    pub machine: &'static str,
    /// The quantity at a size.
    pub quantity: fn(u64) -> Quantity,
    /// Parameters of the platform that are replaced.
    pub set: &'static [(&'static str, f64)],
    /// Published rows, each at its own size, or at the one given here.
    pub published: &'static [(&'static str, Option<u64>)],
}

impl Curve {
    /// The replaced parameters, as a simulator takes them.
    pub fn replacements(&self) -> Vec<Replacement> {
        let replacement = |(key, value): &(&str, f64)| Replacement {
            key: (*key).to_owned(),
            value: Setting::Number(*value),
        };
        self.set.iter().map(replacement).collect()
    }
}

/// A published plot drawn again: curves of ours, points of theirs.
pub struct Figure {
    /// The figure of the source, as the source numbers it.
    pub title: &'static str,
    /// Rows that are tested by curves of this figure: each rival of theirs is one of its curves.
    pub rows: &'static [&'static str],
    /// What the source's figure shows, as far as its text says it: what ours should show too.
    pub expected: &'static str,
    /// What is lost, and what is drawn in its place.
    pub caption: &'static str,
    /// Vertical axis, with its unit.
    pub unit: &'static str,
    /// How many of the quantity's base unit one of it is.
    pub unit_size: f64,
    /// Horizontal axis.
    pub axis: &'static str,
    /// Whether the horizontal axis has numbered things, not sizes.
    pub is_numbered: bool,
    /// Whether the vertical axis is logarithmic.
    pub is_logarithmic: bool,
    /// Sizes that are run.
    pub sizes: fn() -> Vec<u64>,
    pub curves: &'static [Curve],
}
