//! Parameter overrides of a module, as the lists under `nic/` give them.

use std::fmt;

use serde::Deserialize;

/// Parameters and their values, in the order of the list. A value is handed to the tools as it is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Parameters(toml::Table);

impl Parameters {
    /// `Name=value` for each.
    pub fn settings(&self) -> Vec<String> {
        self.0.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect()
    }
}

/// A string stands for itself, without its quotes: `"1'b1"` is how SystemVerilog says what TOML cannot.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `Width=8 Depth=16`, or nothing.
impl fmt::Display for Parameters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.settings().join(" "))
    }
}

/// A module with its parameters, as it is named in tables: `fifo Width=8`.
pub fn label(module: &str, parameters: &Parameters) -> String {
    format!("{module} {parameters}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_keep_their_order_and_lose_their_quotes() {
        let parameters: Parameters = toml::from_str("Width = 8\nDepth = 16\nMode = \"2'b10\"").unwrap();
        assert_eq!(parameters.settings(), ["Width=8", "Depth=16", "Mode=2'b10"]);
        assert_eq!(label("fifo", &parameters), "fifo Width=8 Depth=16 Mode=2'b10");
        assert_eq!(label("fifo", &Parameters::default()), "fifo");
    }
}
