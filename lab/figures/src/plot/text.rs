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

/// A size, in MiB or KiB where it is a whole number of them, else in bytes.
pub(super) fn size(bytes: f64) -> String {
    const KIB: f64 = 1024.0;
    let units = [(KIB * KIB, "MiB"), (KIB, "KiB")];
    let found = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes % unit == 0.0);
    found.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
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
    fn size_is_in_the_largest_unit_of_which_it_is_a_whole_number() {
        let sizes = [4.0, 1000.0, 1024.0, 1500.0, 65536.0, 1_048_576.0, 1_572_864.0, 4_194_304.0];
        assert_eq!(
            sizes.map(size),
            ["4 B", "1000 B", "1 KiB", "1500 B", "64 KiB", "1 MiB", "1536 KiB", "4 MiB"]
        );
    }

    #[test]
    fn number_of_an_axis_has_few_characters() {
        let numbers = [0.0, 0.002, 5000.0, 10_000.0, 12_500.0, 3e6, 1e7, 2e9];
        assert_eq!(
            numbers.map(on_axis),
            ["0", "0.002", "5000", "10k", "12.5k", "3M", "10M", "2G"].map(str::to_owned)
        );
    }
}
