//! What the RAMCloud and HiStar notes measured, from the file of published figures: never typed here.

const FIGURES: &str = include_str!("../../../../bench/published/figures.csv");

/// Where they were measured, in the words of a table.
pub const SOURCE: &str = "RAMCloud wiki, Intel e1000, gigabit copper switch";

/// Published round trip in microseconds for a payload of this many bytes.
pub fn round_trip_us(payload_bytes: u32) -> Option<f64> {
    match payload_bytes {
        10 => value("r0085"),
        100 => value("r0086"),
        _ => None,
    }
}

/// Published transmit delay in microseconds a frame, for so many frames of 100 bytes in a row.
pub fn transmit_us_a_frame(frames: usize) -> Option<f64> {
    match frames {
        1 => value("r0092"),
        2 => value("r0093"),
        10 => value("r0094"),
        _ => None,
    }
}

fn value(row: &str) -> Option<f64> {
    /// The column `value`.
    const VALUE: usize = 7;
    let line = FIGURES.lines().find(|line| line.split(',').next() == Some(row))?;
    // A comma between quotation marks is no boundary.
    let mut is_quoted = false;
    let mut fields = line.split(|c| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    });
    fields.nth(VALUE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notes_figures_are_found() {
        assert_eq!([10, 100].map(round_trip_us), [Some(26.0), Some(38.0)]);
        assert_eq!([1, 2, 10].map(transmit_us_a_frame), [Some(9.8), Some(7.2), Some(5.6)]);
        assert_eq!((round_trip_us(11), transmit_us_a_frame(3), value("r9999")), (None, None, None));
    }
}
