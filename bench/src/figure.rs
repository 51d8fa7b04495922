//! A figure: what was measured, on what, and the raw samples behind it.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::median::{median, midmean};

/// The value of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Value {
    /// Messages a second. Samples are the rounds.
    Rate {
        /// The best round.
        best_per_second: f64,
        /// The middle round.
        median_per_second: f64,
    },
    /// Nanoseconds. Samples are the single events.
    Latency {
        /// Half of the events took at most this.
        p50_ns: f64,
        /// 99 in 100.
        p99_ns: f64,
        /// 999 in 1000.
        p999_ns: f64,
    },
    /// Nanoseconds of rare events, too few for more nines. Samples are the single events.
    Delay {
        /// Half of the events took at most this.
        p50_ns: f64,
        /// 99 in 100.
        p99_ns: f64,
        /// The longest of all times.
        worst_ns: f64,
    },
}

/// One measured quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The bench it belongs to.
    pub bench: String,
    pub name: String,
    /// Store kernel; `-` where a path has none.
    pub kernel: String,
    /// Memory type of the path.
    pub memory: String,
    /// Where the cores lay to each other in every round, `near` or `far`; empty where that is not known or does not matter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement: String,
    /// Bytes of a message on the path, headers included.
    pub size_bytes: u32,
    /// Messages a round.
    pub count: u64,
    /// The summary.
    pub value: Value,
    /// The same by round: the rate, or the mean of the middle half of a latency's events in nanoseconds, which is finer than the steps of the
    /// clock; of a delay the p50. What ratios are made of.
    pub rounds: Vec<f64>,
    /// Raw samples: rates of the rounds, or nanoseconds of each event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<f64>,
}

impl Figure {
    pub fn rate(row: Row<'_>, rounds: Vec<f64>) -> Self {
        let best_per_second = rounds.iter().copied().fold(0.0, f64::max);
        let value = Value::Rate { best_per_second, median_per_second: median(&rounds) };
        row.figure(value, rounds.clone(), rounds)
    }

    /// A latency from its events.
    pub fn latency(row: Row<'_>, latencies: Latencies) -> Self {
        let [p50_ns, p99_ns, p999_ns] = latencies.percentiles([0.5, 0.99, 0.999]);
        row.figure(Value::Latency { p50_ns, p99_ns, p999_ns }, latencies.rounds, latencies.samples)
    }

    /// A delay from its events by round, in nanoseconds.
    pub fn delay(row: Row<'_>, rounds: Vec<Vec<f64>>) -> Self {
        let samples = rounds.concat();
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        // The smallest value that this fraction of the events does not exceed.
        let at = |fraction: f64| {
            let rank = (fraction * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
        };
        let value = Value::Delay { p50_ns: at(0.5), p99_ns: at(0.99), worst_ns: at(1.0) };
        row.figure(value, rounds.iter().map(|round| median(round)).collect(), samples)
    }
}

impl Figure {
    /// The same figure of some of its rounds, in which the cores lay so. Rounds of a latency have as many events each.
    ///
    /// # Panics
    /// If a round is none of the figure's.
    pub(crate) fn of_rounds(&self, rounds: &[usize], placement: &str) -> Self {
        let row = Row {
            bench: &self.bench,
            name: &self.name,
            kernel: &self.kernel,
            memory: &self.memory,
            size_bytes: self.size_bytes,
            count: self.count,
        };
        let events = self.samples.len() / self.rounds.len().max(1);
        let events_of = |round: &usize| &self.samples[round * events..(round + 1) * events];
        let mut figure = match self.value {
            Value::Rate { .. } => Figure::rate(row, rounds.iter().map(|round| self.rounds[*round]).collect()),
            Value::Latency { .. } => {
                let mut latencies = Latencies::new();
                rounds.iter().for_each(|round| latencies.add_round(events_of(round)));
                Figure::latency(row, latencies)
            }
            Value::Delay { .. } => {
                Figure::delay(row, rounds.iter().map(|round| events_of(round).to_vec()).collect())
            }
        };
        figure.placement = placement.to_owned();
        figure
    }
}

/// Columns that tell one figure from another.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The bench it belongs to.
    pub bench: &'a str,
    pub name: &'a str,
    /// Store kernel; `-` where a path has none.
    pub kernel: &'a str,
    /// Memory type of the path.
    pub memory: &'a str,
    /// Bytes of a message on the path, headers included.
    pub size_bytes: u32,
    /// Messages a round.
    pub count: u64,
}

impl Row<'_> {
    fn figure(self, value: Value, rounds: Vec<f64>, samples: Vec<f64>) -> Figure {
        Figure {
            bench: self.bench.to_owned(),
            name: self.name.to_owned(),
            kernel: self.kernel.to_owned(),
            memory: self.memory.to_owned(),
            placement: String::new(),
            size_bytes: self.size_bytes,
            count: self.count,
            value,
            rounds,
            samples,
        }
    }
}

/// Events of one path over all rounds.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    samples: Vec<f64>,
    rounds: Vec<f64>,
}

/// The histogram counts hundredths of a nanosecond, so that its three digits are finer than the clock.
const UNITS_PER_NS: f64 = 100.0;

impl Latencies {
    /// No events yet.
    pub fn new() -> Self {
        // Up to ten seconds, which no event of a bench takes; what takes longer counts as that.
        let histogram = Histogram::new_with_bounds(1, 10 * 1_000_000_000 * UNITS_PER_NS as u64, 3);
        let histogram =
            histogram.expect("the bounds are in order and the digits in the range of the histogram");
        Latencies { histogram, samples: Vec::new(), rounds: Vec::new() }
    }

    /// Adds a round of events, in nanoseconds.
    pub fn add_round(&mut self, events_ns: &[f64]) {
        for event in events_ns {
            self.histogram.saturating_record((event * UNITS_PER_NS).round() as u64);
        }
        self.samples.extend_from_slice(events_ns);
        self.rounds.push(midmean(events_ns));
    }

    /// Values, in nanoseconds, that these fractions of all events do not exceed.
    pub fn percentiles<const N: usize>(&self, fractions: [f64; N]) -> [f64; N] {
        fractions.map(|fraction| self.histogram.value_at_quantile(fraction) as f64 / UNITS_PER_NS)
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row<'_> =
        Row { bench: "b", name: "n", kernel: "cached", memory: "private", size_bytes: 64, count: 10 };

    #[test]
    fn a_rate_keeps_its_rounds() {
        let figure = Figure::rate(ROW, vec![3.0, 9.0, 5.0]);
        assert_eq!(figure.value, Value::Rate { best_per_second: 9.0, median_per_second: 5.0 });
        assert_eq!(figure.rounds, [3.0, 9.0, 5.0]);
    }

    #[test]
    fn percentiles_are_those_of_the_events() {
        let mut latencies = Latencies::new();
        latencies.add_round(&(1..=500).map(f64::from).collect::<Vec<_>>());
        latencies.add_round(&(501..=1000).map(f64::from).collect::<Vec<_>>());
        let [p50, p99, p999] = latencies.percentiles([0.5, 0.99, 0.999]);
        for (found, expected) in [(p50, 500.0), (p99, 990.0), (p999, 999.0)] {
            assert!((found / expected - 1.0f64).abs() < 0.002, "{found} for {expected}");
        }
        let figure = Figure::latency(ROW, latencies);
        assert_eq!((figure.samples.len(), figure.rounds.len()), (1000, 2));
    }

    #[test]
    fn the_worst_of_few_events_is_kept_exactly() {
        let figure = Figure::delay(ROW, vec![(1..=100).map(f64::from).collect(), vec![5000.0; 1]]);
        assert_eq!(figure.value, Value::Delay { p50_ns: 51.0, p99_ns: 100.0, worst_ns: 5000.0 });
        assert_eq!((figure.samples.len(), figure.rounds), (101, vec![51.0, 5000.0]));
    }
}
