//! The compiled lane: the NIC's RTL, Verilated, as a device behind the same trait as the behavioural NIC.

use std::fs;

use super::Tools;
use crate::effort::Effort;
use crate::failure::{Context, Outcome};
use crate::lanes::test_programs::{self, Settings};
use crate::run::{Program, root};

/// Lines that the adversary writes in a long run; a short one has the tests' own 10^6.
const LONG_LINES: &str = "100000000";
/// Longest frame of the conformance bodies in a long run, but for the jumbo rig's.
const LONG_FRAME_BYTES: &str = "768";
/// Tells the build script that nothing will be linked, so that clippy does not wait for a simulator to be compiled: what
/// cargo builds for it is apart from what it builds for the tests, to the last object file.
const CHECK_ONLY: &str = "BEELINE_RTL_CHECK_ONLY";
/// The RTL in everything that can have it.
const FEATURES: [&str; 2] = ["--features", "beeline-cli/rtl"];
/// The package whose tests run with the RTL, all of them.
const PACKAGE: &str = "beeline-nic-rtl";
/// Of the others, the test programs of this name: virtual time with the RTL beside the behavioural NIC, and the command line.
const TEST: &str = "rtl";

/// clippy and the tests of `nic/rtl` with its RTL compiled in, and what else runs with it.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let cargo = || Program::cargo().env("BEELINE_RTL_TOOLS", tools.folder());
    // Of the whole workspace, as in `test_programs`: of one package cargo would check what it needs again, with other features.
    let names = test_targets()?;
    let tests_of_them = names.iter().flat_map(|name| ["--test", name]);
    let targets: Vec<&str> = ["--lib", "--example", "port_speed"].into_iter().chain(tests_of_them).collect();
    let clippy = cargo().env(CHECK_ONLY, "1").args(["clippy", "--workspace"]).args(FEATURES).args(&targets);
    clippy.args(["--", "-D", "warnings"]).on_cores().run()?;
    let mut programs = test_programs::build(cargo(), &[&FEATURES[..], &targets].concat())?;
    programs.retain(|program| program.package == PACKAGE || program.target == TEST);
    // What a run has met (places in the span, wraps, shapes of pieces) is to be seen.
    let settings =
        Settings::default().arg("--nocapture").env("BEELINE_RTL_TOOLS", tools.folder().display().to_string());
    let settings = match effort {
        Effort::Short => settings,
        Effort::Long => {
            settings.env("BEELINE_RTL_LINES", LONG_LINES).env("BEELINE_RTL_LONGEST_BYTES", LONG_FRAME_BYTES)
        }
    };
    test_programs::run(programs, &settings)
}

/// The names that cargo gives to the tests of `nic/rtl`, and [`TEST`].
fn test_targets() -> Outcome<Vec<String>> {
    const FOLDER: &str = "nic/rtl/tests";
    let mut names = vec![TEST.to_owned()];
    for entry in fs::read_dir(root().join(FOLDER)).while_doing(format!("look into {FOLDER}"))? {
        let path = entry.while_doing(format!("look into {FOLDER}"))?.path();
        let is_target =
            path.extension().is_some_and(|ending| ending == "rs") || path.join("main.rs").is_file();
        names.extend(path.file_stem().filter(|_| is_target).map(|stem| stem.to_string_lossy().into_owned()));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::test_targets;

    #[test]
    fn test_targets_are_files_and_folders_with_a_main() {
        let names = test_targets().unwrap();
        assert!(
            ["rtl", "compiled", "conformance"].iter().all(|name| names.iter().any(|found| found == name))
        );
    }
}
