//! A parameter, without its value.

use crate::Bounds;

/// What is known of a parameter beside its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name inside its section.
    pub name: &'static str,
    /// Meaning, in one line.
    pub about: &'static str,
    /// Values that are allowed.
    pub bounds: Bounds,
    /// Whether a file may leave it out.
    pub optional: bool,
}

impl Parameter {
    /// The unit that the name ends with; empty for counts and words.
    pub fn unit(&self) -> &'static str {
        const UNITS: [(&str, &str); 8] = [
            ("_ns", "ns"),
            ("_bytes", "B"),
            ("_lines", "lines"),
            ("_gbps", "Gbps"),
            ("_ghz", "GHz"),
            ("_percent", "%"),
            ("_watts", "W"),
            ("_pj_per_bit", "pJ/bit"),
        ];
        UNITS.iter().find(|(suffix, _)| self.name.ends_with(suffix)).map_or("", |(_, unit)| unit)
    }
}
