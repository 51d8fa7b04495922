//! The figures of the papers as curves of ours with what was published over them. Never a point that nobody printed: where a
//! picture is lost there are only curves.

mod figure;
mod figures;

use serde::Serialize;

use crate::plot::{Across, Better, Chart, LineStyle, Series};
use crate::published::{Row, RowId};
use crate::quantity::{Interface, Quantity};
use crate::registry::Registry;
use crate::simulator::Simulator;
use crate::unit::Base;

pub use figure::{Curve, Figure};
pub use figures::FIGURES;

/// A figure with its points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drawn {
    /// The figure of the source, as the source numbers it.
    pub title: String,
    /// What the source's figure shows, as far as its text says it.
    pub expected: String,
    /// What is lost, what is drawn in its place, and what could not be simulated.
    pub caption: String,
    /// Vertical axis, with its unit.
    pub unit: String,
    /// Horizontal axis.
    pub axis: String,
    /// Whether the horizontal axis has numbered things, not sizes.
    pub is_numbered: bool,
    /// Whether the vertical axis is logarithmic.
    pub is_logarithmic: bool,
    /// Whether the values are rates, of which the higher is the better one.
    pub is_rate: bool,
    pub lines: Vec<Line>,
}

/// A line with its points: size, value in the axis's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Name in the figure.
    pub name: String,
    /// Platform it was run on.
    pub machine: String,
    /// Gives the line its style; `None` where the machine stores or reads by itself.
    pub interface: Option<Interface>,
    /// Ours.
    pub simulated: Vec<(f64, f64)>,
    /// Published points whose rows are run as what the line shows.
    pub published: Vec<(f64, f64)>,
    /// Published points that belong into this figure and whose rows are run as something else, or are arithmetic.
    pub published_uncompared: Vec<(f64, f64)>,
}

impl Drawn {
    /// Returns the plot as an SVG chart takes it, with both axes named.
    pub fn chart(&self) -> Chart<'_> {
        let mut others = 0..;
        let mut seen: Vec<Interface> = Vec::new();
        let series = |line: &Line| {
            let style = match line.interface {
                Some(interface) => {
                    let variant = seen.iter().filter(|other| **other == interface).count();
                    seen.push(interface);
                    LineStyle::Of(interface, variant)
                }
                None => LineStyle::Other(others.next().unwrap_or_default()),
            };
            Series {
                marks: line.published.clone(),
                others: line.published_uncompared.clone(),
                ..Series::line(line.name.clone(), style, line.simulated.clone())
            }
        };
        Chart {
            title: self.title.clone(),
            unit: &self.unit,
            across: if self.is_numbered { Across::Numbers(&self.axis) } else { Across::Sizes(&self.axis) },
            is_logarithmic: self.is_logarithmic,
            better: if self.is_rate { Better::Higher } else { Better::Lower },
            series: self.lines.iter().map(series).collect(),
            values: None,
        }
    }
}

/// Measures all figures.
pub fn draw(simulator: &mut dyn Simulator, registry: &Registry, rows: &[Row]) -> Vec<Drawn> {
    FIGURES.iter().map(|figure| draw_one(simulator, registry, rows, figure)).collect()
}

fn draw_one(simulator: &mut dyn Simulator, registry: &Registry, rows: &[Row], figure: &Figure) -> Drawn {
    let mut caption = figure.caption.to_owned();
    let mut lines = Vec::new();
    for curve in figure.curves {
        let mut simulated = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        for bytes in (figure.sizes)() {
            match simulator.measure_with(curve.machine, &curve.replacements(), &(curve.quantity)(bytes)) {
                Ok(value) => simulated.push((bytes as f64, value / figure.unit_size)),
                Err(_) => missing.push(bytes.to_string()),
            }
        }
        if !missing.is_empty() {
            let places = missing.join(", ");
            caption += &format!(" The simulator has no value of {} at {} {places}.", curve.name, figure.axis);
        }
        let (published, published_uncompared) = published(curve, figure, registry, rows);
        lines.push(Line {
            name: curve.name.to_owned(),
            machine: curve.machine.to_owned(),
            interface: (figure.sizes)().first().and_then(|bytes| (curve.quantity)(*bytes).interface()),
            simulated,
            published,
            published_uncompared,
        });
    }
    let is_rate = figure.curves.first().is_some_and(|curve| (curve.quantity)(64).base() == Base::Gbps);
    Drawn {
        title: figure.title.to_owned(),
        expected: figure.expected.to_owned(),
        caption,
        unit: figure.unit.to_owned(),
        axis: figure.axis.to_owned(),
        is_numbered: figure.is_numbered,
        is_logarithmic: figure.is_logarithmic,
        is_rate,
        lines,
    }
}

type Points = Vec<(f64, f64)>;

/// The published points of a curve: those whose rows are run as what the curve shows, and others.
fn published(curve: &Curve, figure: &Figure, registry: &Registry, rows: &[Row]) -> (Points, Points) {
    let (mut same, mut others) = (Points::new(), Points::new());
    for (id, bytes) in curve.published {
        let id = RowId::from(*id);
        let point = rows.iter().find(|row| row.id == id).and_then(|row| {
            let bytes = bytes.or_else(|| row.message_bytes())?;
            Some((bytes, row.value()? * row.unit()?.size / figure.unit_size))
        });
        let Some((bytes, value)) = point else { continue };
        let is_run_as = |shown: &Quantity| {
            registry.entries.get(&id).is_some_and(|entry| {
                entry
                    .measures()
                    .iter()
                    .any(|(_, machine, quantity)| *machine == Some(curve.machine) && *quantity == shown)
            })
        };
        let points = if is_run_as(&(curve.quantity)(bytes)) { &mut same } else { &mut others };
        points.push((bytes as f64, value));
    }
    (same, others)
}
