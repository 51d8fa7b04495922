//! Rounds by placement: figures of cores that are near and of cores that are far are never put together, and a round in which
//! the cores moved is in none.

use std::collections::BTreeMap;

use beeline_floor::rounds::{self, Keep};
use beeline_floor::{LineTrip, Placement};

use crate::{BenchError, Check, Figure, Report, Settings};

/// Which rounds count, and of which placement: indices of the rounds that were run.
#[derive(Debug)]
pub(crate) struct Placed {
    /// By placement; by none where every round counts, wherever the cores were.
    kept: BTreeMap<Option<Placement>, Vec<usize>>,
    /// Rounds in which the placement changed, of a placement that had few, or not run because both sides shared one core.
    dropped: u32,
}

impl Placed {
    /// Runs `round` until as many rounds of one placement are there as the settings ask for, or twice as many were tried. Each
    /// call of `round` adds one round to every figure.
    pub(crate) fn run(
        settings: &Settings,
        mut round: impl FnMut() -> Result<(), BenchError>,
    ) -> Result<Self, BenchError> {
        let look = || LineTrip::measure(settings.cores).map_err(BenchError::from);
        let mut run = 0;
        let rounds = rounds::take(settings.rounds, settings.keep, look, |_| {
            round()?;
            run += 1;
            Ok::<_, BenchError>(run - 1)
        })?;
        let mut kept: BTreeMap<Option<Placement>, Vec<usize>> = BTreeMap::new();
        let mut dropped = rounds.dropped;
        for round in &rounds.kept {
            let placement = (settings.keep == Keep::Steady).then_some(round.placement);
            kept.entry(placement).or_default().push(round.taken);
        }
        // What few rounds say of a placement that the cores had for a moment is not worth a row.
        kept.retain(|_, rounds| {
            let is_enough = rounds.len() >= settings.rounds as usize / 3;
            dropped += if is_enough { 0 } else { rounds.len() as u32 };
            is_enough
        });
        Ok(Placed { kept, dropped })
    }

    /// Splits figures of all rounds by placement, and checks each part by itself.
    pub(crate) fn report(
        &self,
        bench: &str,
        figures: &[Figure],
        checks: impl Fn(&[Figure]) -> Vec<Check>,
    ) -> Report {
        let mut report = Report::default();
        for (placement, rounds) in &self.kept {
            let placement = placement.map_or("", Placement::name);
            let figures: Vec<Figure> =
                figures.iter().map(|figure| figure.of_rounds(rounds, placement)).collect();
            let mut checks = checks(&figures);
            checks.iter_mut().for_each(|check| check.placement = placement.to_owned());
            report.append(Report { checks, figures, ..Report::default() });
        }
        if self.dropped > 0 {
            report.notes.push(self.note(bench));
        }
        report
    }

    fn note(&self, bench: &str) -> String {
        let kept: usize = self.kept.values().map(Vec::len).sum();
        let dropped = self.dropped;
        let but = if kept == 0 {
            "; there are no figures: give it two cores of their own, or try again when the machine rests"
        } else {
            ""
        };
        format!(
            "{bench}: {dropped} of {} rounds dropped: the cores moved, were one core, or lay so for too few rounds{but}",
            kept + dropped as usize
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bound, Latencies, Row, Value};

    fn row(name: &str) -> Row<'_> {
        Row { bench: "b", name, kernel: "-", memory: "-", size_bytes: 64, count: 2 }
    }

    #[test]
    fn near_and_far_rounds_make_figures_and_checks_of_their_own() {
        let kept = [(Some(Placement::Near), vec![0, 3]), (Some(Placement::Far), vec![1])].into();
        let placed = Placed { kept, dropped: 1 };
        let mut latencies = Latencies::new();
        for round in 1..=4 {
            latencies.add_round(&[f64::from(round * 100), f64::from(round * 100 + 10)]);
        }
        let figures = [
            Figure::rate(row("ours"), vec![8.0, 6.0, 100.0, 10.0]),
            Figure::rate(row("rival"), vec![4.0, 6.0, 1.0, 5.0]),
            Figure::latency(row("trip"), latencies),
        ];
        let checks =
            |figures: &[Figure]| vec![Check::ratio("b", &figures[0], &figures[1], Bound::AtLeast(1.5))];
        let report = placed.report("b", &figures, checks);
        assert_eq!(report.figures.len(), 6);
        assert_eq!(report.figures[0].rounds, [8.0, 10.0]);
        assert_eq!(report.figures[0].placement, "near");
        assert_eq!(report.figures[2].samples, [100.0, 110.0, 400.0, 410.0]);
        let Value::Latency { p50_ns, .. } = report.figures[5].value else { panic!("a latency") };
        assert!((p50_ns - 200.0).abs() < 1.0, "{p50_ns}");
        let found: Vec<_> =
            report.checks.iter().map(|check| (check.placement.as_str(), check.found, check.pass)).collect();
        assert_eq!(found, [("near", 2.0, true), ("far", 1.0, false)]);
        assert_eq!(report.notes.len(), 1);
        assert!(report.notes[0].contains("1 of 4 rounds dropped"), "{}", report.notes[0]);
    }

    #[test]
    fn bench_without_a_counted_round_has_a_note_and_no_figures() {
        let placed = Placed { kept: BTreeMap::new(), dropped: 3 };
        let report = placed.report("b", &[Figure::rate(row("ours"), vec![])], |_| Vec::new());
        assert!(report.figures.is_empty() && report.notes[0].contains("no figures"));
    }
}
