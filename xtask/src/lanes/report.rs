//! The summary that `ci` and `long` end with.

use std::fmt;
use std::time::{Duration, Instant};

use crate::cores;
use crate::failure::{Failure, Outcome};
use crate::rtl::head;

/// Lines of a failure that the summary repeats.
const SHOWN_LINES: usize = 8;

/// Lanes that were run, in order.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    /// From the first lane to the last, where they ran side by side.
    took: Option<Duration>,
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    cost: Cost,
    failure: Option<Failure>,
}

/// What a lane took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// From its begin to its end, waiting for a core included.
    pub took: Duration,
    /// Of cores, by everything that the lane started.
    pub cpu: Duration,
}

impl Report {
    /// Runs a lane and notes how long it took and how it ended. A failure is told at once, and does not stop the rest.
    pub fn time(&mut self, name: &'static str, lane: impl FnOnce() -> Outcome) {
        let (start, used) = (Instant::now(), cores::used());
        let failure = lane().err();
        let cost = Cost { took: start.elapsed(), cpu: cores::used().saturating_sub(used) };
        if let Some(failure) = &failure {
            eprintln!("{}", last_words(name, failure));
        }
        self.add(name, cost, failure);
    }

    /// Notes a lane that ended.
    pub fn add(&mut self, name: &'static str, cost: Cost, failure: Option<Failure>) {
        self.rows.push(Row { name, cost, failure });
    }

    /// Notes how long all lanes took together, which is less than their sum where they ran side by side.
    pub fn took(&mut self, took: Duration) {
        self.took = Some(took);
    }

    fn failed(&self) -> usize {
        self.rows.iter().filter(|row| row.failure.is_some()).count()
    }

    /// Fails when a lane did.
    pub fn outcome(&self) -> Outcome {
        let names: Vec<_> =
            self.rows.iter().filter(|row| row.failure.is_some()).map(|row| row.name).collect();
        match names.as_slice() {
            [] => Ok(()),
            names => Err(Failure::new(format!("failed: {}", names.join(", ")))),
        }
    }
}

/// The table, and as its last line `N passed, N failed`.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "\n{:<12} {:>8} {:>11}  result", "lane", "seconds", "CPU seconds")?;
        for row in &self.rows {
            let result = if row.failure.is_some() { "FAILED" } else { "passed" };
            let (took, cpu) = (row.cost.took.as_secs_f64(), row.cost.cpu.as_secs_f64());
            writeln!(out, "{:<12} {took:>8.1} {cpu:>11.1}  {result}", row.name)?;
        }
        let took = self.took.unwrap_or_else(|| self.rows.iter().map(|row| row.cost.took).sum());
        let cpu: Duration = self.rows.iter().map(|row| row.cost.cpu).sum();
        writeln!(out, "{:<12} {:>8.1} {:>11.1}\n", "all", took.as_secs_f64(), cpu.as_secs_f64())?;
        // Said once more: what a lane said is far above by now.
        for row in &self.rows {
            let Some(failure) = &row.failure else { continue };
            writeln!(out, "{}: {}\n", row.name, head(&failure.to_string(), SHOWN_LINES))?;
        }
        writeln!(out, "{} passed, {} failed", self.rows.len() - self.failed(), self.failed())
    }
}

/// Returns the last words of a lane that fails.
pub fn last_words(name: &str, failure: &Failure) -> String {
    format!("error: lane {name}: {failure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_all_is_that_of_the_whole_run_when_lanes_overlap() {
        let mut report = Report::default();
        for name in ["miri", "fuzz"] {
            report.add(name, Cost { took: Duration::from_secs(10), cpu: Duration::from_secs(8) }, None);
        }
        assert!(report.to_string().contains("all              20.0        16.0\n"), "{report}");
        report.took(Duration::from_secs(12));
        assert!(report.to_string().contains("all              12.0        16.0\n"), "{report}");
    }

    #[test]
    fn the_last_line_counts_and_a_failure_fails_the_whole() {
        let mut report = Report::default();
        report.time("fmt", || Ok(()));
        assert!(report.to_string().ends_with("\n1 passed, 0 failed\n"));
        assert_eq!(report.outcome(), Ok(()));
        report.time("house", || Err(Failure::new("too long")));
        report.time("tour", || Ok(()));
        assert!(report.to_string().ends_with("\nhouse: too long\n\n2 passed, 1 failed\n"), "{report}");
        assert_eq!(report.outcome().unwrap_err().to_string(), "failed: house");
    }
}
