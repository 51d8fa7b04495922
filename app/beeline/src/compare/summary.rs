//! What a run found, in words: the conditions, which interface was first where and by how much, and what to distrust.

use beeline_floor::Placement;

use super::results::{LatencyKind, Results, UNSTEADY_FROM};
use super::table::{distinct, placements};

/// A difference below this is none, however steady both are.
const EVEN_WITHIN: f64 = 0.02;

/// A figure of one interface at one size.
struct Entry {
    interface: &'static str,
    bytes: u32,
    value: f64,
    spread: f64,
}

/// Conditions, winners and warnings, as lines.
pub fn render(results: &Results) -> String {
    conditions(results)
        .into_iter()
        .chain(winners(results))
        .chain(unsteady(results))
        .fold(String::from("\n"), |text, line| text + &wrapped(&line))
}

/// The conditions that every figure of the run holds under.
pub fn conditions(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    let cores: Vec<_> = results.machine.cores.iter().map(usize::to_string).collect();
    for placement in placements(results) {
        let floors: Vec<_> = results.floors.iter().filter(|row| row.placement == placement).collect();
        let range = |value: fn(&super::results::FloorRow) -> f64| {
            let (low, high) = floors.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), row| {
                (low.min(value(row)), high.max(value(row)))
            });
            if high - low < 1.0 { format!("{low:.0}") } else { format!("{low:.0} to {high:.0}") }
        };
        let rounds: Vec<_> = floors.iter().map(|row| format!("{} {}", row.rounds, row.part)).collect();
        lines.push(format!(
            "Placement {placement}: a bare line between cores {} and back takes {} ns, a bare copy {} ns (p50); rounds: {}.",
            cores.join(" and "),
            range(|row| row.bare_line_ns),
            range(|row| row.bare_copy_ns),
            rounds.join(", ")
        ));
    }
    let dropped: u32 =
        distinct(results.floors.iter().map(|row| (row.part, row.dropped))).iter().map(|row| row.1).sum();
    if dropped > 0 {
        lines.push(format!("Rounds dropped because the cores changed their placement in them: {dropped}."));
    }
    lines.extend(results.kernels.iter().map(|row| {
        let method = row.method.lines().map(str::trim).collect::<Vec<_>>().join(", ");
        format!("Store kernel for {}.", method.split_whitespace().collect::<Vec<_>>().join(" "))
    }));
    lines
}

/// Which interface was first, part by part.
pub fn winners(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for placement in placements(results) {
        for latency_kind in [LatencyKind::OneWay, LatencyKind::RoundTrip] {
            let rows = results
                .latencies
                .iter()
                .filter(|row| (row.placement, row.latency_kind) == (placement, latency_kind));
            let entries = rows.map(|row| Entry {
                interface: row.interface.name(),
                bytes: row.frame_bytes,
                value: row.p50_ns as f64,
                spread: row.spread,
            });
            let title = if latency_kind == LatencyKind::OneWay { "One way" } else { "Round trip" };
            lines.extend(contest(title, placement, entries.collect(), Better::Lower));
        }
        for (title, rows) in [("There and back", &results.rates), ("Onto the wire", &results.transmits)] {
            let entries = rows.iter().filter(|row| row.placement == placement).map(|row| Entry {
                interface: row.interface.name(),
                bytes: row.frame_bytes,
                value: row.frames_per_s,
                spread: row.spread,
            });
            lines.extend(contest(title, placement, entries.collect(), Better::Higher));
        }
    }
    lines
}

#[derive(Clone, Copy, PartialEq)]
enum Better {
    /// Times.
    Lower,
    /// Rates.
    Higher,
}

/// The first of one size: its name (none where the first two are even), the second, and the ratio of their values.
fn first_of(entries: &[&Entry], better: Better) -> Option<(Option<&'static str>, &'static str, f64)> {
    let mut sorted = entries.to_vec();
    sorted.sort_by(|a, b| match better {
        Better::Lower => a.value.total_cmp(&b.value),
        Better::Higher => b.value.total_cmp(&a.value),
    });
    let [first, second, ..] = sorted[..] else { return None };
    let ratio = first.value / second.value;
    let noise = first.spread.max(second.spread).max(EVEN_WITHIN);
    let is_decided = (ratio - 1.0).abs() > noise;
    Some((is_decided.then_some(first.interface), second.interface, ratio))
}

/// One sentence about one part in one placement; `None` with fewer than two interfaces.
fn contest(title: &str, placement: Placement, entries: Vec<Entry>, better: Better) -> Option<String> {
    let mut spans: Vec<(Option<&str>, &str, Vec<(u32, f64)>)> = Vec::new();
    for bytes in distinct(entries.iter().map(|entry| entry.bytes)) {
        let of_size: Vec<&Entry> = entries.iter().filter(|entry| entry.bytes == bytes).collect();
        let (first, second, ratio) = first_of(&of_size, better)?;
        match spans.last_mut().filter(|span| span.0 == first && (first.is_none() || span.1 == second)) {
            Some(span) => span.2.push((bytes, ratio)),
            None => spans.push((first, second, vec![(bytes, ratio)])),
        }
    }
    let quantity = if better == Better::Lower { "time" } else { "rate" };
    let parts: Vec<String> = spans
        .iter()
        .map(|(first, second, points)| {
            let at = match points[..] {
                [(only, _)] => format!("at {only} B"),
                [(from, _), .., (to, _)] => format!("from {from} to {to} B"),
                [] => String::new(),
            };
            let Some(first) = first else { return format!("even {at}") };
            let (low, high) = points.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), (_, ratio)| {
                (low.min(*ratio), high.max(*ratio))
            });
            let range =
                if high - low < 0.01 { format!("{high:.2}") } else { format!("{low:.2} to {high:.2}") };
            format!("{first} first {at} ({range} of {second}'s {quantity})")
        })
        .collect();
    (!parts.is_empty()).then(|| format!("{title}, {placement}: {}.", parts.join("; ")))
}

/// Rows whose rounds lie too far apart to be believed.
pub fn unsteady(results: &Results) -> Option<String> {
    let per_cent = |spread: f64| format!("{:.0} %", spread * 100.0);
    let latencies = results.latencies.iter().filter(|row| row.spread > UNSTEADY_FROM).map(|row| {
        format!(
            "{} {} {} B, {} ({})",
            row.interface,
            row.latency_kind.label(),
            row.frame_bytes,
            row.placement,
            per_cent(row.spread)
        )
    });
    let rates = [("there and back", &results.rates), ("onto the wire", &results.transmits)];
    let rates = rates.into_iter().flat_map(|(part, rows)| {
        rows.iter().filter(|row| row.spread > UNSTEADY_FROM).map(move |row| {
            format!(
                "{} {part} {} B, {} ({})",
                row.interface,
                row.frame_bytes,
                row.placement,
                per_cent(row.spread)
            )
        })
    });
    let stores = results.stores.iter().filter(|row| row.spread > UNSTEADY_FROM).count();
    let mut rows: Vec<String> = latencies.chain(rates).collect();
    if stores > 0 {
        rows.push(format!("{stores} of {} rows of raw stores", results.stores.len()));
    }
    (!rows.is_empty()).then(|| {
        format!(
            "* The middle half of the rounds is wider than 15 % of the middle, so do not build on: {}.",
            rows.join("; ")
        )
    })
}

fn wrapped(line: &str) -> String {
    let options = textwrap::Options::new(super::table::WIDTH.into()).subsequent_indent("  ");
    textwrap::fill(line, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::results::sample::sample;
    use super::*;

    fn entry(interface: &'static str, bytes: u32, value: f64, spread: f64) -> Entry {
        Entry { interface, bytes, value, spread }
    }

    #[test]
    fn sentence_says_who_is_first_where_and_by_how_much() {
        let entries = vec![
            entry("mmio", 16, 300.0, 0.01),
            entry("descriptor", 16, 400.0, 0.01),
            entry("mmio", 64, 320.0, 0.01),
            entry("descriptor", 64, 400.0, 0.01),
            entry("mmio", 256, 400.0, 0.10),
            entry("descriptor", 256, 420.0, 0.01),
            entry("mmio", 512, 500.0, 0.01),
            entry("descriptor", 512, 450.0, 0.01),
        ];
        assert_eq!(
            contest("One way", Placement::Near, entries, Better::Lower).unwrap(),
            "One way, near: mmio first from 16 to 64 B (0.75 to 0.80 of descriptor's time); even at 256 B; \
             descriptor first at 512 B (0.90 of mmio's time)."
        );
        let rates = vec![entry("mmio", 64, 20e6, 0.0), entry("enso", 64, 25e6, 0.0)];
        assert_eq!(
            contest("Onto the wire", Placement::Far, rates, Better::Higher).unwrap(),
            "Onto the wire, far: enso first at 64 B (1.25 of mmio's rate)."
        );
        assert_eq!(contest("x", Placement::Near, vec![entry("mmio", 64, 1.0, 0.0)], Better::Lower), None);
    }

    #[test]
    fn summary_names_conditions_and_rows_that_are_not_steady() {
        let text = render(&sample());
        assert!(text.contains("Placement near: a bare line between cores 0 and 1"), "{text}");
        assert!(text.contains("placement in them: 1."), "{text}");
        let unsteady = unsteady(&sample()).expect("the sample has a row that is not steady");
        assert!(unsteady.contains("mmio one-way 64 B, near (30 %)"), "{unsteady}");
        assert!(text.lines().all(|line| line.chars().count() <= super::super::table::WIDTH.into()), "{text}");
    }
}
