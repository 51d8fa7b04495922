//! Numbers and names as they stand in a page.

/// Returns text as it can stand in a page.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A value with three digits that count.
pub(super) fn short(value: f64) -> String {
    if value.abs() >= 100.0 {
        return format!("{value:.0}");
    }
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).to_string()
}
