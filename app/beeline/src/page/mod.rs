//! Parts of a page that loads nothing from outside: those of `beeline_figures::plot`, and tables and data of the program's results.

use beeline_figures::plot::html;
pub use beeline_figures::plot::html::{END, charts, escape, facts, folded, head};
pub use beeline_figures::plot::{Across, Better, Chart, LineStyle, Series};
use beeline_spec::Interface;
use comfy_table::Table;
use serde::Serialize;

/// The horizontal axis of everything that depends on a frame's size.
pub const FRAMES: Across<'_> = Across::Sizes("frame, bytes");

/// Appends a point to the series with this name, which is made if it is not there.
pub fn add(series: &mut Vec<Series>, name: String, style: LineStyle, point: (f64, f64)) {
    match series.iter_mut().find(|series| series.name == name) {
        Some(series) => series.points.push(point),
        None => series.push(Series::line(name, style, vec![point])),
    }
}

/// The style of the series with this name: the interface's own, and a variant of it where a series of the interface is there.
pub fn style_of(series: &[Series], name: &str, interface: Interface) -> LineStyle {
    let class = LineStyle::Of(interface, 0).class();
    let before = series.iter().filter(|series| series.name != name && series.style.class() == class).count();
    LineStyle::Of(interface, before)
}

/// A table for terminals as one of the page: names to the left, figures to the right.
pub fn table(caption: &str, table: &Table) -> String {
    let cells = |row: &comfy_table::Row| row.cell_iter().map(comfy_table::Cell::content).collect::<Vec<_>>();
    let header = table.header().map(cells).unwrap_or_default();
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    html::table(caption, &names, 1..names.len(), table.row_iter().map(|row| ("", cells(row))))
}

/// Everything behind the page, to be read back by programs.
pub fn data(results: &impl Serialize) -> String {
    html::data("results", &serde_json::to_string(results).unwrap_or_default())
}
