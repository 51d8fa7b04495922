//! A page with plots, tables and raw data of a sweep.

use super::document::Document;
use super::row::{Figures, Row};
use super::table::{self, Group, group, heading, label};
use crate::compare::table::distinct;
use crate::page::{self, Better, Chart, FRAMES, LineStyle, Series, escape, facts, folded};

/// What a chart shows, and what is said of it once above the charts.
struct Shown {
    title: &'static str,
    unit: &'static str,
    is_logarithmic: bool,
    better: Better,
    words: &'static str,
    value: fn(&Figures) -> f64,
}

const P50: Shown = Shown {
    title: "Latency, p50",
    unit: "ns, p50",
    is_logarithmic: true,
    better: Better::Lower,
    words: "Latency is from the call that sends (of an open loop: from the arrival) to the first bit on the wire; lower is better.",
    value: |figures| figures.p50_ps as f64 / 1000.0,
};
const P99: Shown = Shown {
    title: "Latency, p99",
    unit: "ns, p99",
    is_logarithmic: true,
    better: Better::Lower,
    words: "",
    value: |figures| figures.p99_ps as f64 / 1000.0,
};
const RATE: Shown = Shown {
    title: "Rate",
    unit: "Gbit/s",
    is_logarithmic: true,
    better: Better::Higher,
    words: "Rate is of frames on the wire, FCS excluded; higher is better.",
    value: Figures::gbps,
};
const CPU: Shown = Shown {
    title: "Cost to the CPU",
    unit: "CPU ns a frame",
    is_logarithmic: true,
    better: Better::Lower,
    words: "Cost is the time in which cores did something or stood still because of it; lower is better.",
    value: Figures::core_ns_per_frame,
};
const EFFICIENCY: Shown = Shown {
    title: "Efficiency of the link",
    unit: "% of link bytes",
    is_logarithmic: false,
    better: Better::Higher,
    words: "Efficiency is the share of the frames in all bytes on the link at the root complex, both directions, headers \
            included; higher is better.",
    value: Figures::efficiency_percent,
};

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
    html += &format!("<h2>Tables and raw data</h2>\n<p class=\"note\">{}</p>\n", escape(table::LEGEND));
    for of in distinct(rows.iter().map(group)) {
        let rows: Vec<&Row> = rows.iter().filter(|row| group(row) == of).collect();
        for (what, table) in table::tables(&rows) {
            html += &page::table(&format!("{what}: {} (simulated)", heading(of)), &table);
        }
    }
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
    let shown: &[Shown] = match of.arrivals {
        "one-by-one" => &[P50, P99, CPU, EFFICIENCY],
        arrivals if arrivals.starts_with("always") => &[RATE, CPU, EFFICIENCY],
        _ => &[P50, P99, RATE, CPU],
    };
    let words: Vec<&str> = shown.iter().map(|shown| shown.words).filter(|words| !words.is_empty()).collect();
    let mut html = format!("<h2>{}</h2>\n<p>{}</p>\n", escape(&heading(of)), words.join(" "));
    html += &page::charts(shown.iter().map(|shown| chart(&rows, shown)).collect());
    for why in table::why_not(&rows) {
        html += &format!("<p class=\"note\">Not drawn: {}.</p>\n", escape(&why));
    }
    html
}

fn chart(rows: &[&Row], shown: &Shown) -> Chart<'static> {
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        if let Some(figures) = &row.figures {
            let name = label(row);
            // Results that are read back may name an interface that is no more.
            let style = row
                .interface
                .parse()
                .map_or(LineStyle::Other(series.len()), |of| page::style_of(&series, &name, of));
            page::add(&mut series, name, style, (row.frame_bytes, (shown.value)(figures)));
        }
    }
    Chart {
        title: shown.title.to_owned(),
        unit: shown.unit,
        across: FRAMES,
        is_logarithmic: shown.is_logarithmic,
        better: shown.better,
        series,
        values: None,
    }
}
