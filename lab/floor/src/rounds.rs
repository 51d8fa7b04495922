//! Rounds: everything is measured several times in turn, and a round in which the cores changed their placement is dropped.
//!
//! A virtual machine moves its cores within minutes. Interfaces measured one after the other would each meet another machine;
//! measured in turn, round by round, they meet the same one, and a round that met two is seen by the bare line at its ends.

use crate::{LineTrip, Placement};

/// Rounds that may be tried for each that is wanted: on a machine that never rests, the run ends.
const TRIES: u32 = 2;

/// A round whose placement was the same at both ends.
#[derive(Debug)]
pub struct Round<T> {
    pub placement: Placement,
    /// The bare line before it, p50 in ns.
    pub line_ns: f64,
    /// What was measured in it.
    pub taken: T,
}

/// What several rounds measured.
#[derive(Debug)]
pub struct Rounds<T> {
    pub kept: Vec<Round<T>>,
    /// Rounds in which the placement changed, or in which both sides shared one core.
    pub dropped: u32,
}

/// Which rounds are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Those whose placement was the same at both ends, of two cores.
    Steady,
    /// All of them, by the placement at their start: to try the program, on a machine that has no two cores to itself.
    All,
}

/// Measures until `wanted` rounds of one placement are there (`wanted` in all when all are kept), or twice as many rounds were
/// tried. `look` tells the placement, `round` measures everything once.
///
/// # Errors
/// Those of `look` and `round`.
pub fn take<T, E>(
    wanted: u32,
    keep: Keep,
    mut look: impl FnMut() -> Result<LineTrip, E>,
    mut round: impl FnMut(u32) -> Result<T, E>,
) -> Result<Rounds<T>, E> {
    let mut rounds = Rounds { kept: Vec::new(), dropped: 0 };
    for number in 0..wanted.saturating_mul(TRIES) {
        let before = look()?;
        // Nothing is measured where nothing can be: the next look may find two cores again.
        if keep == Keep::Steady && before.placement() == Placement::Shared {
            rounds.dropped += 1;
            continue;
        }
        let taken = round(number)?;
        if keep == Keep::Steady && !before.agrees_with(look()?) {
            rounds.dropped += 1;
            continue;
        }
        let placement = before.placement();
        rounds.kept.push(Round { placement, line_ns: before.p50_ns, taken });
        let (of_all, of_this) = (rounds.kept.len(), rounds.of(placement).count());
        if (if keep == Keep::All { of_all } else { of_this }) >= wanted as usize {
            break;
        }
    }
    Ok(rounds)
}

impl<T> Rounds<T> {
    /// Rounds that were kept and had this placement at both ends, in the order in which they were taken.
    pub fn of(&self, placement: Placement) -> impl Iterator<Item = &Round<T>> {
        self.kept.iter().filter(move |round| round.placement == placement)
    }

    /// Placements that rounds were kept of.
    pub fn placements(&self) -> Vec<Placement> {
        let mut placements: Vec<_> = self.kept.iter().map(|round| round.placement).collect();
        placements.sort();
        placements.dedup();
        placements
    }
}

/// The middle of what rounds found, and the ends of their middle half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    pub value: f64,
    /// First quartile.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
}

impl Middle {
    /// Returns the middle of at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        Some(Middle { value: values[values.len() / 2], low: values[last / 4], high: values[last - last / 4] })
    }

    /// Width of the middle half, as a share of the middle; the middle is above zero.
    pub fn spread(&self) -> f64 {
        (self.high - self.low) / self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds with these times of the bare line, two a round; gives placements kept and rounds dropped.
    fn run(wanted: u32, lines_ns: &[f64]) -> (Vec<(Placement, u32)>, u32) {
        run_and_keep(Keep::Steady, wanted, lines_ns)
    }

    fn run_and_keep(keep: Keep, wanted: u32, lines_ns: &[f64]) -> (Vec<(Placement, u32)>, u32) {
        let mut lines = lines_ns.iter();
        let look = || lines.next().map(|ns| LineTrip { p50_ns: *ns }).ok_or("too many looks");
        let rounds = take(wanted, keep, look, Ok).expect("as many looks as there are");
        (rounds.kept.iter().map(|round| (round.placement, round.taken)).collect(), rounds.dropped)
    }

    #[test]
    fn rounds_end_when_one_placement_has_as_many_as_are_wanted() {
        let (near, far) = (Placement::Near, Placement::Far);
        assert_eq!(run(2, &[130.0; 4]), (vec![(near, 0), (near, 1)], 0));
        let moved = [130.0, 130.0, 550.0, 550.0, 540.0, 560.0];
        assert_eq!(run(2, &moved), (vec![(near, 0), (far, 1), (far, 2)], 0));
    }

    #[test]
    fn round_that_changed_its_placement_is_dropped_and_taken_again() {
        let near = Placement::Near;
        assert_eq!(run(1, &[130.0, 550.0, 130.0, 130.0]), (vec![(near, 1)], 1));
        assert_eq!(
            run(1, &[100.0, 160.0, 100.0, 140.0]),
            (vec![(near, 1)], 1),
            "near both times, but not alike"
        );
    }

    #[test]
    fn nothing_is_measured_on_one_core_and_the_run_ends() {
        // A shared look is not followed by a round, so each of the four tries looks once.
        assert_eq!(run(2, &[9000.0; 4]), (Vec::new(), 4));
    }

    #[test]
    fn every_round_is_kept_where_it_was_asked_for() {
        let lines = [9000.0, 130.0];
        assert_eq!(
            run_and_keep(Keep::All, 2, &lines),
            (vec![(Placement::Shared, 0), (Placement::Near, 1)], 0)
        );
    }

    #[test]
    fn middle_is_robust_and_spread_is_of_the_middle_half() {
        assert_eq!(Middle::of([]), None);
        assert_eq!(Middle::of([5.0]), Some(Middle { value: 5.0, low: 5.0, high: 5.0 }));
        let middle = Middle::of([100.0, 1000.0, 102.0, 98.0, 104.0]).unwrap();
        assert_eq!(middle, Middle { value: 102.0, low: 100.0, high: 104.0 });
        assert_eq!(middle.spread(), 4.0 / 102.0);
        assert_eq!(Middle::of([10.0, 20.0, 30.0]).unwrap().spread(), 1.0);
    }
}
