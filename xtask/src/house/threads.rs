//! Threads of the product that would run handlers of the program's signals.
//!
//! `os/mmio` starts threads in which signals are blocked (`beeline_mmio::thread`); std's functions do not. A check of text cannot
//! know the type of what `spawn` is called on, so in a file with scoped threads every `.spawn(` counts. Test code is let through:
//! a program's own threads are what it stands for.

use crate::source::{SourceFile, code_only};

/// What programs link or run.
const FOLDERS: [&str; 8] = ["api/", "app/", "contract/", "host/", "lab/", "link/", "nic/", "os/"];
/// The one file that starts threads.
const HELPER: &str = "os/mmio/src/thread.rs";

/// Every thread that is started by another function.
pub fn unblocked(files: &[SourceFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs" && is_checked(&file.path)) {
        let code = code_only(&file.text);
        let code = code.split("#[cfg(test)]").next().unwrap_or(&code);
        let is_std = code.contains("use std::thread;") || code.contains("use std::thread::{self");
        let has_scope = code.contains("thread::scope(");
        for (index, line) in code.lines().enumerate() {
            let is_found = line.contains("std::thread::spawn")
                || line.contains("thread::Builder")
                || line.contains("use std::thread::") && (line.contains("Builder") || line.contains("spawn"))
                || is_std && line.contains("thread::spawn(")
                || has_scope && line.contains(".spawn(");
            if is_found {
                findings.push(format!(
                    "{}:{}: a thread with the program's signals open; start it by beeline_mmio::thread",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    findings
}

fn is_checked(path: &str) -> bool {
    let is_test = ["/tests/", "/examples/", "/benches/"].iter().any(|folder| path.contains(folder))
        || ["tests.rs", "_litmus.rs", "_loom.rs", "_model.rs"].iter().any(|end| path.ends_with(end));
    path != HELPER && !is_test && FOLDERS.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, code: &str) -> usize {
        unblocked(&[SourceFile::new(path, code)]).len()
    }

    #[test]
    fn thread_of_std_is_found() {
        for code in [
            "let t = std::thread::spawn(run);",
            "use std::thread;\nfn f() { thread::spawn(run); }",
            "std::thread::Builder::new().name(name).spawn(run)?;",
            "use std::thread::{Builder};\n",
            "thread::scope(|s| {\n    s.spawn(run);\n});",
        ] {
            assert_eq!(findings("host/rpc/src/lib.rs", code), 1, "{code}");
            for path in [HELPER, "bench/src/lib.rs", "host/rpc/tests/calls.rs", "host/rpc/src/wait/tests.rs"]
            {
                assert_eq!(findings(path, code), 0, "{path}");
            }
            assert_eq!(findings("host/rpc/src/lib.rs", &format!("#[cfg(test)]\nmod t {{ {code} }}")), 0);
        }
    }

    #[test]
    fn thread_of_the_helper_is_not_found() {
        for code in [
            "use beeline_mmio::thread;\nfn f() { thread::start(\"beeline\", run)?; }",
            "std::thread::scope(|scope| thread::spawn_in(scope, \"beeline\", run));",
            "use std::thread::JoinHandle;\nfn f() { Command::new(\"nic\").spawn()?; }",
            "// std::thread::spawn(run)",
        ] {
            assert_eq!(findings("host/rpc/src/lib.rs", code), 0, "{code}");
        }
    }
}
