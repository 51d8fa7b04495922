//! The choice among candidates that were timed in several rounds: a pure function of the times.

/// A candidate is taken instead of the default when it takes at most this share of its time. Below that the difference is as
/// likely one of the moment.
const CLEARLY_BETTER: f64 = 0.9;

/// What the rounds say of one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Middle {
    /// Its time over that of the default in the same round, middle of the rounds: another round may have met another placement.
    pub share: f64,
    /// Its time, middle of the rounds.
    pub ns: f64,
}

/// The middles of rounds, each of which timed every candidate, the default first.
pub(crate) fn middles(rounds: &[Vec<f64>]) -> Vec<Middle> {
    let candidates = rounds.first().map_or(0, Vec::len);
    (0..candidates)
        .map(|index| Middle {
            share: middle(rounds.iter().map(|round| round[index] / round[0])),
            ns: middle(rounds.iter().map(|round| round[index])),
        })
        .collect()
}

/// The candidate that is clearly better than the default, which is the first, and the best of those; else the default.
pub(crate) fn best(middles: &[Middle]) -> usize {
    let shares = middles.iter().map(|middle| middle.share).enumerate();
    let better = shares.filter(|(_, share)| *share <= CLEARLY_BETTER);
    better.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index)
}

pub(crate) fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(rounds: &[[f64; 3]]) -> usize {
        let rounds: Vec<Vec<f64>> = rounds.iter().map(|round| round.to_vec()).collect();
        best(&middles(&rounds))
    }

    #[test]
    fn default_is_taken_unless_another_is_clearly_better() {
        assert_eq!(chosen(&[[10.0, 9.5, 9.1]]), 0, "better, but not clearly");
        assert_eq!(chosen(&[[10.0, 8.9, 8.0]]), 2);
        assert_eq!(chosen(&[[10.0, 8.0, 8.5]]), 1);
        assert_eq!(chosen(&[]), 0);
    }

    #[test]
    fn one_round_of_three_decides_nothing() {
        assert_eq!(
            chosen(&[[10.0, 12.0, 13.0], [90.0, 12.0, 13.0], [40.0, 48.0, 52.0]]),
            0,
            "default starved"
        );
        assert_eq!(
            chosen(&[[10.0, 5.0, 20.0], [40.0, 20.0, 80.0], [10.0, 50.0, 20.0]]),
            1,
            "candidate starved"
        );
    }

    #[test]
    fn candidates_are_compared_inside_a_round() {
        // The placement changed twice: the times differ by a factor, the shares do not.
        let rounds = [[10.0, 8.0, 11.0], [40.0, 32.0, 44.0], [12.0, 9.6, 13.2]];
        assert_eq!(chosen(&rounds), 1);
        let rounds: Vec<Vec<f64>> = rounds.iter().map(|round| round.to_vec()).collect();
        assert_eq!(middles(&rounds)[1], Middle { share: 0.8, ns: 9.6 });
    }
}
