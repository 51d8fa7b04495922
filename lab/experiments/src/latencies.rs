//! A histogram of latencies, read as percentiles.

use beeline_link_sim::des::Picoseconds;
use hdrhistogram::Histogram;

/// Longest latency that the histogram tells apart: ten seconds.
const LONGEST_PS: u64 = 10_000_000_000_000;

/// Latencies of one run, kept to three significant digits.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    histogram: Histogram<u64>,
}

/// Count, bounds, mean and percentiles of a [`LatencyHistogram`], in nanoseconds; all zero where nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    pub count: u64,
    pub least_ns: f64,
    pub mean_ns: f64,
    pub p50_ns: f64,
    pub p99_ns: f64,
    pub p999_ns: f64,
    pub most_ns: f64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram::new()
    }
}

impl LatencyHistogram {
    /// Returns an empty histogram.
    ///
    /// # Panics
    /// Never: the bounds are those of the histogram.
    pub fn new() -> LatencyHistogram {
        let histogram = Histogram::new_with_bounds(1, LONGEST_PS, 3).expect("bounds of a histogram");
        LatencyHistogram { histogram }
    }

    /// Records one latency; zero counts as one picosecond.
    pub fn add(&mut self, span: Picoseconds) {
        self.histogram.saturating_record(span.0.max(1));
    }

    /// Adds the latencies of another histogram.
    ///
    /// # Panics
    /// Never: all have the same bounds.
    pub fn merge(&mut self, others: &LatencyHistogram) {
        self.histogram.add(&others.histogram).expect("the same bounds");
    }

    /// Returns count, bounds, mean and percentiles.
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
