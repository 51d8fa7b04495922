//! What asks nothing of an operating system, checked for a target that has none.

use crate::failure::Outcome;
use crate::install;
use crate::run::Program;

/// A target without files, threads, clocks or random numbers.
const TARGET: &str = "wasm32-unknown-unknown";

/// Crates that a browser or a kernel could carry: contracts, formats, host halves, the model of the NIC, machines in virtual
/// time. `beeline-experiments` stands outside, because it brings the Verilated RTL.
const PACKAGES: [&str; 10] = [
    "beeline-contract-memory",
    "beeline-contract-link",
    "beeline-contract-device",
    "beeline-spec",
    "beeline-link-memory",
    "beeline-link-sim",
    "beeline-nic-model",
    "beeline-window",
    "beeline-driver",
    "beeline-platforms",
];

/// `cargo check` of those crates for the target; nothing is run.
pub fn check() -> Outcome {
    install::target(TARGET, "code outside os/ is checked to need no operating system")?;
    let cargo = Program::cargo().args(["check", "--target", TARGET]);
    PACKAGES.iter().fold(cargo, |cargo, package| cargo.args(["--package", package])).run()
}
