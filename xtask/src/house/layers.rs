//! Who may know whom: unsafe code in one place, links that name no interface, a device that knows no host.

use toml::Table;

use crate::source::{SourceFile, code_only, words};

/// The one crate that touches memory a device or a peer can write, and crates that are FFI and nothing else.
const UNSAFE_FOLDERS: [&str; 4] = ["host/mmio/", "nic/uplink/sys/", "nic/rtl/sys/", "host/rpc/c/"];

/// (folder, packages that its crates must not depend on, why).
const FORBIDDEN: [(&str, &[&str], &str); 6] = [
    ("nic/model/", HOST, "the model is a device; a device imports nothing of the host"),
    ("nic/contract/", HOST, "the device trait knows nothing of the host"),
    (
        "host/window/",
        &["beeline-link-shm", "beeline-driver", "beeline-nic-model"],
        "a window does not know its link",
    ),
    (
        "host/driver/",
        &["beeline-link-shm", "beeline-nic-model", "beeline-mmio"],
        "a driver does not know its link",
    ),
    (
        "link/",
        &["beeline-driver", "beeline-nic-model"],
        "a link carries stores; it names no interface and no device",
    ),
    ("spec/", &["beeline-mmio", "beeline-nic-model", "beeline-driver"], "the spec stands below everything"),
];

/// Crates of the host, and the link that is made of them.
const HOST: &[&str] = &[
    "beeline",
    "beeline-mmio",
    "beeline-domain",
    "beeline-window",
    "beeline-driver",
    "beeline-cli",
    "beeline-link-shm",
    "beeline-link-contract",
];

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

/// Dependencies that point the wrong way. Tests may use what they like.
pub fn dependencies(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let Ok(manifest) = file.text.parse::<Table>() else {
            findings.push(format!("{}: not a manifest", file.path));
            continue;
        };
        let wanted: Vec<&String> = manifest
            .get("dependencies")
            .and_then(|d| d.as_table())
            .into_iter()
            .flat_map(Table::keys)
            .collect();
        for (folder, forbidden, why) in FORBIDDEN {
            for name in wanted
                .iter()
                .filter(|name| file.path.starts_with(folder) && forbidden.contains(&name.as_str()))
            {
                findings.push(format!("{}: depends on {name}; {why}", file.path));
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
                "host/window/src/lib.rs:2: unsafe code outside host/mmio/, nic/uplink/sys/, nic/rtl/sys/, host/rpc/c/"
            ]
        );
        assert_eq!(unsafe_code(&file("host/mmio/src/store.rs", code)).len(), 0);
        assert_eq!(unsafe_code(&file("nic/uplink/sys/src/bpf.rs", code)).len(), 0);
        assert_eq!(unsafe_code(&file("nic/uplink/src/tap.rs", code)).len(), 1);
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

    #[test]
    fn a_dependency_the_wrong_way_is_found() {
        let manifest = "[dependencies]\nbeeline-mmio = { workspace = true }\n";
        assert_eq!(dependencies(&file("nic/model/Cargo.toml", manifest)).len(), 1);
        assert_eq!(dependencies(&file("link/shm/Cargo.toml", manifest)).len(), 0);
        assert_eq!(
            dependencies(&file("nic/model/Cargo.toml", &manifest.replace("[dep", "[dev-dep"))).len(),
            0
        );
        assert_eq!(dependencies(&file("nic/model/Cargo.toml", "[dependencies")).len(), 1);
    }
}
