//! Targets: ratios of two figures of one run, and whether they are met.

use serde::{Deserialize, Serialize};

use crate::figure::median;
use crate::{Figure, Value};

/// What a ratio is to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

/// What became of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The bench it belongs to.
    pub bench: String,
    /// What is compared with what.
    pub target: String,
    /// The ratio found.
    pub ratio: f64,
    /// What it is to be.
    pub bound: Bound,
    /// Whether it is.
    pub pass: bool,
}

impl Verdict {
    /// Judges `ours` against `rival`: the ratio of [`paired_ratio`].
    pub fn judge(bench: &str, ours: &Figure, rival: &Figure, bound: Bound) -> Self {
        let ratio = paired_ratio(ours, rival);
        let pass = match bound {
            Bound::AtLeast(least) => ratio >= least,
            Bound::AtMost(most) => ratio <= most,
        };
        let label = |figure: &Figure| match figure.kernel.as_str() {
            "-" => figure.name.clone(),
            kernel => format!("{} [{kernel}]", figure.name),
        };
        let target = format!("{} / {}", label(ours), label(rival));
        Verdict { bench: bench.to_owned(), target, ratio, bound, pass }
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
        Value::Latency { .. } => 0.0,
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
    fn a_ratio_is_the_middle_of_the_rounds() {
        let ours = figure("ours", &[10.0, 30.0, 2.0]);
        let rival = figure("rival", &[5.0, 10.0, 2.0]);
        assert_eq!(paired_ratio(&ours, &rival), 2.0);
        assert!(Verdict::judge("b", &ours, &rival, Bound::AtLeast(2.0)).pass);
        assert!(!Verdict::judge("b", &ours, &rival, Bound::AtLeast(2.1)).pass);
        assert!(Verdict::judge("b", &ours, &rival, Bound::AtMost(2.0)).pass);
        assert!(!Verdict::judge("b", &ours, &rival, Bound::AtMost(1.9)).pass);
    }

    #[test]
    fn the_fastest_is_the_one_with_the_best_middle() {
        let [a, b] = [figure("a", &[1.0, 2.0, 99.0]), figure("b", &[3.0, 3.0, 3.0])];
        assert_eq!(fastest([&a, &b]).map(|figure| figure.name.as_str()), Some("b"));
    }
}
