//! How Yosys reads a module with its parameters, and what the files that come of it are called.

use crate::rtl::parameters::{Parameters, label};
use crate::rtl::sources;

/// Reads the RTL with `top` as the whole of it.
pub fn read_script(top: &str, parameters: &Parameters) -> String {
    let settings: String = parameters.settings().iter().map(|setting| format!(" -G {setting}")).collect();
    format!("read_slang -j 1 --allow-dup-initial-drivers -f {} --top {top}{settings}", sources::LIST)
}

/// A name for files of one row.
pub fn file_stem(top: &str, parameters: &Parameters) -> String {
    let name = label(top, parameters);
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_reach_the_script() {
        let parameters: Parameters = toml::from_str("W = 8").unwrap();
        assert_eq!(
            read_script("b", &parameters),
            "read_slang -j 1 --allow-dup-initial-drivers -f nic/rtl/sources.f --top b -G W=8"
        );
        assert_eq!(file_stem("b", &parameters), "b_W_8");
    }
}
