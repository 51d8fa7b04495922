//! `nic/syn/gates.toml`: which modules are measured, with which parameters, and what they must keep to.

use std::fs;

use serde::Deserialize;

use super::depth::Depth;
use super::route::Routed;
use crate::failure::{Context, Outcome};
use crate::rtl::parameters::{Parameters, label};
use crate::run::root;

const FILE: &str = "nic/syn/gates.toml";

/// All rows.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gates {
    pub depth: Vec<DepthRow>,
    pub area: Vec<AreaRow>,
    pub route: Vec<RouteRow>,
}

/// At most so many LUTs from register to register.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DepthRow {
    pub top: String,
    #[serde(default)]
    pub parameters: Parameters,
    pub levels: u32,
    #[serde(default)]
    long: bool,
}

/// An area that is recorded in `area.csv`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AreaRow {
    pub top: String,
    #[serde(default)]
    pub parameters: Parameters,
    #[serde(default)]
    long: bool,
}

/// Least clock that a module must reach, in MHz.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteRow {
    pub top: String,
    #[serde(default)]
    pub parameters: Parameters,
    pub mhz: u32,
    #[serde(default)]
    long: bool,
}

/// What every row has. `long` keeps it out of CI.
pub trait Row {
    fn top(&self) -> &str;
    fn parameters(&self) -> &Parameters;
    fn is_long(&self) -> bool;
}

macro_rules! row {
    ($($kind:ty),*) => {$(
        impl Row for $kind {
            fn top(&self) -> &str {
                &self.top
            }
            fn parameters(&self) -> &Parameters {
                &self.parameters
            }
            fn is_long(&self) -> bool {
                self.long
            }
        }
    )*};
}
row!(DepthRow, AreaRow, RouteRow);

impl Gates {
    /// The rows of the file.
    pub fn read() -> Outcome<Self> {
        let text = fs::read_to_string(root().join(FILE)).while_doing(format!("read {FILE}"))?;
        Self::parse(&text)
    }

    /// The rows of this text.
    pub fn parse(text: &str) -> Outcome<Self> {
        toml::from_str(text).while_doing(format!("understand {FILE}"))
    }
}

impl DepthRow {
    /// What is wrong, if the path is too long.
    pub fn finding(&self, depth: &Depth) -> Option<String> {
        let path = &depth.inside;
        let name = label(&self.top, &self.parameters);
        (path.levels > self.levels)
            .then(|| format!("{name}: {} LUTs, at most {}: {path}", path.levels, self.levels))
    }
}

impl RouteRow {
    /// What is wrong, if the clock is too slow.
    pub fn finding(&self, routed: &Routed) -> Option<String> {
        let name = label(&self.top, &self.parameters);
        (routed.mhz < f64::from(self.mhz)).then(|| {
            format!("{name}: {:.1} MHz, at least {}: {}", routed.mhz, self.mhz, routed.path.join("\n    "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::depth::Path;
    use super::*;

    #[test]
    fn a_gate_fails_beyond_its_figure() {
        let text =
            "[[depth]]\ntop = \"a\"\nlevels = 3\n[[route]]\ntop = \"a\"\nparameters = { W = 2 }\nmhz = 100\n";
        let gates = Gates::parse(text).unwrap();
        let depth = |levels| Depth {
            inside: Path { levels, wires: vec!["x_q".into(), "y_d".into()] },
            at_ports: Path { levels: 9, wires: Vec::new() },
        };
        assert_eq!(gates.depth[0].finding(&depth(3)), None);
        assert_eq!(gates.depth[0].finding(&depth(4)).unwrap(), "a: 4 LUTs, at most 3: x_q > y_d");
        let routed = |mhz| Routed { mhz, path: vec!["1.0 ns x_q".into()] };
        assert_eq!(gates.route[0].finding(&routed(100.0)), None);
        assert_eq!(
            gates.route[0].finding(&routed(99.96)).unwrap(),
            "a W=2: 100.0 MHz, at least 100: 1.0 ns x_q"
        );
        assert!(Gates::parse("[[depth]]\ntop = \"a\"\nlevel = 3\n").is_err());
    }
}
