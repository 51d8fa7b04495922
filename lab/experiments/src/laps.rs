//! Times of many, as percentiles.

use beeline_link_sim::des::Picoseconds;
use hdrhistogram::Histogram;

/// Longest time that is told apart: ten seconds.
const LONGEST_PS: u64 = 10_000_000_000_000;

/// Times, to three digits.
#[derive(Clone, Debug)]
pub struct Laps {
    histogram: Histogram<u64>,
}

/// What there is to say of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// The shortest.
    pub least_ns: f64,
    /// Their mean.
    pub mean_ns: f64,
    /// Percentiles.
    pub p50_ns: f64,
    /// Percentiles.
    pub p99_ns: f64,
    /// Percentiles.
    pub p999_ns: f64,
    /// The longest.
    pub most_ns: f64,
}

impl Default for Laps {
    fn default() -> Self {
        Laps::new()
    }
}

impl Laps {
    /// None yet.
    ///
    /// # Panics
    /// Never: the bounds are those of the histogram.
    pub fn new() -> Laps {
        let histogram = Histogram::new_with_bounds(1, LONGEST_PS, 3).expect("bounds of a histogram");
        Laps { histogram }
    }

    /// One more.
    pub fn add(&mut self, span: Picoseconds) {
        self.histogram.saturating_record(span.0.max(1));
    }

    /// Those of another run too.
    ///
    /// # Panics
    /// Never: all have the same bounds.
    pub fn merge(&mut self, others: &Laps) {
        self.histogram.add(&others.histogram).expect("the same bounds");
    }

    /// What there is to say of them.
    pub fn summary(&self) -> Summary {
        if self.histogram.is_empty() {
            return Summary::default();
        }
        let at = |quantile| self.histogram.value_at_quantile(quantile) as f64 / 1000.0;
        Summary {
            count: self.histogram.len(),
            least_ns: self.histogram.min() as f64 / 1000.0,
            mean_ns: self.histogram.mean() / 1000.0,
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            most_ns: self.histogram.max() as f64 / 1000.0,
        }
    }
}
