//! Who may depend on whom: a list of what each folder may import, in the order of the floors.
//!
//! A folder may import only folders above it in the list, so the list has no circle and every dependency points down the
//! house. A crate in a folder that is not listed is a finding, and so is a dependency that its row does not name. Target-specific
//! and build dependencies count; dev-dependencies do not, because tests may join what the product keeps apart.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::source::SourceFile;

/// (folder of a crate, folders that it may import), in the order of the floors.
const FLOORS: &[(&str, &[&str])] = &[
    ("contract/memory", &[]),
    ("contract/link", &["contract/memory"]),
    ("contract/device", &[]),
    ("contract/adapter", &[]),
    ("spec", &[]),
    ("spec/vectors", &["contract/device", "spec"]),
    // Nothing of the kernel but its clock and its scheduler.
    ("os/wait", &["contract/memory"]),
    ("os/mmio", &["contract/memory", "contract/link"]),
    ("os/tcp/sys", &[]),
    // What the kernel says of a socket, for whoever carries its bytes by another path.
    ("os/tcp", &["os/tcp/sys"]),
    ("os/domain", &["contract/memory", "contract/link", "spec", "os/mmio", "os/tcp", "os/tcp/sys"]),
    // Beside the domain, whose peers a kernel can tell of; the two share what wakes a program.
    ("os/heartbeat", &["contract/memory", "contract/link", "spec", "os/mmio", "os/domain"]),
    // What C libraries have in common, whatever is below them.
    ("os/ffi", &[]),
    ("os/ethernet/sys", &[]),
    ("os/ethernet", &["contract/device", "spec", "os/mmio", "os/ethernet/sys"]),
    // In memory only: a link of one thread needs no kernel.
    ("link/memory", &["contract/memory", "contract/link", "contract/device", "spec"]),
    ("link/shm", &["contract/memory", "contract/link", "contract/device", "spec", "os/mmio", "os/domain"]),
    // The same memory and the same loop, reached by whoever sees a PCI function.
    (
        "link/vfio-user",
        &["contract/memory", "contract/link", "contract/device", "spec", "os/mmio", "os/domain", "link/shm"],
    ),
    // In virtual time nothing asks the kernel, and a link knows no register.
    ("link/sim", &["contract/memory", "contract/link", "contract/device"]),
    // BARs by the kernel's files alone: what is found and mapped knows no link yet.
    ("link/bar", &["os/mmio"]),
    // A device knows its contract and its registers, and neither a host nor a link.
    ("nic/model", &["contract/device", "spec"]),
    ("nic/rtl/sys", &[]),
    ("nic/rtl", &["contract/device", "spec", "nic/rtl/sys"]),
    (
        "nic/process",
        &[
            "contract/device",
            "spec",
            "os/wait",
            "os/mmio",
            "os/domain",
            "os/ethernet",
            "link/shm",
            "link/vfio-user",
            "nic/model",
        ],
    ),
    // Windows and host halves are written once, for every link.
    ("host/window", &["contract/memory", "spec"]),
    // Which of two paths carries which bytes: words alone.
    ("host/ledger", &["contract/adapter"]),
    // Both paths as one stream.
    ("host/stream", &["contract/memory", "contract/adapter", "os/tcp", "host/window", "host/ledger"]),
    // By which connections a program's rules are meant, and what is counted of them in mapped memory.
    ("host/sockets/rules", &["os/mmio"]),
    (
        "host/sockets",
        &[
            "contract/memory",
            "contract/adapter",
            "spec",
            "os/mmio",
            "os/tcp",
            "os/domain",
            "host/window",
            "host/ledger",
            "host/stream",
            "host/sockets/rules",
        ],
    ),
    // The semantics know words, and no memory, link or kernel.
    ("host/fabric", &["contract/adapter"]),
    // What is documented, and nothing of the code that it is held against.
    ("host/fabric/states", &[]),
    // Copies by mapped parts of segments, whoever maps them.
    ("host/fabric/transfer", &["contract/memory", "spec", "os/mmio", "host/window", "host/fabric"]),
    (
        "host/fabric/process",
        &[
            "contract/memory",
            "contract/adapter",
            "spec",
            "os/mmio",
            "os/domain",
            "host/window",
            "host/fabric",
            "host/fabric/transfer",
            "host/fabric/states",
        ],
    ),
    // One memory and no kernel in common: who lives is known by heartbeats.
    (
        "host/fabric/bar",
        &[
            "contract/memory",
            "contract/link",
            "contract/adapter",
            "spec",
            "os/wait",
            "os/mmio",
            "os/heartbeat",
            "link/bar",
            "host/window",
            "host/fabric",
            "host/fabric/transfer",
        ],
    ),
    ("host/tuning", &["contract/memory", "os/mmio", "host/window"]),
    ("host/driver", &["contract/memory", "contract/link", "spec", "host/window"]),
    ("host/datagram", &["spec", "os/mmio", "os/ethernet"]),
    // Packets of the kernel by members of either kind.
    (
        "host/ip",
        &[
            "contract/memory",
            "os/mmio",
            "os/ethernet",
            "host/fabric",
            "host/fabric/process",
            "host/fabric/bar",
        ],
    ),
    (
        "host/rpc",
        &[
            "contract/memory",
            "spec",
            "os/wait",
            "os/mmio",
            "os/domain",
            "os/ethernet",
            "host/window",
            "host/datagram",
        ],
    ),
    ("host/rpc/kv", &["spec", "os/mmio", "os/domain", "host/rpc"]),
    (
        "host/session",
        &[
            "contract/link",
            "spec",
            "os/wait",
            "os/mmio",
            "os/domain",
            "link/shm",
            "nic/model",
            "nic/process",
            "host/window",
            "host/driver",
        ],
    ),
    ("lab/floor", &["contract/memory", "os/mmio", "host/window", "host/tuning"]),
    ("lab/platforms", &[]),
    (
        "lab/experiments",
        &[
            "contract/memory",
            "contract/link",
            "contract/device",
            "spec",
            "link/sim",
            "nic/model",
            "nic/rtl",
            "host/window",
            "host/driver",
            "lab/platforms",
        ],
    ),
    // Members of the fabric on hosts in virtual time: the same semantics, and who lives by its heartbeat.
    (
        "lab/hosts",
        &[
            "contract/memory",
            "contract/link",
            "contract/adapter",
            "spec",
            "os/mmio",
            "os/heartbeat",
            "link/sim",
            "host/window",
            "host/fabric",
            "lab/platforms",
            "lab/experiments",
        ],
    ),
    ("lab/figures", &["spec", "lab/platforms", "lab/experiments", "lab/hosts"]),
    (
        "api/rust",
        &[
            "contract/memory",
            "contract/link",
            "spec",
            "os/wait",
            "os/mmio",
            "os/domain",
            "link/shm",
            "host/window",
            "host/tuning",
            "host/driver",
            "host/rpc",
        ],
    ),
    ("api/c", &["os/mmio", "os/domain", "os/ffi", "host/rpc", "api/rust"]),
    (
        "api/sisci",
        &["os/mmio", "os/domain", "os/ffi", "host/fabric", "host/fabric/process", "host/fabric/bar"],
    ),
    // Hooks of the C library.
    ("api/sockets", &["os/tcp", "os/domain", "os/ffi", "host/sockets/rules", "host/sockets"]),
    (
        "app/beeline",
        &[
            "contract/link",
            "contract/memory",
            "spec",
            "os/mmio",
            "os/domain",
            "os/ethernet",
            "link/memory",
            "link/sim",
            "link/bar",
            "nic/rtl",
            "nic/process",
            "host/window",
            "host/tuning",
            "host/driver",
            "host/datagram",
            "host/rpc",
            "host/rpc/kv",
            "host/ip",
            "host/session",
            "host/fabric",
            "host/fabric/process",
            "host/fabric/bar",
            "host/sockets",
            "host/sockets/rules",
            "lab/floor",
            "lab/platforms",
            "lab/experiments",
            "lab/figures",
        ],
    ),
    ("bench/echo", &["os/mmio"]),
    ("bench/rivals", &["bench/echo"]),
    ("bench", EVERYTHING),
    ("tests", EVERYTHING),
    ("fuzz", EVERYTHING),
    ("xtask", &[]),
];

/// The roof: what joins everything below it to measure or test it.
const EVERYTHING: &[&str] = &[""];

/// A manifest, and the folder it stands in.
struct Crate {
    path: String,
    folder: String,
    manifest: Table,
}

/// Dependencies that no row of the list allows, and crates without a row.
pub fn dependencies(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut crates = Vec::new();
    for file in files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else { continue };
        match file.text.parse() {
            Ok(manifest) => {
                crates.push(Crate { path: file.path.clone(), folder: folder.to_owned(), manifest });
            }
            Err(_) => findings.push(format!("{}: not a manifest", file.path)),
        }
    }
    let folders: BTreeMap<&str, &str> =
        crates.iter().filter_map(|each| Some((each.name()?, &*each.folder))).collect();
    for each in &crates {
        let Some(floor) = floor_of(&each.folder) else {
            findings.push(format!("{}: {} has no row in xtask/src/house/floors.rs", each.path, each.folder));
            continue;
        };
        let wanted = each.dependencies().into_iter().filter_map(|name| folders.get(name.as_str()));
        findings.extend(wanted.filter(|folder| !may_import(floor, folder)).map(|folder| {
            format!(
                "{}: imports {folder}, which its row in xtask/src/house/floors.rs does not allow",
                each.path
            )
        }));
    }
    findings
}

fn floor_of(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|(name, _)| *name == folder)
}

/// Whether the row of `floor` allows `folder`, and `folder` stands above it in the list.
fn may_import(floor: usize, folder: &str) -> bool {
    let (_, allowed) = FLOORS[floor];
    let is_allowed = allowed == EVERYTHING || allowed.contains(&folder);
    is_allowed && floor_of(folder).is_some_and(|below| below < floor)
}

impl Crate {
    fn name(&self) -> Option<&str> {
        self.manifest.get("package")?.get("name")?.as_str()
    }

    /// Names of packages that the product of this crate is made of, on any target.
    fn dependencies(&self) -> Vec<String> {
        let targets = self.manifest.get("target").and_then(Value::as_table);
        let tables = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
        std::iter::once(&self.manifest)
            .chain(tables)
            .flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")])
            .flatten()
            .filter_map(Value::as_table)
            .flatten()
            .map(|(key, value)| value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(folder: &str, dependencies: &str) -> Vec<String> {
        let manifest = |folder: &str, name: &str, rest: &str| {
            SourceFile::new(format!("{folder}/Cargo.toml"), format!("[package]\nname = \"{name}\"\n{rest}"))
        };
        super::dependencies(&[
            manifest("os/mmio", "beeline-mmio", ""),
            manifest("contract/device", "beeline-contract-device", ""),
            manifest("bench", "beeline-bench", ""),
            manifest(folder, "asked", dependencies),
        ])
    }

    #[test]
    fn every_row_points_at_rows_above_it() {
        for (at, (folder, allowed)) in FLOORS.iter().enumerate() {
            for below in allowed.iter().filter(|below| !below.is_empty()) {
                let floor = floor_of(below).unwrap_or_else(|| panic!("{folder}: {below} has no row"));
                assert!(floor < at, "{folder} may import {below}, which stands below it in the list");
            }
        }
    }

    #[test]
    fn an_edge_that_no_row_allows_is_found() {
        let edge = "[dependencies]\nbeeline-mmio = { workspace = true }\n";
        assert_eq!(
            with("nic/model", edge),
            [
                "nic/model/Cargo.toml: imports os/mmio, which its row in xtask/src/house/floors.rs does not allow"
            ]
        );
        assert!(with("link/shm", edge).is_empty());
        assert!(with("nic/model", "[dependencies]\nserde = \"1\"\n").is_empty());
    }

    #[test]
    fn edges_of_a_target_a_build_script_and_a_renamed_package_count() {
        for table in ["target.'cfg(unix)'.dependencies", "build-dependencies"] {
            assert_eq!(with("nic/model", &format!("[{table}]\nbeeline-mmio = \"1\"\n")).len(), 1, "{table}");
        }
        assert_eq!(with("nic/model", "[dependencies]\nmmio = { package = \"beeline-mmio\" }\n").len(), 1);
        assert!(with("nic/model", "[dev-dependencies]\nbeeline-mmio = \"1\"\n").is_empty());
    }

    #[test]
    fn a_crate_without_a_row_and_a_file_that_is_no_manifest_are_found() {
        assert!(with("host/attic", "")[0].contains("host/attic has no row"));
        assert_eq!(with("nic/model", "[dependencies").len(), 1);
    }

    #[test]
    fn the_product_does_not_stand_on_its_benches() {
        let edge = "[dependencies]\nbeeline-bench = { workspace = true }\n";
        assert_eq!(with("host/rpc", edge).len(), 1);
        assert_eq!(with("api/rust", edge).len(), 1);
    }
}
