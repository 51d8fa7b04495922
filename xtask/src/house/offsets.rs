//! Register offsets typed by hand: numbers where the constants of `beeline_spec::regs` belong.
//!
//! A check of text cannot know every number that is an offset, so it looks where offsets go: the arguments of the
//! calls that take one, and the field of that name. Zero and test code are let through.

use crate::source::{SourceFile, code_only};

/// Calls whose first argument is a register offset.
const CALLS: [&str; 4] = [".write_register(", ".start_read(", ".read_arrived(", ".doorbell("];
/// The field that holds one.
const FIELD: &str = "offset_bytes:";

/// Where registers are used; elsewhere `offset_bytes` is an offset in a file or a payload.
const FOLDERS: [&str; 6] = ["host/driver/", "app/beeline/", "link/", "nic/model/", "nic/process/", "bench/"];

/// Every hand-typed offset.
pub fn typed(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs" && is_checked(&file.path)) {
        let code = code_only(&file.text);
        let code = code.split("#[cfg(test)]").next().unwrap_or(&code);
        for (index, line) in code.lines().enumerate() {
            for mark in CALLS.iter().chain([&FIELD]) {
                let after = line.split(mark).skip(1).map(str::trim_start);
                if after.into_iter().any(starts_with_number) {
                    let what = mark.trim_matches(['.', '(', ':']);
                    findings.push(format!(
                        "{}:{}: a number for `{what}`; take it from beeline_spec::regs",
                        file.path,
                        index + 1
                    ));
                }
            }
        }
    }
    findings
}

fn is_checked(path: &str) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(folder))
        && !path.contains("/tests/")
        && !path.ends_with("/tests.rs")
}

/// Whether the text starts with a number other than 0.
fn starts_with_number(text: &str) -> bool {
    let number: String = text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    number.starts_with(|c: char| c.is_ascii_digit())
        && !number.trim_start_matches("0x").trim_matches(['0', '_']).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, code: &str) -> usize {
        typed(&[SourceFile::new(path, code)]).len()
    }

    #[test]
    fn a_typed_offset_is_found() {
        for code in [
            "link.write_register(0x18, 1);",
            "let w = Write { offset_bytes: 65536, data };",
            "l.doorbell( 0x10_0000)",
        ] {
            assert_eq!(findings("host/driver/src/port.rs", code), 1, "{code}");
            assert_eq!(findings("spec/src/lib.rs", code), 0, "{code}");
            assert_eq!(findings("host/driver/tests/port.rs", code), 0, "{code}");
            assert_eq!(findings("host/driver/src/port.rs", &format!("#[cfg(test)] mod t {{ {code} }}")), 0);
        }
    }

    #[test]
    fn constants_and_zero_are_not_found() {
        for code in [
            "link.write_register(regs::CONTROL, 1);",
            "Write { offset_bytes: 0, data }",
            "x.start_read(base + 8)",
        ] {
            assert_eq!(findings("host/driver/src/port.rs", code), 0, "{code}");
        }
    }
}
