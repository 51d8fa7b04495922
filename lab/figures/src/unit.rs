//! Units: those of the printed rows, and the one that each kind of quantity is measured in.

use serde::Serialize;

/// Base unit of a quantity. Figures are compared in the unit of the printed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// Nanoseconds.
    Ns,
    /// Gbit/s.
    Gbps,
    /// Hundredths.
    Percent,
    /// Events a second.
    PerSecond,
    /// A ratio.
    Times,
}

/// A printed unit: a base and how many of the base it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    pub base: Base,
    /// How many of the base one of it is.
    pub size: f64,
}

/// Which side of the printed number a result must be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// "up to", "less than".
    AtMost,
    /// "or more", "more than".
    AtLeast,
}

impl Unit {
    /// Reads a unit, without the words around it. Units of things we do not measure (buffers, GHz, years) are `None`.
    pub fn parse(printed: &str) -> Option<Unit> {
        let unit = |base, size| Some(Unit { base, size });
        match printed.split([' ', '/']).next()? {
            "ns" => unit(Base::Ns, 1.0),
            "us" => unit(Base::Ns, 1000.0),
            "Gbps" => unit(Base::Gbps, 1.0),
            "GB" if printed.starts_with("GB/s") => unit(Base::Gbps, 8.0),
            "%" => unit(Base::Percent, 1.0),
            "pps" => unit(Base::PerSecond, 1.0),
            "lines" | "ops" | "1" if printed.ends_with("/s") => unit(Base::PerSecond, 1.0),
            "x" => unit(Base::Times, 1.0),
            _ => None,
        }
    }

    /// The side that the words around a unit, or before a value, ask for.
    pub fn side(printed_unit: &str, printed_value: &str) -> Option<Side> {
        let says = |words: &[&str]| words.iter().any(|word| printed_unit.contains(word));
        if printed_value.starts_with('<') || says(&["up to", "less than", "(<)"]) {
            Some(Side::AtMost)
        } else if printed_value.starts_with('>') || says(&["or more"]) {
            Some(Side::AtLeast)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_with_words_around_them() {
        let size = |text| Unit::parse(text).map(|unit| (unit.base, unit.size));
        assert_eq!(size("us/pkt"), Some((Base::Ns, 1000.0)));
        assert_eq!(size("ns after T0"), Some((Base::Ns, 1.0)));
        assert_eq!(size("GB/s"), Some((Base::Gbps, 8.0)));
        assert_eq!(size("% (up to)"), Some((Base::Percent, 1.0)));
        assert_eq!(size("1/s"), Some((Base::PerSecond, 1.0)));
        assert_eq!((size("1"), size("k-ticks (printed 'usec')"), size("")), (None, None, None));
    }

    #[test]
    fn words_and_signs_give_the_side() {
        assert_eq!(Unit::side("% (up to)", "43"), Some(Side::AtMost));
        assert_eq!(Unit::side("ns/line", ">51"), Some(Side::AtLeast));
        assert_eq!(Unit::side("ns", "<600"), Some(Side::AtMost));
        assert_eq!(Unit::side("Gbps (about)", "30"), None);
    }
}
