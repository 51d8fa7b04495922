//! Where values lie on an axis, and which of them get a number.

/// An axis: values from `from` to `to` at places from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub from: f64,
    pub to: f64,
    pub is_logarithmic: bool,
    pub start: f64,
    pub end: f64,
}

/// Numbers that an axis should have at least, and at most.
const FEWEST: usize = 3;
const MOST: usize = 9;

impl Axis {
    /// Returns the place of a value.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.start + share * (self.end - self.start)
    }

    /// Returns round numbers of the axis: 1, 2 and 5 of each power of ten where there is room, equal steps where a logarithmic axis
    /// is too short for them.
    pub fn numbers(&self) -> Vec<f64> {
        let of_decades = |shown: &[f64], every: i32| -> Vec<f64> {
            let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
            let decades = (first..=last).filter(|exponent| exponent.rem_euclid(every) == 0);
            decades
                .flat_map(|exponent| shown.iter().map(move |digit| rounded(digit * 10f64.powi(exponent))))
                .filter(|value| (self.from..=self.to).contains(value))
                .collect()
        };
        if self.is_logarithmic {
            let choices = [
                of_decades(&[1.0, 2.0, 5.0], 1),
                of_decades(&[1.0, 3.0], 1),
                of_decades(&[1.0], 1),
                of_decades(&[1.0], 2),
            ];
            if let Some(numbers) = choices.into_iter().find(|n| (FEWEST..=MOST).contains(&n.len())) {
                return numbers;
            }
        }
        self.equal_steps()
    }

    fn equal_steps(&self) -> Vec<f64> {
        let least = (self.to - self.from) / 6.0;
        let power = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= least);
        let step = step.unwrap_or(power * 10.0);
        let (first, last) = ((self.from / step).ceil() as i64, (self.to / step).floor() as i64);
        (first..=last).map(|number| rounded(number as f64 * step)).collect()
    }
}

/// A value without what arithmetic on binary fractions leaves behind the ninth digit.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

/// The places that get a number, the last one first: every n-th of places that are equally far apart, of others all that leave room for what is
/// written.
pub(super) fn with_room(axis: &Axis, values: &[f64], number: impl Fn(f64) -> String) -> Vec<f64> {
    const DIGIT: f64 = 8.0;
    let width = |value: f64| number(value).len() as f64 * DIGIT;
    let has_room = |value: f64, next: f64| {
        axis.place(next) - axis.place(value) >= (width(next) + width(value)) / 2.0 + DIGIT
    };
    if is_even(axis, values) {
        let every = |step| values.iter().rev().copied().step_by(step).collect::<Vec<_>>();
        let fits = |kept: &Vec<f64>| kept.windows(2).all(|pair| has_room(pair[1], pair[0]));
        return (1..=values.len()).map(every).find(fits).unwrap_or_default();
    }
    let mut kept: Vec<f64> = Vec::new();
    for value in values.iter().rev() {
        if kept.last().is_none_or(|next| has_room(*value, *next)) {
            kept.push(*value);
        }
    }
    kept
}

/// Whether values are equally far apart on an axis.
fn is_even(axis: &Axis, values: &[f64]) -> bool {
    let step = |pair: &[f64]| axis.place(pair[1]) - axis.place(pair[0]);
    let first = values.windows(2).next().map_or(0.0, step);
    values.windows(2).all(|pair| (step(pair) - first).abs() < 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(from: f64, to: f64, is_logarithmic: bool) -> Axis {
        Axis { from, to, is_logarithmic, start: 0.0, end: 400.0 }
    }

    #[test]
    fn every_axis_has_three_to_nine_numbers() {
        for is_logarithmic in [true, false] {
            for (from, to) in
                [(300.0, 420.0), (350.0, 2100.0), (1.1, 1.3), (0.02, 70.0), (1e-3, 1e6), (440.0, 9.4e6)]
            {
                let numbers = axis(from, to, is_logarithmic).numbers();
                assert!((FEWEST..=MOST).contains(&numbers.len()), "{from} to {to}: {numbers:?}");
                assert!(numbers.iter().all(|number| (from..=to).contains(number)), "{numbers:?}");
            }
        }
        assert_eq!(axis(350.0, 2100.0, true).numbers(), [500.0, 1000.0, 2000.0]);
        assert_eq!(axis(0.0, 60.0, false).numbers(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    }

    #[test]
    fn numbers_that_would_lie_over_each_other_are_left_out() {
        let sizes = [16.0, 64.0, 1000.0, 1400.0, 1500.0];
        assert_eq!(
            with_room(&axis(14.0, 1600.0, true), &sizes, |size| size.to_string()),
            [1500.0, 64.0, 16.0]
        );
    }

    #[test]
    fn of_places_that_are_equally_far_apart_each_nth_has_a_number() {
        let sizes: Vec<f64> = (2..=18).map(|power| f64::from(1 << power)).collect();
        let written = |size: f64| format!("{size} bytes");
        let kept = with_room(&axis(4.0, 262_144.0, true), &sizes, written);
        assert_eq!(kept, [262_144.0, 16_384.0, 1024.0, 64.0, 4.0]);
    }
}
