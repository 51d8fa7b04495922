//! Lanes that are cargo with the stable toolchain on the whole workspace. They share `target/`.

use super::real_programs;
use super::test_programs::{self, Settings, TestProgram};
use crate::effort::Effort;
use crate::failure::Outcome;
use crate::install;
use crate::run::{Program, root};

/// Packages with the whole-system tests: those of the library, and those that start the program.
const SYSTEM_TESTS: [&str; 2] = ["beeline-tests", "beeline-cli"];
/// Workspaces of their own: the fuzz targets, and the rivals that bring crates.
const OTHER_MANIFESTS: [&str; 2] = ["fuzz/Cargo.toml", "bench/rivals/Cargo.toml"];
pub const OTHER_PACKAGES: [&str; 2] = ["beeline-fuzz", "beeline-bench-rivals"];

/// `cargo fmt --check`, and whether the lock files are those of the manifests; seconds.
pub fn fmt() -> Outcome {
    install::component("rustfmt", "fmt", "the format is checked with it")?;
    Program::cargo().args(["fmt", "--all", "--check"]).run()?;
    // `--all` would follow their path dependencies back to every crate.
    for manifest in OTHER_MANIFESTS.iter().filter(|manifest| root().join(manifest).is_file()) {
        Program::cargo().args(["fmt", "--check", "--manifest-path", manifest]).run()?;
    }
    // A build would change them and say nothing. That of the rivals is looked at when they are built.
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let options = ["metadata", "--locked", "--format-version", "1", "--manifest-path", manifest];
        Program::cargo().args(options).output()?;
    }
    Ok(())
}

/// clippy on everything; a type-check of the workspace, one to two minutes cold.
pub fn clippy() -> Outcome {
    install::component("clippy", "clippy", "it is the linter")?;
    Program::cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).on_cores().run()
}

/// Unit, property and documentation tests of every crate but the whole-system ones; builds everything once.
pub fn test(effort: Effort) -> Outcome {
    let (settings, mut programs) = (Settings::of(effort), test_programs::build(Program::cargo(), &[])?);
    programs.retain(|program| !is_system_test(program));
    let unit_tests = test_programs::run(programs, &settings);
    let doc_tests = test_programs::run_doc_tests(&settings);
    unit_tests.and(doc_tests)
}

/// Whole-system tests: NIC, sender and receiver in processes of their own.
pub fn e2e(effort: Effort) -> Outcome {
    let mut programs = test_programs::build(Program::cargo(), &[])?;
    // Their lane brings what they need.
    programs.retain(|program| is_system_test(program) && program.target != real_programs::TEST);
    test_programs::run(programs, &Settings::of(effort))
}

fn is_system_test(program: &TestProgram) -> bool {
    SYSTEM_TESTS.contains(&&*program.package)
}

/// rustdoc with every warning denied; private items too in a long run.
pub fn docs(effort: Effort) -> Outcome {
    let docs = Program::cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--workspace",
        "--lib",
        "--no-deps",
    ]);
    match effort {
        Effort::Short => docs,
        Effort::Long => docs.arg("--document-private-items"),
    }
    .on_cores()
    .run()
}
