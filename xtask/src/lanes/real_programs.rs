//! Servers and clients of Debian, natively and with both ends by `beeline run`: brought, named with their versions, and tested.

use std::path::Path;

use super::test_programs::{self, Settings};
use crate::effort::Effort;
use crate::failure::{Failure, Outcome};
use crate::install;
use crate::run::Program;

/// The tests that run them.
pub const TEST: &str = "real_programs";
/// Clients and tools: program, package.
const TOOLS: [(&str, &str); 8] = [
    ("wrk", "wrk"),
    ("iperf3", "iperf3"),
    ("sockperf", "sockperf"),
    ("redis-cli", "redis-tools"),
    ("curl", "curl"),
    ("python3", "python3"),
    ("node", "nodejs"),
    ("javac", "default-jdk-headless"),
];
/// Servers, which a package starts where something starts services. Debian keeps one version of each for a release: 7.0, 1.6, 1.22, 2.6 and 15 of Debian 12
/// are those that the tests were seen to pass with.
const SERVERS: [(&str, &str, &str); 5] = [
    ("redis-server", "redis-server", "5:7.0.*"),
    ("memcached", "memcached", "1.6.*"),
    ("nginx", "nginx-light", "1.22.*"),
    ("haproxy", "haproxy", "2.6.*"),
    ("pg_createcluster", "postgresql", "15+*"),
];

/// Brings what is missing, says what is there, and runs the tests.
pub fn run(effort: Effort) -> Outcome {
    let why = "programs that have sockets are run as they are, and by `beeline run`";
    for (program, package) in TOOLS {
        install::program(program, &[package], why)?;
    }
    for (program, package, version) in SERVERS {
        server(program, package, version, why)?;
    }
    let packages =
        TOOLS.iter().map(|(_, package)| *package).chain(SERVERS.iter().map(|(_, package, _)| *package));
    let shown = Program::new("dpkg-query").args(["--show", "--showformat", "  ${Package} ${Version}\\n"]);
    // A program that is there without its package has none.
    let _ = shown.args(packages).run();
    let mut programs = test_programs::build(Program::cargo(), &["--test", TEST])?;
    programs.retain(|program| program.target == TEST);
    test_programs::run(programs, &Settings::of(effort))
}

/// Brings a server, in the version that the tests were seen to pass with, if the archive still has it.
fn server(program: &str, package: &str, version: &str, why: &str) -> Outcome {
    if install::has_program(program) {
        return Ok(());
    }
    if Path::new("/run/systemd/system").exists() {
        return Err(Failure::new(format!(
            "`{program}` is missing, and `apt-get install {package}` would start it as a service here: install it, or run the lane in a container"
        )));
    }
    let pinned = format!("{package}={version}");
    install::program(program, &[&pinned], why).or_else(|_| install::program(program, &[package], why))
}
