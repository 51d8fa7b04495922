//! Lanes that run the code under a checker: loom, Miri, libFuzzer. Each has a target folder of its own, because its
//! flags would make the others rebuild.

use std::fs;

use crate::effort::Effort;
use crate::failure::{Context, Failure, Outcome};
use crate::install;
use crate::run::{Program, root};
use crate::source::{self, SourceFile};
use crate::workers;

/// Crates whose unit tests run under Miri: the one with unsafe code, and those that read what attackers write. Miri runs on
/// one core, so the tests of a crate that has many are two runs, by a filter and without what it selects.
const MIRI: [(&str, &[&[&str]]); 4] = [
    ("beeline-window", &[&["receiver"], &["--skip", "receiver"]]),
    ("beeline-mmio", &[&[]]),
    ("beeline-ffi", &[&[]]),
    ("beeline-spec", &[&[]]),
];

/// Loom on every crate that has models: in `tests/loom*.rs`, or in modules called `loom…` of its own code. Optimised,
/// because loom runs each model thousands of times.
pub fn loom(effort: Effort) -> Outcome {
    let models = loom_models(&source::files(&["toml", "rs"])?);
    if models.is_empty() {
        return Err(Failure::new("no crate has a loom model: the lock-free parts would go unchecked"));
    }
    // A model runs on one core. A second cargo waits while the first builds, and then both run.
    let runs = workers::each(&models, |(package, selection)| run_models(effort, package, selection));
    for ((package, selection), output) in models.iter().zip(runs) {
        let output = output?;
        print!("{output}");
        if passed(&output) == 0 {
            return Err(Failure::new(format!("{package} ran no loom model with {}", selection.join(" "))));
        }
    }
    Ok(())
}

/// What the models of a selection wrote.
fn run_models(effort: Effort, package: &str, selection: &[String]) -> Outcome<String> {
    let cargo = Program::cargo()
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", "target/loom")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    let cargo = match effort {
        // Two preemptions find almost every ordering bug; without a bound loom is exhaustive, and models that would not end
        // have one of their own.
        Effort::Short => cargo.env("LOOM_MAX_PREEMPTIONS", "2").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
        Effort::Long => cargo,
    };
    cargo.args(["test", "--release", "--package", package]).args(selection).output()
}

/// Where the models are: package, and the arguments of `cargo test` that select them.
fn loom_models(files: &[SourceFile]) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for manifest in
        files.iter().filter(|file| file.path.ends_with("Cargo.toml") && file.text.contains("cfg(loom)"))
    {
        let Some(folder) = manifest.path.strip_suffix("Cargo.toml").filter(|folder| !folder.is_empty())
        else {
            continue;
        };
        let name = manifest.text.lines().find_map(|line| line.strip_prefix("name = "));
        let package = name.unwrap_or_default().trim_matches('"').to_owned();
        let own: Vec<&SourceFile> = files.iter().filter(|file| file.path.starts_with(folder)).collect();
        if own
            .iter()
            .any(|file| file.path[folder.len()..].starts_with("src/") && file.text.contains("mod loom"))
        {
            found.push((package.clone(), vec!["--lib".to_owned(), "loom".to_owned()]));
        }
        for file in own {
            let test =
                file.path[folder.len()..].strip_prefix("tests/").and_then(|name| name.strip_suffix(".rs"));
            if let Some(test) = test.filter(|test| test.starts_with("loom") && !test.contains('/')) {
                found.push((package.clone(), vec!["--test".to_owned(), test.to_owned()]));
            }
        }
    }
    found
}

/// Tests that passed, by what the test harness wrote.
fn passed(output: &str) -> u32 {
    let results = output.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.filter_map(|rest| rest.split(' ').next()?.parse::<u32>().ok()).sum()
}

/// Miri on the unit tests. Isolation is off, because tests make memfds where Miri can.
pub fn miri(effort: Effort) -> Outcome {
    let nightly =
        install::nightly(&["miri", "rust-src"], "Miri interprets the tests and finds undefined behaviour")?;
    let cases = if effort == Effort::Short { "8" } else { "64" };
    let parts: Vec<(&str, &[&str])> =
        MIRI.iter().flat_map(|(package, parts)| parts.iter().map(|part| (*package, *part))).collect();
    let runs = workers::each(&parts, |(package, filter)| {
        Program::cargo()
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            // Of each panic that a test expects: ten seconds go by until Miri has looked up the names.
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_CASES", cases)
            .args([nightly, "miri", "test", "--lib", "--package", package, "--"])
            .args(*filter)
            .output()
    });
    for ((package, filter), output) in parts.iter().zip(runs) {
        let output = output?;
        print!("{output}");
        if passed(&output) == 0 {
            return Err(Failure::new(format!("{package} ran no test under Miri with {}", filter.join(" "))));
        }
    }
    Ok(())
}

/// What cargo-fuzz builds with (0.13, `--sanitizer none`): coverage counters and comparisons for libFuzzer, debug assertions.
/// Taken over because installing cargo-fuzz takes longer than fuzzing for a short run. Without a sanitizer the stable compiler has
/// all of them.
const FUZZ_FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Cdebug-assertions",
];

/// Every target in `fuzz/` for `seconds`. No sanitizer: the code under test forbids unsafe but for mapped memory, which none
/// of them watches (fuzz/README.md).
pub fn fuzz(seconds: u32, effort: Effort) -> Outcome {
    const MANIFEST: &str = "fuzz/Cargo.toml";
    let manifest = fs::read_to_string(root().join(MANIFEST))
        .while_doing(format!("read {MANIFEST}, without which what attackers write would go unchecked"))?;
    let targets = fuzz_targets(&manifest);
    if targets.is_empty() {
        return Err(Failure::new(format!(
            "{MANIFEST} names no target: what attackers write would go unchecked"
        )));
    }
    install::program("c++", &["g++"], "libFuzzer is C++")?;
    // Named, so that build scripts and macros, which run on the host, are built without these flags.
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    // In a short run an optimiser takes longer than the targets gain by it, and lines for debuggers are half a gigabyte.
    let (level, lto, debug) = match effort {
        Effort::Short => ("0", "off", "none"),
        Effort::Long => ("3", "false", "line-tables-only"),
    };
    let build = Program::cargo()
        .env("RUSTFLAGS", FUZZ_FLAGS.join(" "))
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level)
        .env("CARGO_PROFILE_RELEASE_LTO", lto)
        .env("CARGO_PROFILE_RELEASE_DEBUG", debug)
        .env("CARGO_TARGET_DIR", "fuzz/target")
        .args(["build", "--release", "--bins", "--target", &host, "--manifest-path", MANIFEST]);
    build.on_cores().run()?;
    let folder = root().join("fuzz");
    // A target runs on one core.
    let ended = workers::each(&targets, |target| {
        let time = format!("-max_total_time={seconds}");
        // What a run finds goes to the first folder, which must be there; the others are only read.
        let (corpus, seeds) = (folder.join("corpus").join(target), folder.join("seeds").join(target));
        let artifacts = folder.join("artifacts").join(target);
        for made in [&corpus, &artifacts] {
            fs::create_dir_all(made).while_doing(format!("make {}", made.display()))?;
        }
        Program::new(folder.join("target").join(&host).join("release").join(target))
            .args(["-timeout=10", "-verbosity=0", &time])
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args([corpus, seeds].iter().filter(|folder| folder.is_dir()))
            .output()
            .map(drop)
    });
    ended.into_iter().collect()
}

/// Programs that a manifest names.
fn fuzz_targets(manifest: &str) -> Vec<&str> {
    let bins = manifest.split("[[bin]]").skip(1);
    bins.filter_map(|bin| Some(bin.split_once("name = \"")?.1.split_once('"')?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_where_they_may_stand() {
        let files = [
            SourceFile::new("Cargo.toml", "check-cfg = [\"cfg(loom)\"]"),
            SourceFile::new("host/a/Cargo.toml", "name = \"a\"\n[target.'cfg(loom)'.dependencies]"),
            SourceFile::new("host/a/src/sleep.rs", "#[cfg(all(test, loom))]\nmod loom_models;"),
            SourceFile::new("host/a/tests/loom_ring.rs", ""),
            SourceFile::new("host/a/tests/other.rs", ""),
            SourceFile::new("host/b/Cargo.toml", "name = \"b\""),
            SourceFile::new("host/b/tests/loom.rs", ""),
        ];
        let text = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        let expected =
            [("a".to_owned(), text(["--lib", "loom"])), ("a".to_owned(), text(["--test", "loom_ring"]))];
        assert_eq!(loom_models(&files), expected);
        assert_eq!(loom_models(&files[5..]), []);
    }

    #[test]
    fn fuzz_targets_are_the_programs_of_the_manifest() {
        let manifest = "[package]\nname = \"fuzz\"\n[[bin]]\nname = \"pcap\"\npath = \"a\"\n\n[[bin]]\nname = \"vectors\"\n";
        assert_eq!(fuzz_targets(manifest), ["pcap", "vectors"]);
        assert!(fuzz_targets("[package]\nname = \"fuzz\"\n").is_empty());
    }

    #[test]
    fn passed_tests_are_counted() {
        let output = "test result: ok. 3 passed; 0 failed\n\ntest result: ok. 0 passed; 0 failed\n";
        assert_eq!((passed(output), passed("running 0 tests")), (3, 0));
    }
}
