//! Numbers and names as they stand in a page.

/// Returns text as it can stand in a page.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A number of an axis: in thousands, millions or thousand millions from 10,000 on, so that it fits beside the axis.
pub(super) fn on_axis(value: f64) -> String {
    let (size, unit) = match value.abs() {
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        1e4.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{}{unit}", value / size)
}

/// A value with three digits that count.
pub(super) fn short(value: f64) -> String {
    if value.abs() >= 100.0 {
        return format!("{value:.0}");
    }
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_an_axis_has_few_characters() {
        let numbers = [0.0, 0.002, 5000.0, 10_000.0, 12_500.0, 3e6, 1e7, 2e9];
        assert_eq!(
            numbers.map(on_axis),
            ["0", "0.002", "5000", "10k", "12.5k", "3M", "10M", "2G"].map(str::to_owned)
        );
    }
}
