//! Programs of the project for a guest: static, so that they need nothing of its system.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::{Failure, Outcome};
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
