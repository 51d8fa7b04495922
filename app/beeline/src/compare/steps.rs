//! How far a run is: a bar whose length is what will have been measured, rounds that are dropped and repeated included.

use indicatif::ProgressBar;

/// The steps of one part, which is measured in rounds.
#[derive(Debug)]
pub struct Steps<'a> {
    bar: &'a ProgressBar,
    of_round: u64,
    /// Rounds in the bar's length that have not begun.
    rounds_left: u64,
}

impl<'a> Steps<'a> {
    /// Makes the bar longer by a part of `rounds` rounds, each of `of_round` steps.
    pub fn plan(bar: &'a ProgressBar, of_round: u64, rounds: u32) -> Self {
        let rounds = u64::from(rounds);
        bar.inc_length(of_round * rounds);
        Steps { bar, of_round, rounds_left: rounds }
    }

    pub fn bar(&self) -> &'a ProgressBar {
        self.bar
    }

    /// A round begins: one that nobody planned, because an earlier one was dropped, makes the bar longer.
    pub fn begin_round(&mut self) {
        match self.rounds_left.checked_sub(1) {
            Some(left) => self.rounds_left = left,
            None => self.bar.inc_length(self.of_round),
        }
    }

    /// The part is over: rounds that were never begun make the bar shorter.
    pub fn end(self) {
        self.bar.dec_length(self.of_round * self.rounds_left);
    }
}

#[cfg(test)]
mod tests {
    use beeline_floor::LineTrip;

    use super::*;
    use beeline_floor::rounds::{self, Keep};

    const STEPS_OF_ROUND: u64 = 3;

    /// Measures a part with these times of the bare line, two a round; gives the bar's length before and after it. The bar
    /// is checked at every step.
    fn lengths(wanted: u32, lines_ns: &[f64]) -> (u64, u64) {
        let bar = ProgressBar::hidden();
        bar.set_length(5);
        bar.set_position(5);
        let mut steps = Steps::plan(&bar, STEPS_OF_ROUND, wanted);
        let planned = bar.length().unwrap();
        let mut lines = lines_ns.iter();
        let look = || lines.next().map(|ns| LineTrip { p50_ns: *ns }).ok_or("too many looks");
        let round = |_| {
            steps.begin_round();
            for _ in 0..STEPS_OF_ROUND {
                bar.inc(1);
                assert!(bar.position() <= bar.length().unwrap(), "{bar:?}");
            }
            Ok(())
        };
        rounds::take(wanted, Keep::Steady, look, round).unwrap();
        steps.end();
        assert_eq!(bar.length(), Some(bar.position()), "all that was to be done is done");
        (planned, bar.position())
    }

    #[test]
    fn dropped_round_lengthens_the_bar_and_skipped_round_shortens_it() {
        // Near cores, then a move in the middle of the second round, then two more rounds.
        let near = 120.0;
        assert_eq!(lengths(3, &[near; 6]), (14, 14));
        assert_eq!(lengths(3, &[near, near, near, 700.0, near, near, near, near]), (14, 17));
        // One core for both sides at every look: no round is begun.
        assert_eq!(lengths(3, &[1e6; 6]), (14, 5));
    }
}
