//! `report.html`: one file with plots, tables, machine, command and raw data; it loads nothing from outside.

use beeline_floor::Placement;

use super::results::{LatencyKind, LatencyRow, RateRow, Results};
use super::{summary, table};
use crate::page::{self, Chart, Series, escape, facts, figure};

/// The report as HTML text.
pub fn render(results: &Results) -> String {
    let mut html = page::head(&format!("Beeline on {}", results.machine.cpu));
    html += "<h1>Beeline: plain stores against doorbells</h1>\n";
    html += "<p class=\"lead\">Every figure on this page was <b>measured</b> on the machine named below, in one run. \
             Frames went from a program through the NIC process; those that came back were compared byte for byte, \
             those that did not were counted by the NIC.</p>\n";
    html += &words("key", summary::winners(results));
    html += &words("lead", summary::conditions(results).into_iter().chain(summary::unsteady(results)));
    html += &machine(results);
    html += &stores(results);
    html += &latencies(results, LatencyKind::OneWay);
    html += &latencies(results, LatencyKind::RoundTrip);
    html += &rates(
        results,
        "Onto the wire",
        &results.transmits,
        "Handed over in bursts, transmitted to a switch with nobody there and counted by the NIC; nothing is received. \
         Higher is better.",
    );
    html += &rates(
        results,
        "There and back",
        &results.rates,
        "Sent in bursts, received and verified by the same thread; higher is better.",
    );
    html += &raw(results);
    html += page::END;
    html
}

/// Sentences, a paragraph each.
fn words(class: &str, sentences: impl IntoIterator<Item = String>) -> String {
    let paragraph = |sentence: String| format!("<p class=\"{class}\">{}</p>\n", escape(&sentence));
    sentences.into_iter().map(paragraph).collect()
}

/// The name of a line in a chart; its placement too where there are several.
fn series_name(results: &Results, name: &str, kernel: &str, placement: Placement) -> String {
    let mut text = name.to_owned();
    if kernel != "-" {
        text += &format!(" ({kernel})");
    }
    if table::placements(results).len() > 1 {
        text += &format!(", {placement}");
    }
    text
}

fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let cores = machine.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
    let rows = [
        ("CPU", format!("{} ({} online)", machine.cpu, machine.cpus)),
        ("Kernel", machine.kernel.clone()),
        ("Hypervisor", machine.hypervisor.clone()),
        ("Cores used", format!("{cores} (measuring thread, NIC)")),
        ("Command", results.command.clone()),
        ("Version", results.version.to_owned()),
    ];
    facts("Machine and command", &rows)
}

fn stores(results: &Results) -> String {
    if results.stores.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h2>Raw stores into a window</h2>\n");
    for receiver in [false, true] {
        let mut series: Vec<Series> = Vec::new();
        for row in results.stores.iter().filter(|row| row.receiver == receiver) {
            let name = series_name(results, row.policy, row.kernel, row.placement);
            let point = (f64::from(row.message_bytes), row.goodput_gbps);
            page::add(&mut series, name, point);
        }
        let chart = Chart { unit: "Gbit/s", size: "message in the window, bytes", logarithmic: true, series };
        let caption = if receiver {
            "Another core receives and checks each message. Lines: fence policy, store kernel."
        } else {
            "Nobody receives: what the core can store. The experiment of HotOS'25, figure 2, on this CPU's memory; a \
             fence after every message or line is what the reorder unit saves."
        };
        html += &figure(&chart, caption);
    }
    html
}

fn latencies(results: &Results, latency_kind: LatencyKind) -> String {
    let rows: Vec<&LatencyRow> =
        results.latencies.iter().filter(|row| row.latency_kind == latency_kind).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let name = series_name(results, row.interface.name(), row.kernel, row.placement);
        let point = (f64::from(row.frame_bytes), row.p50_ns as f64);
        page::add(&mut series, name, point);
    }
    let chart = Chart { unit: "p50, ns", size: "frame, bytes", logarithmic: true, series };
    let (title, caption) = match latency_kind {
        LatencyKind::OneWay => (
            "One-way time",
            "From the call to send to the frame in hand, through the NIC process and back into this thread's receive \
             ring: one clock. Lower is better.",
        ),
        LatencyKind::RoundTrip => {
            ("Round trip", "A frame there, and the answer back: two passes through the NIC.")
        }
    };
    format!("<h2>{title}</h2>\n{}", figure(&chart, caption))
}

fn rates(results: &Results, title: &str, rows: &[RateRow], caption: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let name = series_name(results, row.interface.name(), row.kernel, row.placement);
        let point = (f64::from(row.frame_bytes), row.frames_per_s / 1e6);
        page::add(&mut series, name, point);
    }
    let chart = Chart { unit: "M frames/s", size: "frame, bytes", logarithmic: true, series };
    format!("<h2>{title}</h2>\n{}", figure(&chart, caption))
}

fn raw(results: &Results) -> String {
    let mut html = String::from("<h2>Tables and raw data</h2>\n");
    html += &format!("<pre>{}</pre>\n", escape(&table::render(results)));
    for (name, csv) in results.csv() {
        html += &page::folded(name, &csv);
    }
    html += &page::data(results);
    html
}

#[cfg(test)]
mod tests {
    use super::super::results::sample::sample;
    use super::*;

    #[test]
    fn the_report_is_self_contained_and_escapes_what_it_quotes() {
        let html = render(&sample());
        assert!(html.contains("<svg"));
        assert!(html.contains("<h2>Onto the wire</h2>") && html.contains("<h2>There and back</h2>"));
        assert!(html.contains("Placement near: a bare line"), "a reader sees the conditions");
        assert!(html.contains("Test CPU &lt;with &amp; markup&gt;"));
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!html.contains(outside), "the report loads something: {outside}");
        }
    }

    #[test]
    fn the_raw_data_in_the_report_can_be_read_back() {
        let html = render(&sample());
        let start = html.find("id=\"results\">").unwrap() + "id=\"results\">".len();
        let end = start + html[start..].find("</script>").unwrap();
        let value: serde_json::Value = serde_json::from_str(&html[start..end]).unwrap();
        assert_eq!(value["latencies"].as_array().unwrap().len(), sample().latencies.len());
    }
}
