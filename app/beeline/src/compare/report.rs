//! `report.html`: one file with charts, tables, machine, command and raw data; it loads nothing from outside.

use super::results::{LatencyKind, Results};
use super::{charts, summary, table};
use crate::page::{self, Chart, escape, facts};

/// The report as HTML text.
pub fn render(results: &Results) -> String {
    let mut html = page::head(&format!("Beeline on {}", results.machine.cpu));
    html += "<h1>Beeline: plain stores against doorbells</h1>\n";
    html += "<p class=\"lead\">Every figure on this page was <b>measured</b> on the machine named below, in one run. \
             Frames went from a program through the NIC process; those that came back were compared byte for byte, \
             those that did not were counted by the NIC.</p>\n";
    html += &list("key", summary::winners(results));
    html += "<p class=\"note\">These sentences name a first only where the rounds agree, by more than 5 %: smaller leads come and go between runs. The sentence \
             below a chart is about the points drawn, whichever way the rounds lie.</p>\n";
    html += &machine(results);
    html += "<h2>Conditions</h2>\n";
    html += &list("note", summary::conditions(results).into_iter().chain(summary::unsteady(results)));
    html += &section(
        "One-way time",
        "From the call to send to the frame in hand, through the NIC process and back into this thread's receive ring: one \
         clock. Lower is better.",
        charts::latencies(results, LatencyKind::OneWay),
    );
    html += &section(
        "Round trip",
        "A frame there, and the answer back: two passes through the NIC. Lower is better.",
        charts::latencies(results, LatencyKind::RoundTrip),
    );
    html += &section(
        "Onto the wire",
        "Handed over in bursts, transmitted to a switch with nobody there and counted by the NIC; nothing is received. \
         Higher is better.",
        charts::rates(results, "Onto the wire", &results.transmits),
    );
    html += &section(
        "There and back",
        "Sent in bursts, received and verified by the same thread. Higher is better.",
        charts::rates(results, "There and back", &results.rates),
    );
    html += &section(
        "Raw stores into a window",
        "No NIC: the experiment of HotOS'25, figure 2, on this CPU's memory. Where nobody receives it is what the core can store; \
         a fence after every message or line is what the reorder unit saves. Higher is better.",
        charts::stores(results),
    );
    html += &raw(results);
    html += page::END;
    html
}

/// Each sentence as an item of a list; no list where there is nothing to say.
fn list(class: &str, sentences: impl IntoIterator<Item = String>) -> String {
    let items: String =
        sentences.into_iter().map(|sentence| format!("<li>{}</li>\n", escape(&sentence))).collect();
    if items.is_empty() { items } else { format!("<ul class=\"{class}\">\n{items}</ul>\n") }
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
        ("Version", results.version.clone()),
    ];
    facts("Machine and command", &rows)
}

/// Charts below a heading, or nothing where nothing was measured.
fn section(title: &str, words: &str, charts: Vec<Chart<'_>>) -> String {
    if charts.is_empty() {
        return String::new();
    }
    format!("<h2>{title}</h2>\n<p>{}</p>\n{}", escape(words), page::charts(charts))
}

fn raw(results: &Results) -> String {
    let mut html = String::from("<h2>Tables and raw data</h2>\n");
    for (heading, table) in table::tables(results) {
        html += &page::table(&heading, &table);
    }
    for (name, csv) in results.csv() {
        // A part that was not measured leaves a header alone.
        if csv.lines().count() > 1 {
            html += &page::folded(name, &csv);
        }
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
        assert!(
            html.contains("<caption>Frames put on the wire, cores near (measured"),
            "tables say what they are"
        );
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

    #[test]
    fn part_that_was_not_measured_leaves_nothing_on_the_page() {
        let results = Results { stores: Vec::new(), transmits: Vec::new(), ..sample() };
        let html = render(&results);
        for absent in ["stores.csv", "transmit.csv", "Raw stores", "<h2>Onto the wire"] {
            assert!(!html.contains(absent), "{absent}");
        }
        assert!(html.contains("latency.csv"));
    }
}
