//! Unsafe code in its folders, and links that name no interface.

use crate::source::{SourceFile, code_only, words};

/// The one crate that touches memory a device or a peer can write, and crates that are FFI and nothing else.
const UNSAFE_FOLDERS: [&str; 5] = ["os/mmio/", "os/ffi/", "os/ethernet/sys/", "nic/rtl/sys/", "api/c/"];

/// Parts of identifiers that only an interface has.
const INTERFACE_PARTS: [&str; 6] =
    ["kpio", "tx_descriptor", "rx_descriptor", "txdescriptor", "blueflame", "enso"];

/// Words that only an interface has, as `niq_entry` has `niq`. (`inline` is Rust's too.)
const INTERFACE_WORDS: [&str; 1] = ["niq"];
/// The same in a link that is made of nothing of ours: the others use crates that are called so.
const INTERFACE_WORDS_OF_SIM: [&str; 3] = ["mmio", "coherent", "descriptor"];

/// `unsafe` outside the crates that may use it.
pub fn unsafe_code(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    let is_safe = |file: &&SourceFile| !UNSAFE_FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    for file in files.iter().filter(|file| file.extension() == "rs").filter(is_safe) {
        for (line, word) in words(&code_only(&file.text)) {
            if word == "unsafe" {
                findings.push(format!(
                    "{}:{line}: unsafe code outside {}",
                    file.path,
                    UNSAFE_FOLDERS.join(", ")
                ));
            }
        }
    }
    findings
}

/// Links that name an interface. A link carries stores and reads; what they mean is the driver's and the device's.
pub fn interfaces_in_links(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    // Tests join a link to the drivers of every interface, so they name them.
    let is_code = |file: &&SourceFile| {
        file.extension() == "rs" && file.path.starts_with("link/") && !file.path.contains("/tests/")
    };
    for file in files.iter().filter(is_code) {
        for (line, word) in words(&code_only(&file.text)) {
            let lower = word.to_lowercase();
            let is_sim = file.path.starts_with("link/sim/");
            let is_named = |part: &str| {
                INTERFACE_WORDS.contains(&part) || is_sim && INTERFACE_WORDS_OF_SIM.contains(&part)
            };
            let has_part = INTERFACE_PARTS.iter().any(|part| lower.contains(part));
            if word == "Interface" || has_part || lower.split('_').any(is_named) {
                findings
                    .push(format!("{}:{line}: `{word}` names an interface; a link knows none", file.path));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Vec<SourceFile> {
        vec![SourceFile::new(path, text)]
    }

    #[test]
    fn unsafe_code_in_the_wrong_place_is_found() {
        let code = "fn f() {\n    unsafe { g() }\n}";
        assert_eq!(
            unsafe_code(&file("host/window/src/lib.rs", code)),
            [
                "host/window/src/lib.rs:2: unsafe code outside os/mmio/, os/ffi/, os/ethernet/sys/, nic/rtl/sys/, api/c/"
            ]
        );
        assert_eq!(unsafe_code(&file("os/mmio/src/store.rs", code)).len(), 0);
        assert_eq!(unsafe_code(&file("os/ethernet/sys/src/bpf.rs", code)).len(), 0);
        assert_eq!(unsafe_code(&file("os/ethernet/src/tap.rs", code)).len(), 1);
        assert_eq!(unsafe_code(&file("host/rpc/src/client.rs", code)).len(), 1);
        assert_eq!(
            unsafe_code(&file("host/window/src/lib.rs", "#![forbid(unsafe_code)] // unsafe")).len(),
            0
        );
    }

    #[test]
    fn an_interface_in_a_link_is_found() {
        for code in ["use beeline_spec::Interface;", "fn kpio_lines() {}", "struct TxDescriptorPort;"] {
            assert_eq!(interfaces_in_links(&file("link/shm/src/lib.rs", code)).len(), 1, "{code}");
            assert_eq!(interfaces_in_links(&file("host/driver/src/lib.rs", code)).len(), 0, "{code}");
            assert_eq!(interfaces_in_links(&file("link/shm/tests/pair.rs", code)).len(), 0, "{code}");
        }
        assert_eq!(interfaces_in_links(&file("link/shm/src/lib.rs", "let unique = niq_entry;")).len(), 1);
        let sim = file("link/sim/src/lib.rs", "fn mmio_line() {} fn coherent_line() {} #[inline] fn f() {}");
        assert_eq!(interfaces_in_links(&sim).len(), 2);
        assert_eq!(
            interfaces_in_links(&file("link/shm/src/lib.rs", "use beeline_mmio::Region; // kpio")).len(),
            0
        );
    }
}
