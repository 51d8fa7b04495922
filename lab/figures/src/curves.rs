//! The figures of the papers as curves of ours with what was published over them. Never a point that nobody printed: where a
//! picture is lost there are only curves.

mod figure;
mod figures;

use serde::Serialize;

use crate::chart::{Chart, Series};
use crate::published::{Row, RowId};
use crate::simulator::Simulator;

pub use figure::{Curve, Figure};
pub use figures::FIGURES;

/// A figure with its points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawn {
    /// The figure of the source, as the source numbers it.
    pub title: String,
    /// What is seen, what is lost, and what could not be measured.
    pub caption: String,
    /// Vertical axis, with its unit.
    pub unit: String,
    /// Horizontal axis.
    pub axis: String,
    /// Whether the vertical axis is logarithmic.
    pub is_logarithmic: bool,
    pub lines: Vec<Line>,
}

/// A line with its points: size, value in the axis's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Name in the figure.
    pub name: String,
    /// Platform it was run on.
    pub machine: String,
    /// Ours.
    pub simulated: Vec<(f64, f64)>,
    pub published: Vec<(f64, f64)>,
}

impl Drawn {
    /// Returns the plot as an SVG chart takes it, with both axes named.
    pub fn chart(&self) -> Chart<'_> {
        let series = |line: &Line| Series {
            name: line.name.clone(),
            points: line.simulated.clone(),
            marks: line.published.clone(),
        };
        Chart {
            unit: &self.unit,
            size: &self.axis,
            logarithmic: self.is_logarithmic,
            series: self.lines.iter().map(series).collect(),
        }
    }
}

/// Measures all figures.
pub fn draw(simulator: &mut dyn Simulator, rows: &[Row]) -> Vec<Drawn> {
    FIGURES.iter().map(|figure| draw_one(simulator, rows, figure)).collect()
}

fn draw_one(simulator: &mut dyn Simulator, rows: &[Row], figure: &Figure) -> Drawn {
    let mut caption = figure.caption.to_owned();
    let mut lines = Vec::new();
    for curve in figure.curves {
        let mut simulated = Vec::new();
        let mut missing = None;
        for bytes in (figure.sizes)() {
            match simulator.measure_with(curve.machine, &curve.replacements(), &(curve.quantity)(bytes)) {
                Ok(value) => simulated.push((bytes as f64, value / figure.unit_size)),
                Err(error) => missing = Some(error.why),
            }
        }
        if let Some(why) = missing {
            caption += &format!(" Not run for every point of {}: {why}.", curve.name);
        }
        let published = curve.published.iter().filter_map(|(id, bytes)| {
            let row = rows.iter().find(|row| row.id == RowId::from(*id))?;
            let bytes = bytes.or_else(|| row.message_bytes())? as f64;
            Some((bytes, row.value()? * row.unit()?.size / figure.unit_size))
        });
        lines.push(Line {
            name: curve.name.to_owned(),
            machine: curve.machine.to_owned(),
            simulated,
            published: published.collect(),
        });
    }
    Drawn {
        title: figure.title.to_owned(),
        caption,
        unit: figure.unit.to_owned(),
        axis: figure.axis.to_owned(),
        is_logarithmic: figure.is_logarithmic,
        lines,
    }
}
