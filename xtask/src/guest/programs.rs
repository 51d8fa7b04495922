//! What the project builds for a guest: programs, static, so that they need nothing of its system, and modules of its kernel.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::setup::Setup;
use crate::failure::{Failure, Outcome};
use crate::install;
use crate::run::{Program, root};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// A folder of their own: their flags would have everything in `target/` built anew.
const FOLDER: &str = "target/guest/programs";

/// Builds one program, as `--example bar_words` or `--bin beeline` names it, with glibc in it.
pub fn build_static(package: &str, kind: &str, name: &str) -> Outcome<PathBuf> {
    let built = Program::cargo()
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .args(["build", "--package", package, kind, name, "--target", TARGET, "--target-dir", FOLDER])
        .arg("--message-format=json-render-diagnostics")
        .on_cores()
        .output()?;
    let messages = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_it = |message: &Value| message.pointer("/target/name").is_some_and(|found| found == name);
    let mut programs =
        messages.filter(is_it).filter_map(|message| Some(root().join(message.get("executable")?.as_str()?)));
    programs.next_back().ok_or_else(|| Failure::new(format!("the build of {package} gave no program {name}")))
}

/// Builds the modules that the `Makefile` of a folder names, for the guest's kernel; each `NAME.ko` is in that folder then.
pub fn build_modules(setup: &Setup, folder: &Path) -> Outcome {
    let why = "modules of the guest's kernel are built by it";
    install::program("make", &["make"], why)?;
    // Debian built the kernel by this version. Another one is used where it is not there, and kbuild says so.
    let compiler = if install::has_program("gcc-12") { "gcc-12" } else { "gcc" };
    install::program(compiler, &["gcc"], why)?;
    let make = Program::new("make").args(["-s", "-C"]).arg(setup.kernel_build());
    let make = make.arg(format!("M={}", folder.display())).arg(format!("CC={compiler}"));
    // What a make that runs this says to its children.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").arg("modules").output().map(drop)
}
