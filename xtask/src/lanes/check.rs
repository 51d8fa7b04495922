//! `cargo xtask check`: what a developer runs before each commit. The cheap lanes, clippy, and the unit tests of the crates
//! that changed since a revision.

use std::collections::BTreeSet;

use super::report::Report;
use super::{cargo, pages};
use crate::failure::Outcome;
use crate::run::Program;
use crate::source::{self, SourceFile};
use crate::{generate, house};

/// A lane of `check`.
type Lane<'a> = (&'static str, &'a dyn Fn() -> Outcome);

/// Runs the lanes; `since` is the revision that files are compared with.
pub fn run(since: &str) -> Outcome {
    let packages = changed_packages(&changed_files(since)?, &source::files(&["toml"])?);
    let tests = || unit_tests(&packages);
    let lanes: [Lane<'_>; 6] = [
        ("fmt", &cargo::fmt),
        ("house", &house::run),
        ("tour", &pages::tour),
        ("gen --check", &|| generate::run(true)),
        ("clippy", &cargo::clippy),
        ("test", &tests),
    ];
    let mut report = Report::default();
    for (name, lane) in lanes {
        println!("\n== {name}");
        report.time(name, lane);
    }
    print!("{report}");
    report.outcome()
}

/// Files that differ from `since`, and files that git does not know yet.
fn changed_files(since: &str) -> Outcome<Vec<String>> {
    let differ = Program::new("git").quiet().args(["diff", "--name-only", since, "--"]).output()?;
    let new = Program::new("git").quiet().args(["ls-files", "--others", "--exclude-standard"]).output()?;
    Ok(differ.lines().chain(new.lines()).map(str::to_owned).collect())
}

/// Packages of the workspace with a changed file: that of the deepest folder with a manifest.
fn changed_packages(changed: &[String], manifests: &[SourceFile]) -> BTreeSet<String> {
    let crates: Vec<(&str, &str)> = manifests
        .iter()
        .filter_map(|file| Some((file.path.strip_suffix("Cargo.toml")?, source::package_name(&file.text)?)))
        .filter(|(folder, _)| !folder.is_empty())
        .collect();
    let owner = |path: &String| {
        let around = crates.iter().filter(|(folder, _)| path.starts_with(folder));
        around.max_by_key(|(folder, _)| folder.len()).map(|(_, name)| (*name).to_owned())
    };
    let is_ours = |name: &String| !cargo::OTHER_PACKAGES.contains(&name.as_str());
    changed.iter().filter_map(owner).filter(is_ours).collect()
}

/// Unit tests of libraries and programs; integration tests are for `test`.
fn unit_tests(packages: &BTreeSet<String>) -> Outcome {
    if packages.is_empty() {
        println!("  no crate changed");
        return Ok(());
    }
    let cargo = Program::cargo().args(["test", "--lib", "--bins", "--no-fail-fast"]);
    packages.iter().fold(cargo, |cargo, package| cargo.args(["--package", package])).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_belongs_to_deepest_crate() {
        let manifest =
            |path: &str, name: &str| SourceFile::new(path, format!("[package]\nname = \"{name}\"\n"));
        let manifests = [
            SourceFile::new("Cargo.toml", "[workspace]\n"),
            manifest("nic/rtl/Cargo.toml", "beeline-nic-rtl"),
            manifest("nic/rtl/sys/Cargo.toml", "beeline-nic-rtl-sys"),
            manifest("fuzz/Cargo.toml", "beeline-fuzz"),
        ];
        let changed = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            changed_packages(&paths, &manifests).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(changed(&["nic/rtl/sys/build.rs"]), ["beeline-nic-rtl-sys"]);
        assert_eq!(changed(&["nic/rtl/src/lib.rs", "nic/rtl/mmio/mmio.sv"]), ["beeline-nic-rtl"]);
        assert!(changed(&["README.md", "fuzz/src/lib.rs"]).is_empty());
    }
}
