//! What a chart shows, in one sentence made of its points: which line is best where and by how much, and how far published points
//! are from the line.

use super::chart::{Across, Better, Chart, Series};
use super::text::short;

/// Two values nearer than this are told apart by no reader.
const LEVEL_WITHIN: f64 = 0.02;
/// More stretches than these say less than a count.
const MOST_STRETCHES: usize = 4;

/// The best line of consecutive places: its name, or those of the two that are level.
struct Stretch {
    best: String,
    is_level: bool,
    from: f64,
    to: f64,
    places: usize,
    /// The best value as a share of the next, least and greatest.
    shares: (f64, f64),
}

/// Returns what a reader should see, in one sentence.
pub fn sentence(chart: &Chart<'_>) -> String {
    let stretches = stretches(chart);
    let mut parts = match &stretches[..] {
        [] => chart.series.iter().filter_map(|series| course(chart, series)).collect(),
        few if few.len() <= MOST_STRETCHES => few.iter().map(|stretch| in_words(chart, stretch)).collect(),
        many => counted(chart, many),
    };
    parts.extend(chart.series.iter().filter_map(|series| off_the_published(chart, series)));
    if parts.is_empty() { String::new() } else { parts.join("; ") + "." }
}

/// The stretches of a chart, in order; none where no place has two lines.
fn stretches(chart: &Chart<'_>) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for place in chart.places() {
        let mut values: Vec<(&str, f64)> = chart
            .series
            .iter()
            .filter_map(|series| {
                let point = series.points.iter().find(|point| point.0 == place)?;
                Some((series.name.as_str(), point.1))
            })
            .collect();
        values.sort_by(|a, b| match chart.better {
            Better::Lower => a.1.total_cmp(&b.1),
            Better::Higher => b.1.total_cmp(&a.1),
        });
        let [best, next, ..] = values[..] else { continue };
        let share = best.1 / next.1;
        let is_level = (share - 1.0).abs() <= LEVEL_WITHIN;
        let name = if is_level {
            // Which of two level lines is ahead changes from place to place and means nothing.
            let (one, other) = (best.0.min(next.0), best.0.max(next.0));
            format!("{one} and {other}")
        } else {
            best.0.to_owned()
        };
        match stretches.last_mut().filter(|last| last.best == name && last.is_level == is_level) {
            Some(last) => {
                last.to = place;
                last.places += 1;
                last.shares = (last.shares.0.min(share), last.shares.1.max(share));
            }
            None => stretches.push(Stretch {
                best: name,
                is_level,
                from: place,
                to: place,
                places: 1,
                shares: (share, share),
            }),
        }
    }
    stretches
}

fn word(chart: &Chart<'_>) -> &'static str {
    match chart.better {
        Better::Lower => "lowest",
        Better::Higher => "highest",
    }
}

/// A share with two digits behind the point, or as many as it takes to show two that count.
fn share(share: f64) -> String {
    if share >= 0.01 {
        return format!("{share:.2}");
    }
    format!("{share:.1e}").parse::<f64>().unwrap_or(share).to_string()
}

fn in_words(chart: &Chart<'_>, stretch: &Stretch) -> String {
    let at = between(chart, stretch.from, stretch.to);
    if stretch.is_level {
        return format!("{} are level, and {}, {at}", stretch.best, word(chart));
    }
    let (low, high) = (share(stretch.shares.0), share(stretch.shares.1));
    let shares = if low == high { low } else { format!("{low} to {high}") };
    format!("{} is {} {at} ({shares} of the next)", stretch.best, word(chart))
}

fn between(chart: &Chart<'_>, from: f64, to: f64) -> String {
    if from == to {
        return format!("at {}", chart.across.place(from));
    }
    format!("from {} to {}", chart.across.place(from), chart.across.place(to))
}

/// At how many places each line is the best one.
fn counted(chart: &Chart<'_>, stretches: &[Stretch]) -> Vec<String> {
    let all: usize = stretches.iter().map(|stretch| stretch.places).sum();
    let mut counts: Vec<(&str, bool, usize)> = Vec::new();
    for stretch in stretches {
        match counts.iter_mut().find(|count| count.0 == stretch.best) {
            Some(count) => count.2 += stretch.places,
            None => counts.push((&stretch.best, stretch.is_level, stretch.places)),
        }
    }
    counts.sort_by_key(|count| std::cmp::Reverse(count.2));
    let words = |(name, is_level, places): &(&str, bool, usize)| {
        let be = if *is_level { "are level, and" } else { "is" };
        format!("{name} {be} {} at {places} of {all} sizes", word(chart))
    };
    counts.iter().map(words).collect()
}

/// How a line that no other stands beside goes.
fn course(chart: &Chart<'_>, series: &Series) -> Option<String> {
    let (first, last) = (series.points.first()?, series.points.last()?);
    if first == last {
        return Some(format!(
            "{} is {} {} at {}",
            series.name,
            short(first.1),
            chart.unit,
            chart.across.place(first.0)
        ));
    }
    let goes = match last.1 / first.1 {
        ratio if ratio > 1.0 + LEVEL_WITHIN => "rises",
        ratio if ratio < 1.0 - LEVEL_WITHIN => "falls",
        _ => "comes back",
    };
    Some(format!(
        "{} {goes} from {} at {} to {} {} at {}",
        series.name,
        short(first.1),
        chart.across.place(first.0),
        short(last.1),
        chart.unit,
        chart.across.place(last.0)
    ))
}

/// How far the line is from the published points, as tables have it: ours less theirs, as a share of theirs.
fn off_the_published(chart: &Chart<'_>, series: &Series) -> Option<String> {
    let off: Vec<f64> = series
        .marks
        .iter()
        .filter_map(|mark| Some(100.0 * (value_at(chart, series, mark.0)? - mark.1) / mark.1))
        .collect();
    let (low, high) = (off.iter().copied().reduce(f64::min)?, off.iter().copied().reduce(f64::max)?);
    // A figure near nothing has no sign.
    let percent = |value: f64| format!("{:+.1}", value + 0.0).replace("-0.0", "0.0").replace("+0.0", "0.0");
    let points = match off.len() {
        1 => "its published point".to_owned(),
        count => format!("its {count} published points"),
    };
    let by = if percent(low) == percent(high) {
        format!("by {} %", percent(low))
    } else {
        format!("by {} to {} %", percent(low), percent(high))
    };
    Some(format!("{} is off {points} {by}", series.name))
}

/// The value of a line at a place, between its points too where a line joins them.
fn value_at(chart: &Chart<'_>, series: &Series, place: f64) -> Option<f64> {
    if let Some(point) = series.points.iter().find(|point| point.0 == place) {
        return Some(point.1);
    }
    if matches!(chart.across, Across::Numbers(_)) {
        return None;
    }
    let pair = series.points.windows(2).find(|pair| (pair[0].0..pair[1].0).contains(&place))?;
    let share = (place - pair[0].0) / (pair[1].0 - pair[0].0);
    Some(pair[0].1 + share * (pair[1].1 - pair[0].1))
}

#[cfg(test)]
mod tests {
    use super::super::line_style::LineStyle;
    use super::*;

    fn chart(better: Better, lines: &[(&str, &[(f64, f64)])]) -> Chart<'static> {
        let series = lines
            .iter()
            .enumerate()
            .map(|(number, (name, points))| Series::line(*name, LineStyle::Other(number), points.to_vec()));
        Chart {
            title: "One way".to_owned(),
            unit: "ns",
            across: Across::Sizes("frame, bytes"),
            is_logarithmic: true,
            better,
            series: series.collect(),
            values: None,
        }
    }

    #[test]
    fn share_is_never_printed_as_nothing() {
        let shares = [1.5, 0.05, 0.01, 0.004_21, 0.000_03];
        assert_eq!(shares.map(share), ["1.50", "0.05", "0.01", "0.0042", "0.00003"].map(str::to_owned));
    }

    #[test]
    fn sentence_follows_the_lines_when_another_one_wins() {
        let descriptor = [(16.0, 400.0), (64.0, 404.0), (512.0, 450.0)];
        let fast = [(16.0, 300.0), (64.0, 400.0), (512.0, 900.0)];
        let slow = fast.map(|(size, ns)| (size, 10.0 * ns));
        let words = |mmio: &[(f64, f64)], better| {
            sentence(&chart(better, &[("mmio", mmio), ("descriptor", &descriptor)]))
        };
        assert_eq!(
            words(&fast, Better::Lower),
            "mmio is lowest at 16 B (0.75 of the next); descriptor and mmio are level, and lowest, at 64 B; descriptor is \
             lowest at 512 B (0.50 of the next)."
        );
        assert_eq!(
            words(&slow, Better::Lower),
            "descriptor is lowest from 16 B to 512 B (0.05 to 0.13 of the next)."
        );
        assert_eq!(
            words(&slow, Better::Higher),
            "mmio is highest from 16 B to 512 B (7.50 to 20.00 of the next)."
        );
    }

    #[test]
    fn many_changes_are_counted() {
        let points = |odd: f64| (1..=9).map(|n| (f64::from(n), if n % 2 == 1 { odd } else { 3.0 })).collect();
        let (one, other): (Vec<_>, Vec<_>) = (points(2.0), points(4.0));
        let flat: Vec<_> = (1..=9).map(|n| (f64::from(n), 2.5)).collect();
        let words = sentence(&chart(Better::Lower, &[("a", &one), ("b", &other), ("c", &flat)]));
        assert_eq!(words, "a is lowest at 5 of 9 sizes; c is lowest at 4 of 9 sizes.");
    }

    #[test]
    fn published_points_are_compared_with_the_line_between_its_points() {
        let mut chart = chart(Better::Lower, &[("copy", &[(10.0, 100.0), (20.0, 200.0)])]);
        chart.series[0].marks = vec![(15.0, 100.0), (20.0, 250.0)];
        chart.series[0].others = vec![(10.0, 1.0)];
        assert_eq!(
            sentence(&chart),
            "copy rises from 100 at 10 B to 200 ns at 20 B; copy is off its 2 published points by -20.0 to +50.0 %."
        );
        // Nothing lies between two packets of a trace.
        chart.across = Across::Numbers("packet");
        assert!(
            sentence(&chart).ends_with("; copy is off its published point by -20.0 %."),
            "{}",
            sentence(&chart)
        );
    }
}
