//! Unsafe code in its folders, and links that name no interface.

use crate::source::{SourceFile, code_only, words};

/// The one crate that touches memory a device or a peer can write, and crates that are FFI and nothing else.
const UNSAFE_FOLDERS: [&str; 8] = [
    "os/mmio/",
    "os/ffi/",
    "os/ethernet/sys/",
    "os/tcp/sys/",
    "nic/rtl/sys/",
    "api/c/",
    "api/sisci/",
    "api/sockets/",
];

/// The one list of interfaces, read here so that a link cannot name a new one either.
const LIST: &str = include_str!("../../../spec/src/interface.rs");

/// What an interface's rings, entries and pushes are called beside its name.
const OTHER_PARTS: [&str; 4] = ["tx_descriptor", "rx_descriptor", "txdescriptor", "blueflame"];

/// Names of interfaces that are words of the language.
const WORDS_OF_RUST: [&str; 1] = ["inline"];
/// Names that mean something else in links on real memory: a crate is called so, and the kernel's files are.
const WORDS_OF_REAL_MEMORY: [&str; 2] = ["mmio", "descriptor"];

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
        let is_real = !file.path.starts_with("link/sim/");
        let is_ordinary =
            |name: &str| WORDS_OF_RUST.contains(&name) || is_real && WORDS_OF_REAL_MEMORY.contains(&name);
        for (line, word) in words(&code_only(&file.text)) {
            let (lower, parts) = (word.to_lowercase(), parts(word));
            let is_named =
                interfaces().any(|name| !is_ordinary(name) && parts.iter().any(|part| part == name));
            if word == "Interface" || is_named || OTHER_PARTS.iter().any(|part| lower.contains(part)) {
                findings
                    .push(format!("{}:{line}: `{word}` names an interface; a link knows none", file.path));
            }
        }
    }
    findings
}

/// Names of interfaces, as people type them.
fn interfaces() -> impl Iterator<Item = &'static str> {
    let rows = LIST.split_once("\ninterfaces! {\n").map_or("", |(_, rows)| rows);
    let rows = rows.lines().take_while(|line| *line != "}").filter(|line| line.ends_with(';'));
    rows.filter_map(|row| row.split('"').nth(1))
}

/// The words of an identifier in any of Rust's cases, in lower case: `TxRing`, `tx_ring` and `TX_RING` have the same.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in identifier.chars() {
        if letter == '_' || was_lower && letter.is_uppercase() {
            parts.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let (Some(part), true) = (parts.last_mut(), letter != '_') {
            part.extend(letter.to_lowercase());
        }
    }
    parts
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
                "host/window/src/lib.rs:2: unsafe code outside os/mmio/, os/ffi/, os/ethernet/sys/, os/tcp/sys/, nic/rtl/sys/, api/c/, api/sisci/, api/sockets/"
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
        let named = [
            "use beeline_spec::Interface;",
            "fn kpio_lines() {}",
            "struct TxDescriptorPort;",
            "TxEnso",
            "NIQ_MAX",
        ];
        for code in named {
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

    #[test]
    fn every_interface_of_the_list_is_known() {
        let found: Vec<&str> = interfaces().collect();
        assert_eq!(found, ["mmio", "kpio", "descriptor", "inline", "enso", "niq", "coherent"]);
    }
}
