//! The lanes of the NIC in SystemVerilog: lint, synthesis, proof, mutants. Each reads its list under `nic/`, so that a new
//! module, gate or proof is a row or a file there and no code here.
//!
//! The tools are those of `nic/tools/setup.sh`; nothing of the system's is used, so figures are the same everywhere.

pub mod benches;
pub mod compiled;
pub mod formal;
pub mod lint;
pub mod mutants;
mod parameters;
mod sources;
pub mod speed;
pub mod synth;

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Context, Failure, Outcome};
use crate::run::{Program, root};

#[derive(Debug, Clone)]
pub struct Tools {
    bin: PathBuf,
}

impl Tools {
    /// Makes the environment, unless it is there already.
    pub fn install() -> Outcome<Self> {
        Program::new("nic/tools/setup.sh").quiet().run().map_err(|cause| {
            Failure::new(format!("{cause}\nthe RTL tools could not be made; what pip or apt said is above"))
        })?;
        let folder = match std::env::var_os("BEELINE_RTL_TOOLS") {
            Some(folder) => root().join(folder),
            None => root().join("target/rtl"),
        };
        Ok(Tools { bin: folder.join("bin") })
    }

    /// The folder that holds them, as `$BEELINE_RTL_TOOLS` names it.
    fn folder(&self) -> &Path {
        self.bin.parent().unwrap_or(&self.bin)
    }

    fn program(&self, name: &str) -> Program {
        Program::new(self.bin.join(name)).quiet()
    }

    /// Runs a script of Yosys commands in the root of the workspace.
    fn yosys(&self, script: &str) -> Outcome<String> {
        self.program("yosys").args(["-q", "-p", script]).output()
    }
}

/// Brings the tools and says where they are; `make rtl-tools`.
pub fn tools() -> Outcome {
    let tools = Tools::install()?;
    println!("  the RTL tools are in {}", tools.bin.display());
    Ok(())
}

/// An empty folder for what a lane makes, as a path from the root: Yosys is WebAssembly, opens files from where it
/// runs, and has a folder of its own in place of /tmp.
fn work_folder(lane: &str) -> Outcome<String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folder = root().join(target).join(lane);
    if folder.exists() {
        fs::remove_dir_all(&folder).while_doing(format!("empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).while_doing(format!("make {}", folder.display()))?;
    Ok(from_root(&root(), &folder))
}

/// `folder` as seen from `root`.
fn from_root(root: &Path, folder: &Path) -> String {
    if let Ok(inside) = folder.strip_prefix(root) {
        return inside.display().to_string();
    }
    let up = "../".repeat(root.components().count() - 1);
    format!("{up}{}", folder.strip_prefix("/").unwrap_or(folder).display())
}

/// What a tool said when it failed, without the command that was run.
fn answer(cause: &Failure) -> String {
    let text = cause.to_string();
    let answer = text.split_once("` failed: ").and_then(|(_, rest)| rest.split_once('\n'));
    answer.map_or(&*text, |(_, rest)| rest).to_owned()
}

/// The first lines of what a tool said: enough to see what is wrong, without a screen for each module.
pub fn head(text: &str, lines: usize) -> String {
    let mut kept: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let more = kept.len().saturating_sub(lines);
    kept.truncate(lines);
    let rest = if more > 0 { format!("\n    … {more} lines more") } else { String::new() };
    format!("{}{rest}", kept.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_from_the_root() {
        let root = Path::new("/a/b");
        assert_eq!(from_root(root, Path::new("/a/b/target/x")), "target/x");
        assert_eq!(from_root(root, Path::new("/tmp/x")), "../../tmp/x");
    }

    #[test]
    fn the_command_is_left_out() {
        assert_eq!(answer(&Failure::new("`yosys -p a` failed: exit status: 1\nERROR: loop")), "ERROR: loop");
        assert_eq!(answer(&Failure::new("cannot read a")), "cannot read a");
    }

    #[test]
    fn long_messages_are_cut() {
        assert_eq!(head("a\n\nb\n", 2), "a\n    b");
        assert_eq!(head("a\nb\nc\n", 1), "a\n    … 2 lines more");
    }
}
