//! What a run found, in words: the conditions, which interface was first where and by how much, and what to distrust.

use beeline_floor::Placement;

use super::results::{Results, RoundRow, UNSTEADY_FROM};
use super::rows::{ONTO_THE_WIRE, THERE_AND_BACK};
use super::table::{distinct, placements};
use beeline_floor::rounds::Middle;

/// A lead below this is none: it comes and goes from one run to the next, however steady it is within a run.
const CLEAR_FROM: f64 = 0.05;

/// Figures of one interface at one size: (round, value).
struct Entry<'r> {
    interface: &'r str,
    bytes: u32,
    values: Vec<(u32, f64)>,
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
    lines.extend(results.dropped.iter().map(|row| {
        let none = match results.floors.iter().any(|floor| floor.part == row.part) {
            true => "",
            false => "; none was left, so there are no figures of it",
        };
        format!(
            "Rounds dropped because the cores changed their placement, {}: {}{none}.",
            row.part, row.rounds
        )
    }));
    lines.extend(results.kernels.iter().map(|row| {
        let method = row.method.lines().map(str::trim).collect::<Vec<_>>().join(", ");
        format!("Store kernel for {}.", method.split_whitespace().collect::<Vec<_>>().join(" "))
    }));
    lines
}

/// Which interface was first, part by part.
pub fn winners(results: &Results) -> Vec<String> {
    const PARTS: [(&str, &str, &str, Better); 4] = [
        ("One way", THERE_AND_BACK, " one-way", Better::Lower),
        ("Round trip", THERE_AND_BACK, " round trip", Better::Lower),
        ("There and back", THERE_AND_BACK, "", Better::Higher),
        ("Onto the wire", ONTO_THE_WIRE, "", Better::Higher),
    ];
    let mut lines = Vec::new();
    for placement in placements(results) {
        for (title, part, suffix, better) in PARTS {
            let rows = results.rounds.iter().filter(|row| (row.part, row.placement) == (part, placement));
            lines.extend(contest(title, placement, &entries(rows, suffix), better));
        }
    }
    lines
}

/// The figures whose name is that of an interface and this suffix.
fn entries<'r>(rows: impl Iterator<Item = &'r RoundRow>, suffix: &str) -> Vec<Entry<'r>> {
    let mut entries: Vec<Entry<'r>> = Vec::new();
    for row in rows {
        let Some(interface) = row.what.strip_suffix(suffix).filter(|name| !name.contains(' ')) else {
            continue;
        };
        let value = (row.round, row.value);
        match entries.iter_mut().find(|entry| (entry.interface, entry.bytes) == (interface, row.bytes)) {
            Some(entry) => entry.values.push(value),
            None => entries.push(Entry { interface, bytes: row.bytes, values: vec![value] }),
        }
    }
    entries
}

impl Entry<'_> {
    fn of_round(&self, round: u32) -> Option<f64> {
        self.values.iter().find(|value| value.0 == round).map(|value| value.1)
    }

    /// This one's values as shares of the other's, each taken in the same round: rounds may differ, as the machine does from
    /// one moment to the next, by more than the interfaces.
    fn shares_of(&self, other: &Entry<'_>) -> Vec<f64> {
        self.values.iter().filter_map(|(round, value)| Some(value / other.of_round(*round)?)).collect()
    }

    /// Middle of the rounds of this one's value as a share of the geometric mean of all. Ranked by values alone, one could
    /// come first that is behind in most rounds.
    fn standing(&self, all: &[&Entry<'_>]) -> f64 {
        let share = |(round, value): &(u32, f64)| {
            let logs: Option<Vec<f64>> =
                all.iter().map(|entry| entry.of_round(*round).map(f64::ln)).collect();
            let logs = logs?;
            Some(value / (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        Middle::of(self.values.iter().filter_map(share)).map_or(f64::NAN, |middle| middle.value)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Better {
    /// Times.
    Lower,
    /// Rates.
    Higher,
}

/// The first of one size: its name, or those of several that are level (none where no lead is clear), who comes next, and the
/// middle of the ratios of their values. A lead is clear if all of the middle half of the rounds has it, by more than [`CLEAR_FROM`].
fn first_of<'r>(entries: &[&Entry<'r>], better: Better) -> Option<(Option<String>, &'r str, f64)> {
    let mut sorted = entries.to_vec();
    sorted.sort_by(|a, b| match better {
        Better::Lower => a.standing(entries).total_cmp(&b.standing(entries)),
        Better::Higher => b.standing(entries).total_cmp(&a.standing(entries)),
    });
    let (first, others) = sorted.split_first()?;
    let shares: Vec<Middle> =
        others.iter().map(|other| Middle::of(first.shares_of(other))).collect::<Option<_>>()?;
    let is_clear = |shares: &Middle| match better {
        Better::Lower => shares.high < 1.0 - CLEAR_FROM,
        Better::Higher => shares.low > 1.0 + CLEAR_FROM,
    };
    let Some(next) = shares.iter().position(is_clear) else {
        return Some((None, others.first()?.interface, shares.first()?.value));
    };
    let mut level: Vec<&str> = sorted[..=next].iter().map(|entry| entry.interface).collect();
    level.sort_unstable();
    let level_or_alone = if level.len() > 1 { " level and first" } else { " first" };
    Some((Some(level.join(" and ") + level_or_alone), others[next].interface, shares[next].value))
}

/// One sentence about one part in one placement; `None` with fewer than two interfaces.
fn contest(title: &str, placement: Placement, entries: &[Entry<'_>], better: Better) -> Option<String> {
    let mut spans: Vec<(Option<String>, &str, Vec<(u32, f64)>)> = Vec::new();
    for bytes in distinct(entries.iter().map(|entry| entry.bytes)) {
        let of_size: Vec<&Entry> = entries.iter().filter(|entry| entry.bytes == bytes).collect();
        let (first, second, ratio) = first_of(&of_size, better)?;
        match spans.last_mut().filter(|span| span.0 == first) {
            Some(span) => {
                span.2.push((bytes, ratio));
                if span.1 != second {
                    span.1 = "the second";
                }
            }
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
            let Some(first) = first else { return format!("none clearly first {at}") };
            let (low, high) = points.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), (_, ratio)| {
                (low.min(*ratio), high.max(*ratio))
            });
            let range =
                if high - low < 0.01 { format!("{high:.2}") } else { format!("{low:.2} to {high:.2}") };
            format!("{first} {at} ({range} of {second}'s {quantity})")
        })
        .collect();
    (!parts.is_empty()).then(|| format!("{title}, {placement}: {}.", parts.join("; ")))
}

/// How many rows have rounds that lie too far apart to be believed one by one.
pub fn unsteady(results: &Results) -> Option<String> {
    let count = |spreads: &mut dyn Iterator<Item = f64>| {
        let spreads: Vec<f64> = spreads.collect();
        let over: Vec<f64> = spreads.iter().copied().filter(|spread| *spread > UNSTEADY_FROM).collect();
        (over.len(), spreads.len(), over.into_iter().fold(0.0, f64::max))
    };
    let parts = [
        ("raw stores", count(&mut results.stores.iter().map(|row| row.spread))),
        ("latencies", count(&mut results.latencies.iter().map(|row| row.spread))),
        ("rates there and back", count(&mut results.rates.iter().map(|row| row.spread))),
        ("rates onto the wire", count(&mut results.transmits.iter().map(|row| row.spread))),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(_, (over, _, _))| *over > 0)
        .map(|(part, (over, all, worst))| {
            format!("{over} of {all} {part}, the worst by {:.0} %", worst * 100.0)
        })
        .collect();
    (!said.is_empty()).then(|| {
        format!(
            "* Marked rows: the middle half of their rounds is wider than {:.0} % of the middle ({}). The machine changed its \
             speed; compare within rounds, as the sentences above do, not row with row.",
            UNSTEADY_FROM * 100.0,
            said.join("; ")
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

    fn entry(interface: &'static str, bytes: u32, values: [f64; 3]) -> Entry<'static> {
        Entry { interface, bytes, values: (0..).zip(values).collect() }
    }

    #[test]
    fn sentence_names_the_first_interface_at_each_size_and_its_lead() {
        let entries = [
            entry("mmio", 16, [300.0; 3]),
            entry("descriptor", 16, [400.0; 3]),
            // Rounds that differ by a factor, in which the interfaces keep their distance.
            entry("mmio", 64, [320.0, 640.0, 330.0]),
            entry("descriptor", 64, [400.0, 800.0, 412.5]),
            entry("mmio", 256, [400.0, 440.0, 410.0]),
            entry("descriptor", 256, [420.0, 400.0, 430.0]),
            entry("mmio", 512, [500.0; 3]),
            entry("descriptor", 512, [450.0; 3]),
        ];
        assert_eq!(
            contest("One way", Placement::Near, &entries, Better::Lower).unwrap(),
            "One way, near: mmio first from 16 to 64 B (0.75 to 0.80 of descriptor's time); none clearly first at 256 B; \
             descriptor first at 512 B (0.90 of mmio's time)."
        );
        let rates = [entry("mmio", 64, [20e6; 3]), entry("enso", 64, [25e6; 3])];
        assert_eq!(
            contest("Onto the wire", Placement::Far, &rates, Better::Higher).unwrap(),
            "Onto the wire, far: enso first at 64 B (1.25 of mmio's rate)."
        );
        assert_eq!(contest("x", Placement::Near, &[entry("mmio", 64, [1.0; 3])], Better::Lower), None);
    }

    #[test]
    fn lead_of_a_few_percent_is_not_called_however_steady() {
        let entries = [entry("mmio", 64, [480.0; 3]), entry("kpio", 64, [490.0; 3])];
        assert_eq!(
            contest("One way", Placement::Near, &entries, Better::Lower).unwrap(),
            "One way, near: none clearly first at 64 B."
        );
        let [mmio, kpio] = entries;
        assert_eq!(
            contest(
                "One way",
                Placement::Near,
                &[mmio, entry("descriptor", 64, [600.0; 3]), kpio],
                Better::Lower
            )
            .unwrap(),
            "One way, near: kpio and mmio level and first at 64 B (0.80 of descriptor's time)."
        );
    }

    #[test]
    fn first_is_who_leads_in_most_rounds_when_values_alone_say_otherwise() {
        // In each round mmio has the higher rate; the middle of its values is lower, since two of its rounds are the slow ones.
        let at = |interface, values: &[(u32, f64)]| Entry { interface, bytes: 128, values: values.to_vec() };
        let mmio = at("mmio", &[(0, 11.5e6), (1, 5.8e6), (2, 5.9e6), (3, 12e6), (4, 5.7e6)]);
        let kpio = at("kpio", &[(0, 10e6), (1, 5e6), (2, 5.1e6), (3, 10.2e6), (5, 10.1e6), (6, 10.3e6)]);
        assert_eq!(
            contest("Onto the wire", Placement::Near, &[mmio, kpio], Better::Higher).unwrap(),
            "Onto the wire, near: mmio first at 128 B (1.16 of kpio's rate)."
        );
    }

    #[test]
    fn winners_are_found_in_the_rows_of_rounds() {
        let row = |what: &str, round, value| RoundRow {
            part: "there and back",
            placement: Placement::Near,
            round,
            bare_line_ns: 130.0,
            what: what.to_owned(),
            kernel: "cached",
            bytes: 64,
            value,
            unit: "",
        };
        let mut results = sample();
        results.rounds = vec![
            row("mmio one-way", 0, 300.0),
            row("descriptor one-way", 0, 400.0),
            row("mmio one-way", 1, 600.0),
            row("descriptor one-way", 1, 800.0),
            row("mmio", 0, 3e6),
            row("descriptor", 0, 1e6),
        ];
        let words = winners(&results);
        assert_eq!(
            words,
            [
                "One way, near: mmio first at 64 B (0.75 of descriptor's time).",
                "There and back, near: mmio first at 64 B (3.00 of descriptor's rate).",
            ]
        );
    }

    #[test]
    fn summary_names_conditions_and_rows_that_are_not_steady() {
        let text = render(&sample());
        assert!(text.contains("Placement near: a bare line between cores 0 and 1"), "{text}");
        let dropped = conditions(&sample())
            .into_iter()
            .find(|line| line.starts_with("Rounds dropped"))
            .unwrap_or_default();
        assert!(
            dropped.ends_with("onto the wire: 1; none was left, so there are no figures of it."),
            "{dropped}"
        );
        let marked = unsteady(&sample()).expect("the sample has rows that are not steady");
        assert!(marked.contains("6 of 54 latencies, the worst by 30 %"), "{marked}");
        assert!(text.lines().all(|line| line.chars().count() <= super::super::table::WIDTH.into()), "{text}");
    }
}
