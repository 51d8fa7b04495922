//! Middles of what was measured.

/// The middle of some values; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The mean of the middle half of some values; 0 of none. What a clock reads moves in steps, and so does the middle of it; this does not, and
/// what is late does not move it either.
pub(crate) fn midmean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = &sorted[sorted.len() / 4..sorted.len() - sorted.len() / 4];
    if middle.is_empty() { 0.0 } else { middle.iter().sum::<f64>() / middle.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_of_the_middle_half_lies_between_two_steps_and_ignores_what_is_late() {
        assert_eq!(midmean(&[120.0, 120.0, 120.0, 130.0, 130.0, 130.0, 130.0, 1e9]), 127.5);
        assert_eq!((midmean(&[]), midmean(&[7.0]), midmean(&[1.0, 2.0])), (0.0, 7.0, 1.5));
    }
}
