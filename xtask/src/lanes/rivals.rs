//! The rivals of `bench/`: checked as everything else is, and made ready to be measured against.
//!
//! `bench/rivals` is a workspace of its own, because its crates take longer to compile than all others together; so it
//! has a lane of its own, which only a long run has. Building it, and bringing the packages that the other rivals
//! are made of, is no check: `make bench` asks for it.

use std::path::Path;

use crate::effort::Effort;
use crate::failure::Outcome;
use crate::install;
use crate::run::Program;

const MANIFEST: &str = "bench/rivals/Cargo.toml";
/// Libraries that rivals are written against: as pkg-config knows them, and the package.
const LIBRARIES: [(&str, &str); 4] =
    [("ucx", "libucx-dev"), ("libfabric", "libfabric-dev"), ("ck", "libck-dev"), ("libdpdk", "libdpdk-dev")];
/// Servers that are rivals: program and package.
const SERVERS: [(&str, &str); 2] = [("memcached", "memcached"), ("redis-server", "redis-server")];

/// clippy with warnings denied, half a minute of two cores; in a long run the tests too.
pub fn check(effort: Effort) -> Outcome {
    cargo("clippy").args(["--all-targets", "--", "-D", "warnings"]).on_cores().run()?;
    match effort {
        Effort::Short => Ok(()),
        Effort::Long => cargo("test").on_cores().run(),
    }
}

/// Brings what can be brought and builds `beeline-bench-rivals` beside `beeline-bench`. A package that cannot be had is
/// no failure: its rows say n/a.
pub fn build() -> Outcome {
    let why = "bench/ measures a rival that is built against it";
    for (library, package) in LIBRARIES {
        report(install::library(library, &[package], why));
    }
    for (program, package) in SERVERS {
        // A package that starts a service is installed unasked only where nothing starts services.
        if Path::new("/run/systemd/system").exists() && !install::has_program(program) {
            println!(
                "  {program} is missing, and `apt-get install {package}` would start it as a service: its rows say n/a"
            );
        } else {
            report(install::program(program, &[package], "bench/ measures beside it"));
        }
    }
    cargo("build").arg("--release").run()
}

fn report(outcome: Outcome) {
    if let Err(failure) = outcome {
        println!("  {failure}\n  its rows say n/a");
    }
}

/// cargo on that workspace, in the folder in which everything is built: dependencies that are the same are shared.
fn cargo(subcommand: &str) -> Program {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Program::cargo()
        .args([subcommand, "--locked", "--manifest-path", MANIFEST])
        .arg("--target-dir")
        .arg(target)
}
