//! The suite as a page with charts: each figure of a size is a point of the line that its name begins with.

use beeline_figures::plot::html::{self, END};
use beeline_figures::plot::{Across, Better, Chart, LineStyle, Series};

use super::suite::{BENCH, SEND, THERE_AND_BACK};
use crate::{Figure, Report, Value, to_table};

/// A chart: its title, what names of its figures begin with, its unit, and the value of a figure.
struct Drawn {
    title: &'static str,
    prefix: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&Figure) -> f64,
}

const CHARTS: [Drawn; 5] = [
    Drawn {
        title: "Sent: bytes a second",
        prefix: SEND,
        unit: "MB/s",
        better: Better::Higher,
        value: |figure| f64::from(figure.size_bytes) * 1e3 / ns(figure),
    },
    Drawn { title: "Sent: time a message", prefix: SEND, unit: "ns", better: Better::Lower, value: ns },
    Drawn {
        title: "There and back",
        prefix: THERE_AND_BACK,
        unit: "ns, p50",
        better: Better::Lower,
        value: ns,
    },
    Drawn {
        title: "Transferred: bytes a second",
        prefix: "transfer ",
        unit: "MB/s",
        better: Better::Higher,
        value: |figure| f64::from(figure.size_bytes) * 1e3 / ns(figure),
    },
    Drawn {
        title: "Transferred: time of the program's thread in calls",
        prefix: "transfer ",
        unit: "ns, p50",
        better: Better::Lower,
        value: ns,
    },
];
/// What names of figures of the last chart end with, before the size.
const IN_CALLS: &str = ", in calls";

/// Nanoseconds of one message: the middle one, or as many as there were in a second.
fn ns(figure: &Figure) -> f64 {
    match figure.value {
        Value::Latency { p50_ns, .. } | Value::Delay { p50_ns, .. } => p50_ns,
        Value::Rate { median_per_second, .. } => 1e9 / median_per_second,
    }
}

/// The suite's part of a report as HTML text, with the whole report behind it. `command` is how it was made.
pub fn render(report: &Report, command: &str) -> String {
    let mut text = html::head("SISCI on this machine");
    text += "<h1>SISCI on this machine</h1>\n<p class=\"lead\">Every figure here was <b>measured</b> in one run, between two \
             processes on cores of their own. Published figures of other machines are in <code>bench/published</code>, and not on this page.</p>\n";
    text += &html::facts("Machine and command", &[("CPU", cpu()), ("Command", command.to_owned())]);
    for placement in placements(report) {
        // Each with an axis of its own: what is sent and what goes there and back differ by powers of ten.
        let figures: String =
            charts(report, &placement).iter().map(|chart| html::figure(chart, &[])).collect();
        text += &format!("<div class=\"charts\">\n{figures}</div>\n");
    }
    text += &html::folded("All figures", &to_table(report));
    text + END
}

/// Where cores lay, of the suite's figures.
fn placements(report: &Report) -> Vec<String> {
    let mut placements: Vec<String> = Vec::new();
    for figure in report.figures.iter().filter(|figure| figure.bench == BENCH) {
        if !placements.contains(&figure.placement) {
            placements.push(figure.placement.clone());
        }
    }
    placements
}

fn charts(report: &Report, placement: &str) -> Vec<Chart<'static>> {
    let cores = if placement.is_empty() { String::new() } else { format!(", cores {placement}") };
    let of_placement = |figure: &&Figure| figure.bench == BENCH && figure.placement == placement;
    let figures: Vec<&Figure> = report.figures.iter().filter(of_placement).collect();
    let charts = CHARTS.iter().map(|drawn| Chart {
        title: format!("{}{cores}", drawn.title),
        unit: drawn.unit,
        across: Across::Sizes("message, bytes"),
        is_logarithmic: true,
        better: drawn.better,
        series: lines(&figures, drawn),
        values: None,
    });
    charts.filter(|chart| !chart.series.is_empty()).collect()
}

/// A line for each name without its size.
fn lines(figures: &[&Figure], drawn: &Drawn) -> Vec<Series> {
    let is_of_calls = drawn.title.ends_with("in calls");
    let mut series: Vec<Series> = Vec::new();
    for figure in figures {
        let Some((name, _size)) = figure.name.rsplit_once(", ") else { continue };
        let Some(name) = name.strip_prefix(drawn.prefix) else { continue };
        if name.ends_with(IN_CALLS) != is_of_calls {
            continue;
        }
        let name = name.trim_end_matches(IN_CALLS);
        let point = (f64::from(figure.size_bytes), (drawn.value)(figure));
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series::line(name, LineStyle::Other(series.len()), vec![point])),
        }
    }
    series
}

/// What the kernel calls the CPU.
fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    match (field("model name"), field("cpu family"), field("model")) {
        (Some(name), Some(family), Some(model)) => format!("{name}, family {family}, model {model}"),
        (Some(name), ..) => name,
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Latencies, Row};

    fn latency(name: &str, size_bytes: u32, ns: f64) -> Figure {
        let row = Row { bench: BENCH, name, kernel: "-", memory: "-", size_bytes, count: 1 };
        let mut latencies = Latencies::new();
        latencies.add_round(&[ns]);
        Figure::latency(row, latencies)
    }

    #[test]
    fn figures_of_a_name_are_one_line_and_times_in_calls_are_in_a_chart_of_their_own() {
        let figures = vec![
            latency("transfer by DMA, 64 B", 64, 1000.0),
            latency("transfer by DMA, 256 B", 256, 2000.0),
            latency("transfer by DMA, in calls, 64 B", 64, 500.0),
            latency("there and back by stores, 64 B", 64, 100.0),
        ];
        let report = Report { figures, ..Report::default() };
        let charts = charts(&report, "");
        let found: Vec<_> = charts
            .iter()
            .map(|chart| (chart.title.as_str(), chart.series[0].name.as_str(), chart.series[0].points.len()))
            .collect();
        assert_eq!(
            found,
            [
                ("There and back", "stores", 1),
                ("Transferred: bytes a second", "by DMA", 2),
                ("Transferred: time of the program's thread in calls", "by DMA", 1)
            ]
        );
        let page = render(&report, "a <command>");
        assert!(page.contains("<svg") && page.contains("a &lt;command&gt;"), "{page}");
    }
}
