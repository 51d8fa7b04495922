//! What asks nothing of an operating system, checked for targets that have none.

use crate::failure::Outcome;
use crate::install;
use crate::run::Program;

const WHY: &str = "code outside os/ is checked to need no operating system";

/// A target without files, threads, clocks or random numbers.
const TARGET: &str = "wasm32-unknown-unknown";

/// Crates that a browser could carry: contracts, formats, host halves, the model of the NIC, machines in virtual time, and
/// experiments on them.
const PACKAGES: [&str; 13] = [
    "beeline-contract-memory",
    "beeline-contract-link",
    "beeline-contract-device",
    "beeline-contract-adapter",
    "beeline-fabric",
    "beeline-spec",
    "beeline-link-memory",
    "beeline-link-sim",
    "beeline-nic-model",
    "beeline-window",
    "beeline-driver",
    "beeline-platforms",
    "beeline-experiments",
];

/// A target without a standard library. It has words of 32 bits and no atomic operation on 64.
const BARE_TARGET: &str = "thumbv7em-none-eabihf";

/// Crates that firmware or a kernel could carry, with `core` and `alloc`.
const BARE_PACKAGES: [&str; 8] = [
    "beeline-contract-memory",
    "beeline-contract-link",
    "beeline-contract-device",
    "beeline-contract-adapter",
    "beeline-fabric",
    "beeline-spec",
    "beeline-window",
    "beeline-driver",
];

/// `cargo check` of those crates for their targets; nothing is run.
pub fn check() -> Outcome {
    for target in [TARGET, BARE_TARGET] {
        install::target(target, WHY)?;
    }
    let cargo = Program::cargo().args(["check", "--target", TARGET]);
    PACKAGES.iter().fold(cargo, |cargo, package| cargo.args(["--package", package])).run()?;
    // clippy, because nobody else compiles what is left of the crates without their features.
    let cargo = Program::cargo().args(["clippy", "--target", BARE_TARGET, "--no-default-features"]);
    let cargo = BARE_PACKAGES.iter().fold(cargo, |cargo, package| cargo.args(["--package", package]));
    cargo.args(["--", "-D", "warnings"]).run()
}
