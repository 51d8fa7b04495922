//! Targets: ratios of two figures of one run, or a limit to one of them, and whether they are met.

use serde::{Deserialize, Serialize};

use crate::median::median;
use crate::{Figure, Value};

/// What is asked of a ratio, of the worst of some times, or of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// Milliseconds, this or less: never a ratio.
    WithinMs(f64),
    /// Millions a second, this or more: never a ratio.
    AtLeastMillions(f64),
    /// No bound: the ratio is shown.
    Shown,
}

impl Bound {
    fn holds(self, found: f64) -> bool {
        match self {
            Bound::AtLeast(least) | Bound::AtLeastMillions(least) => found >= least,
            Bound::AtMost(most) | Bound::WithinMs(most) => found <= most,
            Bound::Shown => true,
        }
    }
}

/// A target, the ratio found, and whether the target is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The bench it belongs to.
    pub bench: String,
    /// As of its figures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement: String,
    /// The two figures that are compared.
    pub target: String,
    /// The ratio found, or milliseconds or millions a second where the bound is of that kind.
    pub found: f64,
    pub bound: Bound,
    pub pass: bool,
}

impl Check {
    fn of(bench: &str, target: String, found: f64, bound: Bound) -> Self {
        let (bench, placement, pass) = (bench.to_owned(), String::new(), bound.holds(found));
        Check { bench, placement, target, found, bound, pass }
    }

    /// Checks the ratio of `ours` to `rival`: that of [`paired_ratio`].
    pub fn ratio(bench: &str, ours: &Figure, rival: &Figure, bound: Bound) -> Self {
        let found = paired_ratio(ours, rival);
        let target = format!("{} / {}", label(ours), label(rival));
        Check::of(bench, target, found, bound)
    }

    /// As [`Check::ratio`] of two times, with `allowance_ns` nanoseconds of `ours` left out: what is allowed at every size.
    pub fn ratio_beyond(bench: &str, ours: &Figure, rival: &Figure, allowance_ns: f64, bound: Bound) -> Self {
        let beyond = ours.rounds.iter().map(|ours| (ours - allowance_ns).max(0.0));
        let ratios: Vec<f64> = beyond.zip(&rival.rounds).map(|(ours, rival)| ours / rival).collect();
        let target = format!("({} - {allowance_ns} ns) / {}", label(ours), label(rival));
        Check::of(bench, target, median(&ratios), bound)
    }

    /// Checks the ratio of the p99 of all events of `ours` to that of `rival`, two latencies.
    pub fn p99_ratio(bench: &str, ours: &Figure, rival: &Figure, bound: Bound) -> Self {
        let p99_ns = |figure: &Figure| match figure.value {
            Value::Latency { p99_ns, .. } | Value::Delay { p99_ns, .. } => p99_ns,
            Value::Rate { .. } => f64::NAN,
        };
        let target = format!("p99: {} / {}", label(ours), label(rival));
        Check::of(bench, target, p99_ns(ours) / p99_ns(rival), bound)
    }

    /// Checks the longest of the times that `figure` was made of, all of them, in milliseconds.
    pub fn limit(bench: &str, figure: &Figure, most_ms: f64) -> Self {
        let found = figure.samples.iter().copied().fold(0.0, f64::max) / 1e6;
        let bound = Bound::WithinMs(most_ms);
        let target = format!("{}, worst", label(figure));
        Check::of(bench, target, found, bound)
    }

    /// Checks the p99.9 of all events of a latency, in milliseconds.
    pub fn p999_limit(bench: &str, figure: &Figure, most_ms: f64) -> Self {
        let found = match figure.value {
            Value::Latency { p999_ns, .. } => p999_ns / 1e6,
            Value::Delay { .. } | Value::Rate { .. } => f64::NAN,
        };
        Check::of(bench, format!("{}, p99.9", label(figure)), found, Bound::WithinMs(most_ms))
    }

    /// Checks the middle of the latencies of the rounds, in microseconds.
    pub fn middle(bench: &str, figure: &Figure, most_us: f64) -> Self {
        let (found, bound) = (median(&figure.rounds) / 1e6, Bound::WithinMs(most_us / 1e3));
        Check::of(bench, format!("{}, middle", label(figure)), found, bound)
    }

    /// Checks the middle of the rates that `figure` was made of, in millions a second.
    pub fn rate(bench: &str, figure: &Figure, least_millions: f64) -> Self {
        let found = median(&figure.rounds) / 1e6;
        let bound = Bound::AtLeastMillions(least_millions);
        Check::of(bench, label(figure), found, bound)
    }
}

fn label(figure: &Figure) -> String {
    match figure.kernel.as_str() {
        "-" => figure.name.clone(),
        kernel => format!("{} [{kernel}]", figure.name),
    }
}

/// The middle of the ratios of the rounds, each of one round of the two figures next to each other in time. Noise of
/// the machine that lasts longer than a round hits both sides of a ratio, and a round hit alone is no middle.
pub fn paired_ratio(ours: &Figure, rival: &Figure) -> f64 {
    let ratios: Vec<f64> = ours.rounds.iter().zip(&rival.rounds).map(|(ours, rival)| ours / rival).collect();
    median(&ratios)
}

/// The figure with the highest median rate.
pub(crate) fn fastest<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> Option<&'f Figure> {
    let rate = |figure: &Figure| match figure.value {
        Value::Rate { median_per_second, .. } => median_per_second,
        Value::Latency { .. } | Value::Delay { .. } => 0.0,
    };
    figures.into_iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Row;

    fn figure(name: &str, rounds: &[f64]) -> Figure {
        let row = Row { bench: "b", name, kernel: "-", memory: "private", size_bytes: 64, count: 1 };
        Figure::rate(row, rounds.to_vec())
    }

    #[test]
    fn ratio_of_rounds_is_their_median() {
        let ours = figure("ours", &[10.0, 30.0, 2.0]);
        let rival = figure("rival", &[5.0, 10.0, 2.0]);
        assert_eq!(paired_ratio(&ours, &rival), 2.0);
        assert!(Check::ratio("b", &ours, &rival, Bound::AtLeast(2.0)).pass);
        assert!(!Check::ratio("b", &ours, &rival, Bound::AtLeast(2.1)).pass);
        assert!(Check::ratio("b", &ours, &rival, Bound::AtMost(2.0)).pass);
        assert!(!Check::ratio("b", &ours, &rival, Bound::AtMost(1.9)).pass);
    }

    #[test]
    fn allowance_is_taken_from_each_round() {
        let (ours, rival) = (figure("ours", &[31.0, 5.0, 130.0]), figure("rival", &[10.0, 10.0, 100.0]));
        let check = Check::ratio_beyond("b", &ours, &rival, 20.0, Bound::AtMost(1.1));
        assert!((check.found - 1.1).abs() < 1e-9 && check.target == "(ours - 20 ns) / rival", "{check:?}");
        assert!(!Check::ratio_beyond("b", &ours, &rival, 19.0, Bound::AtMost(1.1)).pass);
        assert_eq!(Check::ratio_beyond("b", &rival, &ours, 200.0, Bound::AtMost(0.0)).found, 0.0);
    }

    #[test]
    fn limit_is_compared_with_the_worst_time() {
        let row = Row { bench: "b", name: "death", kernel: "-", memory: "-", size_bytes: 0, count: 3 };
        let figure = Figure::delay(row, vec![vec![1e6, 49e6], vec![2e6]]);
        assert!(Check::limit("b", &figure, 50.0).pass);
        assert!(!Check::limit("b", &figure, 48.0).pass);
        assert_eq!(Check::limit("b", &figure, 48.0).found, 49.0);
    }

    #[test]
    fn p99_of_all_events_is_compared_and_a_rate_has_none() {
        let row = |name| Row { bench: "b", name, kernel: "-", memory: "-", size_bytes: 0, count: 100 };
        let delay = |name, slow: f64| {
            let events: Vec<f64> = (0..100).map(|event| if event < 98 { 1.0 } else { slow }).collect();
            Figure::delay(row(name), vec![events])
        };
        let (ours, rival) = (delay("ours", 8.0), delay("rival", 4.0));
        let check = Check::p99_ratio("b", &ours, &rival, Bound::AtMost(2.0));
        assert_eq!((check.found, check.pass, check.target.as_str()), (2.0, true, "p99: ours / rival"));
        assert!(!Check::p99_ratio("b", &ours, &rival, Bound::AtMost(1.9)).pass);
        assert!(!Check::p99_ratio("b", &ours, &figure("rate", &[1.0]), Bound::AtMost(2.0)).pass);
    }

    #[test]
    fn p999_of_a_latency_is_limited_and_nothing_else_has_one() {
        let row = Row { bench: "b", name: "GET", kernel: "-", memory: "-", size_bytes: 0, count: 1000 };
        let mut latencies = crate::Latencies::new();
        latencies.add_round(&(1..=1000).map(|event| if event < 999 { 1.0 } else { 2e6 }).collect::<Vec<_>>());
        let get = Figure::latency(row, latencies);
        assert!((Check::p999_limit("b", &get, 2.1).found - 2.0).abs() < 0.01);
        assert!(Check::p999_limit("b", &get, 2.1).pass && !Check::p999_limit("b", &get, 1.9).pass);
        assert!(!Check::p999_limit("b", &figure("rate", &[1.0]), 1.0).pass);
    }

    #[test]
    fn rate_is_judged_by_its_median() {
        let figure = figure("calls", &[30e6, 1e6, 21e6]);
        assert!(Check::rate("b", &figure, 21.0).pass);
        assert!(!Check::rate("b", &figure, 21.1).pass);
        assert_eq!(Check::rate("b", &figure, 20.0).found, 21.0);
    }

    #[test]
    fn a_ratio_that_is_shown_fails_nothing() {
        let [a, b] = [figure("a", &[1.0]), figure("b", &[1000.0])];
        assert!(Check::ratio("b", &a, &b, Bound::Shown).pass);
    }

    #[test]
    fn fastest_has_the_highest_median_rate() {
        let [a, b] = [figure("a", &[1.0, 2.0, 99.0]), figure("b", &[3.0, 3.0, 3.0])];
        assert_eq!(fastest([&a, &b]).map(|figure| figure.name.as_str()), Some("b"));
    }
}
