//! `rtl-mutants`: faults that are put into a copy of the RTL, one at a time, each of which a proof or the bench must see.
//!
//! A check that stays green on a fault checks nothing. The faults, and who is expected to see them, are rows of
//! `nic/formal/mutants.toml`; what is printed is which check killed which. The RTL itself is never written to.

mod checks;
mod list;
mod operators;
pub mod random;
mod text;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use list::{BENCH, Bench, LIST, Mutant, Mutants};

use super::formal::{result, sby};
use super::{Tools, head, sources, work_folder, workers};
use crate::failure::{Context, Failure, Outcome, none_found};
use crate::lanes::Effort;
use crate::run::{Program, root};

/// What a proof reads; the bench reads the whole workspace.
const PROVED: [&str; 3] = ["nic/rtl", "nic/formal", "spec/generated/sv"];
/// Seconds after which a proof is given up.
const PATIENCE: &str = "900";
/// Lines that the bench's adversary writes: a fault that needs more is one for the long run of the bench itself.
const LINES: &str = "100000";
/// Lines of what a tool said that are shown.
const SHOWN: usize = 8;

/// What became of one.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// By this check, which said this.
    Killed(String, String),
    Survived,
}

/// Runs the lane: five faults in CI, all of them in the long lane.
pub fn run(effort: Effort) -> Outcome {
    let list = list::read()?;
    let tools = Tools::install()?;
    let work = work_folder("rtl-mutants")?;
    let chosen: Vec<&Mutant> =
        list.mutant.iter().filter(|mutant| effort == Effort::Long || mutant.quick).collect();
    if effort == Effort::Long {
        sane(&tools, &work, &list)?;
    }
    // The bench uses every core by itself, and one copy, so that little of it is built anew.
    let bench = Mutex::new(());
    let fates = workers::each(&chosen, |mutant| {
        let start = Instant::now();
        fate(&tools, &work, &list.bench, mutant, &bench).map(|fate| (fate, start.elapsed()))
    });
    let fates: Vec<(Fate, Duration)> = fates.into_iter().collect::<Outcome<_>>()?;
    println!("  {:<28} {:>8}  killed by", "mutant", "seconds");
    for (mutant, (fate, took)) in chosen.iter().zip(&fates) {
        println!("  {:<28} {:>8.1}  {}", mutant.name, took.as_secs_f64(), fate.shown());
    }
    let alive = chosen.iter().zip(&fates).filter(|(_, (fate, _))| *fate == Fate::Survived);
    none_found("not seen by any check", alive.map(|(mutant, _)| mutant.survived()).collect())?;
    println!("  {} killed", chosen.len());
    Ok(())
}

/// Every check that is named passes on the RTL as it is: otherwise it would kill anything.
fn sane(tools: &Tools, work: &str, list: &Mutants) -> Outcome {
    let mut checks: Vec<&str> =
        list.mutant.iter().flat_map(|mutant| &mutant.checks).map(String::as_str).collect();
    checks.sort_unstable();
    checks.dedup();
    let copy = format!("{work}/unchanged");
    copy_of(&PROVED, &copy)?;
    let proofs: Vec<&str> = checks.iter().copied().filter(|check| *check != BENCH).collect();
    let answers = workers::each(&proofs, |check| prove(tools, &copy, check).map(|answer| (*check, answer)));
    let mut findings = Vec::new();
    for answer in answers {
        let (check, answer) = answer?;
        if answer != "PASS" {
            findings.push(format!("{check}: {answer}"));
        }
    }
    if checks.contains(&BENCH)
        && let Some(said) = bench(tools, &whole(work)?, &list.bench)?
    {
        findings.push(format!("{BENCH}: {said}"));
    }
    none_found("fails on the RTL as it is", findings)
}

/// Tries one check after the other until one sees the fault.
fn fate(tools: &Tools, work: &str, command: &Bench, mutant: &Mutant, one: &Mutex<()>) -> Outcome<Fate> {
    let copy = format!("{work}/{}", mutant.name);
    copy_of(&PROVED, &copy)?;
    mutant.apply(&root().join(&copy))?;
    for check in &mutant.checks {
        let said = if check == BENCH {
            let _alone = one.lock().expect("nobody panics with the bench");
            let copy = whole(work)?;
            mutant.apply(&root().join(&copy))?;
            bench(tools, &copy, command)?
        } else {
            match prove(tools, &copy, check)?.as_str() {
                "PASS" => None,
                seen @ ("FAIL" | "UNKNOWN") => Some(seen.to_owned()),
                other => return Err(Failure::new(format!("{}: {check} ended with {other}", mutant.name))),
            }
        };
        if let Some(said) = said {
            return Ok(Fate::Killed(check.clone(), said));
        }
    }
    Ok(Fate::Survived)
}

/// How a proof of the copy ends: `PASS`, `FAIL`, or `UNKNOWN` where an invariant does not hold any more.
fn prove(tools: &Tools, copy: &str, check: &str) -> Outcome<String> {
    let (stem, task) = check.split_once(' ').unwrap_or((check, ""));
    let run = sby(tools, PATIENCE).current_dir(&root().join(copy));
    let run = run.args(["-f", "-d", &format!("proof_{stem}_{task}"), &format!("nic/formal/{stem}.sby")]);
    let run = if task.is_empty() { run } else { run.arg(task) };
    let log = run.output().unwrap_or_else(|cause| cause.to_string());
    Ok(result(&log).to_owned())
}

/// What the bench said when it failed on the copy; nothing when it passed.
fn bench(tools: &Tools, copy: &str, command: &Bench) -> Outcome<Option<String>> {
    let program = |words: &[String]| {
        let (name, args) =
            words.split_first().ok_or_else(|| Failure::new(format!("{LIST}: an empty command")))?;
        let program = if name == "cargo" { Program::cargo() } else { Program::new(name) };
        let folder = tools.bin.parent().unwrap_or(&tools.bin);
        let program = program.quiet().env("BEELINE_RTL_TOOLS", folder).env("BEELINE_RTL_LINES", LINES);
        Ok::<_, Failure>(program.args(args).current_dir(&root().join(copy)))
    };
    program(&command.build)?.output()?;
    let said = program(&command.run)?.output().err();
    Ok(said.map(|cause| head(&failed_tests(&cause.to_string()), SHOWN)))
}

/// The tests that failed, by their names; what was said if there are none.
fn failed_tests(said: &str) -> String {
    let names: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED")).collect();
    if names.is_empty() { said.to_owned() } else { names.join(", ") }
}

/// A copy of the whole workspace with the RTL as it is, the same folder each time.
fn whole(work: &str) -> Outcome<String> {
    let copy = format!("{work}/whole");
    let entries = fs::read_dir(root()).while_doing("look into the workspace")?;
    let names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name != "target" && name != ".git")
        .collect();
    copy_of(&names, &copy)?;
    // What was built last may have been built from a fault; this makes the RTL newer than that.
    let touched = root().join(&copy).join(sources::LIST);
    let text = fs::read(&touched).while_doing(format!("read {}", touched.display()))?;
    fs::write(&touched, text).while_doing(format!("write {}", touched.display()))?;
    Ok(copy)
}

/// Copies files and folders of the workspace; times stay, so that what did not change is not built anew.
fn copy_of(paths: &[impl AsRef<str>], copy: &str) -> Outcome {
    for path in paths.iter().map(AsRef::as_ref) {
        let to = root().join(copy).join(path);
        let folder = to.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).while_doing(format!("make {}", folder.display()))?;
        Program::new("cp").quiet().args(["-a", "--no-target-directory", path]).arg(&to).run()?;
    }
    Ok(())
}

impl Fate {
    fn shown(&self) -> String {
        match self {
            Fate::Killed(check, said) => format!("{check}: {said}"),
            Fate::Survived => "nobody".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(failed_tests("x\ntest a::b ... FAILED\ntest c ... ok\n"), "a::b");
        assert_eq!(failed_tests("error: no"), "error: no");
        let killed = Fate::Killed("commit prove".into(), "FAIL".into());
        assert_eq!(
            (killed.shown().as_str(), Fate::Survived.shown().as_str()),
            ("commit prove: FAIL", "nobody")
        );
    }
}
