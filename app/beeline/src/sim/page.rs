//! A page with plots, tables and raw data of a sweep.

use super::document::Document;
use super::row::{Figures, Row};
use super::table::{self, Group, group, heading, label};
use crate::compare::table::distinct;
use crate::page::{self, Chart, Series, add, escape, facts, figure, folded};

/// What a chart shows: its axis, its words, its figure.
type Shown = (&'static str, &'static str, fn(&Figures) -> f64);

const LATENCY: Shown = (
    "p50, ns",
    "From the call that sends (of an open loop: from the arrival) to the first bit on the wire. Lower is better.",
    |figures| figures.p50_ps as f64 / 1000.0,
);
const RATE: Shown = ("Gbit/s", "Frames on the wire, FCS excluded. Higher is better.", Figures::gbps);
const CPU: Shown = (
    "CPU ns a frame",
    "Time in which cores did something or stood still because of it. Lower is better.",
    Figures::core_ns_per_frame,
);
const EFFICIENCY: Shown = (
    "% of link bytes",
    "Share of the frames in all bytes on the link at the root complex, both directions, headers included. Higher is better.",
    Figures::efficiency_percent,
);

/// The page as HTML text.
pub fn render(rows: &[Row]) -> String {
    let mut html = page::head("Beeline in virtual time");
    html += "<h1>Beeline in virtual time</h1>\n<p class=\"lead\">Every figure on this page is <b>simulated</b>: the drivers \
             and the NIC's model are those that run elsewhere, the machine around them is in virtual time and costs what \
             the platform named over each plot says. Frames were compared byte for byte where they left.</p>\n";
    let names = |of: fn(&Row) -> String| distinct(rows.iter().map(of)).join(", ");
    html += &facts(
        "What was run",
        &[
            ("Platforms", names(|row| row.platform.clone())),
            ("Interfaces", names(label)),
            ("Frames of each core", names(|row| row.frames.to_string())),
            ("Seed", names(|row| row.seed.to_string())),
            ("Command", std::env::args().collect::<Vec<_>>().join(" ")),
            ("Version", env!("CARGO_PKG_VERSION").to_owned()),
        ],
    );
    for of in distinct(rows.iter().map(group)) {
        html += &section(rows, of);
    }
    html += &format!("<h2>Tables and raw data</h2>\n<pre>{}</pre>\n", escape(&table::render(rows)));
    html += &folded("results.csv", &table::csv(rows));
    html += &page::data(&Document::new(rows));
    html + page::END
}

/// The plots of a group; what has one size only, or sizes of a capture, is in the tables alone.
fn section(rows: &[Row], of: Group<'_>) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| group(row) == of && row.capture.is_none()).collect();
    if distinct(rows.iter().map(|row| row.frame_bytes)).len() < 2 {
        return String::new();
    }
    // A closed loop of one frame has a rate that its latency says already, and full queues have a latency of their own.
    let shown = match of.arrivals {
        "one-by-one" => [LATENCY, CPU, EFFICIENCY],
        arrivals if arrivals.starts_with("always") => [RATE, CPU, EFFICIENCY],
        _ => [LATENCY, RATE, CPU],
    };
    let mut html = format!("<h2>{}</h2>\n", escape(&heading(of)));
    for (unit, caption, value) in shown {
        let mut series: Vec<Series> = Vec::new();
        for row in &rows {
            if let Some(figures) = &row.figures {
                add(&mut series, label(row), (row.frame_bytes, value(figures)));
            }
        }
        let logarithmic = unit != EFFICIENCY.0;
        html += &figure(&Chart { unit, size: "frame, bytes", logarithmic, series }, caption);
    }
    html
}
