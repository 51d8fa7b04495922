//! Programs in C and `libsisci.so`, both of them with the checks of a compiler: of memory and undefined behaviour, or of threads.
//!
//! What `test` runs of this kind is the conformance suite with a library that has no checks itself. Here the library has them, and the
//! standard library in it, too: without that the checker of threads would not see how Rust's locks order anything. Rust code has no check
//! of undefined behaviour as such; Miri is for that. No finding is suppressed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Context, Failure, Outcome};
use crate::install;
use crate::run::{Program, root};

const PACKAGE: &str = "beeline-sisci";
const FOLDER: &str = "target/sanitized";
/// Files of tests that play programs in C.
const TESTS: [&str; 4] = ["conformance", "examples", "misuse", "random"];
/// Tests in them that compile with checks of their own, or run no program.
const SKIPPED: [&str; 2] =
    ["sanitized_programs_give_the_same_answers", "each_example_is_a_program_of_cpp_too"];

/// A checker.
struct Sanitizer {
    /// What rustc calls it.
    name: &'static str,
    /// What ends the name of its part that runs with a program: rustc's brings it, and the C compiler finds it under its own name. That of
    /// the C compiler may be older than what rustc needs of it.
    runtime: &'static str,
    /// How programs are compiled and linked. A finding ends the program, so its test fails.
    flags: &'static str,
    options: (&'static str, &'static str),
}

const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "address",
        runtime: "asan",
        flags: "-fsanitize=address,undefined -fno-sanitize-recover=undefined -static-libasan",
        // Variables of a function would not lie on the stack, which one case registers as memory.
        options: ("ASAN_OPTIONS", "detect_stack_use_after_return=0:strict_string_checks=1"),
    },
    Sanitizer {
        name: "thread",
        runtime: "tsan",
        flags: "-fsanitize=thread -static-libtsan",
        // Calls in a child of fork are refused, which cases are about; the checker would end the child.
        options: ("TSAN_OPTIONS", "halt_on_error=1:die_after_fork=0:second_deadlock_stack=1"),
    },
];

/// Conformance, misuse, random calls by processes that are killed, and the examples, with each checker.
pub fn run() -> Outcome {
    let why = "it builds the library with checks of memory and of threads";
    let nightly = install::nightly(&["rust-src"], why)?;
    for sanitizer in &SANITIZERS {
        let built = build(sanitizer, nightly)?;
        let runtime = runtime(sanitizer, nightly)?;
        Program::cargo()
            .env("BEELINE_SISCI_BUILT", &built)
            .env("BEELINE_SANITIZER_FLAGS", format!("-g {} -L{}", sanitizer.flags, runtime.display()))
            .env(sanitizer.options.0, sanitizer.options.1)
            .args(["test", "--no-fail-fast", "--package", PACKAGE])
            .args(TESTS.iter().flat_map(|test| ["--test", test]))
            .arg("--")
            .args(SKIPPED.iter().flat_map(|test| ["--skip", test]))
            .on_cores()
            .run()?;
    }
    Ok(())
}

/// The folder of the library with the checks.
fn build(sanitizer: &Sanitizer, nightly: &str) -> Outcome<PathBuf> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = format!("{FOLDER}/{}", sanitizer.name);
    Program::cargo()
        .env("RUSTFLAGS", format!("-Zsanitizer={} -Cdebuginfo=line-tables-only", sanitizer.name))
        .args([nightly, "build", "-Zbuild-std", "--lib", "--package", PACKAGE])
        .args(["--target", &host, "--target-dir", &folder])
        .on_cores()
        .run()?;
    Ok(root().join(folder).join(host).join("debug"))
}

/// A folder where a linker finds rustc's runtime of a checker by the name that the C compiler has for it.
fn runtime(sanitizer: &Sanitizer, nightly: &str) -> Outcome<PathBuf> {
    let libraries = Program::new("rustc").args([nightly, "--print", "target-libdir"]).quiet().output()?;
    let ending = format!("_rt.{}.a", sanitizer.runtime);
    let libraries = Path::new(libraries.trim());
    let listed = fs::read_dir(libraries).while_doing(format!("list {}", libraries.display()))?;
    let found =
        listed.flatten().map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with(&ending));
    let found = found.ok_or_else(|| Failure::new(format!("{} has no {ending}", libraries.display())))?;
    let folder = root().join(FOLDER).join(sanitizer.name).join("runtime");
    fs::create_dir_all(&folder).while_doing(format!("make {}", folder.display()))?;
    let copy = folder.join(format!("lib{}.a", sanitizer.runtime));
    fs::copy(&found, &copy).while_doing(format!("copy {} to {}", found.display(), copy.display()))?;
    Ok(folder)
}
