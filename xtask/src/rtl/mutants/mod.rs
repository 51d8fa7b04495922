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

use list::{Bench, Check, LIST, Mutant, Mutants};

use super::formal::{result, sby};
use super::{Tools, answer, benches, head, sources, work_folder};
use crate::effort::Effort;
use crate::failure::{Context, Failure, Outcome, none_found};
use crate::run::{Program, root};
use crate::workers;

/// What a proof reads; the benches read the whole workspace.
const PROVED: [&str; 3] = ["nic/rtl", "nic/formal", "spec/generated/sv"];
/// Seconds after which a proof is given up.
const TIMEOUT_S: &str = "900";
/// Lines that the compiled bench's adversary writes: a fault that needs more is one for the long run of that bench.
const LINES: &str = "100000";
/// Where the benches in cocotb are built, in the copy.
const TB_WORK: &str = "target/tb";
/// Lines of what a tool said that are shown.
const SHOWN: usize = 8;

/// Opinion of a check on a fault.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// The check does not see the fault.
    Passes,
    /// An invariant is not kept by a step from some state, which need not be one that is ever reached. A proof without
    /// that invariant might do as well, so this kills nothing.
    StepBreaks,
    /// A run from reset, or a test, shows it.
    Fails(String),
}

/// Fate of a fault.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The check that saw the fault, and its message.
    Killed(String, String),
    /// No run shows it; this proof's induction step breaks.
    StepOnly(String),
    Survived,
}

/// Runs the lane: the `quick` faults in CI, all of them in the long lane.
pub fn run(effort: Effort) -> Outcome {
    let list = list::read()?;
    let tools = Tools::install()?;
    let work = work_folder("rtl-mutants")?;
    let chosen: Vec<&Mutant> =
        list.mutant.iter().filter(|mutant| effort == Effort::Long || mutant.quick).collect();
    if effort == Effort::Long {
        sane(&tools, &work, &list)?;
    }
    // A bench uses every core by itself, and one copy, so that little of it is built anew.
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
    let findings = chosen.iter().zip(&fates).filter_map(|(mutant, (fate, _))| fate.finding(mutant));
    none_found("not seen as the list says", findings.collect())?;
    let killed = fates.iter().filter(|(fate, _)| matches!(fate, Fate::Killed(..))).count();
    println!("  {killed} killed, {} by an induction step alone", fates.len() - killed);
    Ok(())
}

/// Every check that is named passes on the RTL as it is: otherwise it would kill anything.
fn sane(tools: &Tools, work: &str, list: &Mutants) -> Outcome {
    let mut checks: Vec<&Check> = list.mutant.iter().flat_map(|mutant| &mutant.checks).collect();
    checks.sort_unstable();
    checks.dedup();
    let (proofs, benches): (Vec<&Check>, Vec<&Check>) =
        checks.into_iter().partition(|check| matches!(check, Check::Proof { .. }));
    let copy = format!("{work}/unchanged");
    copy_of(&PROVED, &copy)?;
    let mut answers =
        workers::each(&proofs, |check| ask(tools, &copy, &list.bench, check).map(|answer| (*check, answer)));
    if !benches.is_empty() {
        let copy = whole(work)?;
        answers.extend(
            benches.iter().map(|check| ask(tools, &copy, &list.bench, check).map(|answer| (*check, answer))),
        );
    }
    let mut findings = Vec::new();
    for answer in answers {
        match answer? {
            (_, Answer::Passes) => {}
            (check, Answer::StepBreaks) => findings.push(format!("{check}: UNKNOWN")),
            (check, Answer::Fails(said)) => findings.push(format!("{check}: {said}")),
        }
    }
    none_found("fails on the RTL as it is", findings)
}

/// Tries one check after the other until one kills the fault.
fn fate(tools: &Tools, work: &str, command: &Bench, mutant: &Mutant, one: &Mutex<()>) -> Outcome<Fate> {
    let copy = format!("{work}/{}", mutant.name);
    copy_of(&PROVED, &copy)?;
    mutant.apply(&root().join(&copy))?;
    first_kill(&mutant.checks, |check| {
        if matches!(check, Check::Proof { .. }) {
            return ask(tools, &copy, command, check);
        }
        let _alone = one.lock().expect("nobody panics with a bench");
        let copy = whole(work)?;
        mutant.apply(&root().join(&copy))?;
        ask(tools, &copy, command, check)
    })
}

/// What becomes of a fault of which `ask` tells what each check says.
fn first_kill(checks: &[Check], ask: impl Fn(&Check) -> Outcome<Answer>) -> Outcome<Fate> {
    let mut fate = Fate::Survived;
    for check in checks {
        match ask(check)? {
            Answer::Passes => {}
            Answer::StepBreaks => fate = Fate::StepOnly(check.to_string()),
            Answer::Fails(said) => return Ok(Fate::Killed(check.to_string(), said)),
        }
    }
    Ok(fate)
}

/// What a check says of the copy.
fn ask(tools: &Tools, copy: &str, command: &Bench, check: &Check) -> Outcome<Answer> {
    let failed = |said: Option<String>| said.map_or(Answer::Passes, Answer::Fails);
    match check {
        Check::Bench => bench(tools, copy, command).map(failed),
        Check::Tb { folder, build } => tb(tools, copy, folder, build).map(failed),
        Check::Proof { .. } => match prove(tools, copy, &check.to_string())?.as_str() {
            "PASS" => Ok(Answer::Passes),
            "UNKNOWN" => Ok(Answer::StepBreaks),
            "FAIL" => Ok(Answer::Fails("FAIL".to_owned())),
            other => Err(Failure::new(format!("{copy}: {check} ended with {other}"))),
        },
    }
}

/// How a proof of the copy ends: `PASS`, `FAIL`, or `UNKNOWN` where an invariant does not hold any more.
fn prove(tools: &Tools, copy: &str, check: &str) -> Outcome<String> {
    let (stem, task) = check.split_once(' ').unwrap_or((check, ""));
    let run = sby(tools, TIMEOUT_S).current_dir(&root().join(copy));
    let run = run.args(["-f", "-d", &format!("proof_{stem}_{task}"), &format!("nic/formal/{stem}.sby")]);
    let run = if task.is_empty() { run } else { run.arg(task) };
    let log = run.output().unwrap_or_else(|cause| cause.to_string());
    Ok(result(&log).to_owned())
}

/// What a build of a bench in cocotb said when it failed on the copy; nothing when it passed. That the copy does not
/// build is no answer.
fn tb(tools: &Tools, copy: &str, folder: &str, build: &str) -> Outcome<Option<String>> {
    let program = || benches::program(tools, folder, build, TB_WORK).current_dir(&root().join(copy));
    program().arg("--no-run").output()?;
    let said = program().output().err();
    Ok(said.map(|cause| head(&failed_asserts(&answer(&cause)), SHOWN)))
}

/// The lines that say what failed in a bench in cocotb; all that was said if there are none.
fn failed_asserts(said: &str) -> String {
    let is_telling = |line: &&str| line.contains("%Error") || line.contains(" passed, ");
    let lines: Vec<&str> = said.lines().filter(is_telling).map(str::trim).collect();
    lines.last().map_or_else(|| said.to_owned(), |last| (*last).to_owned())
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
            Fate::StepOnly(check) => format!("none; the induction step of {check} breaks"),
            Fate::Survived => "none".to_owned(),
        }
    }

    /// What is wrong with it, by what the list says of the fault.
    fn finding(&self, mutant: &Mutant) -> Option<String> {
        match (self, &mutant.step_only) {
            (Fate::Killed(..), None) | (Fate::StepOnly(_), Some(_)) => None,
            (Fate::Killed(check, _), Some(_)) => {
                Some(format!("{}: {check} kills it, and its `step_only` says that none does", mutant.name))
            }
            (Fate::StepOnly(check), None) => {
                Some(format!("{}; only the induction step of {check} breaks", mutant.survived()))
            }
            (Fate::Survived, _) => Some(mutant.survived()),
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
        let aborted = "INFO a\n%Error: a.sv:5: Verilog $stop\nAborting\n";
        assert_eq!(failed_asserts(aborted), "%Error: a.sv:5: Verilog $stop");
        assert_eq!(failed_asserts("x\nusplus/dma: 9 passed, 2 failed\n"), "usplus/dma: 9 passed, 2 failed");
        assert_eq!(failed_asserts("no compiler"), "no compiler");
    }

    fn checks() -> Vec<Check> {
        ["fifo prove", "fifo bmc", "bench"].map(|text| text.to_owned().try_into().unwrap()).into()
    }

    #[test]
    fn a_step_that_breaks_kills_nothing_and_the_next_check_is_tried() {
        let bmc_fails = |check: &Check| {
            Ok(match check.to_string().as_str() {
                "fifo prove" => Answer::StepBreaks,
                "fifo bmc" => Answer::Fails("FAIL".into()),
                other => panic!("{other} is not asked"),
            })
        };
        assert_eq!(first_kill(&checks(), bmc_fails).unwrap(), Fate::Killed("fifo bmc".into(), "FAIL".into()));
        let only_step = |check: &Check| {
            Ok(if check.to_string() == "fifo prove" { Answer::StepBreaks } else { Answer::Passes })
        };
        assert_eq!(first_kill(&checks(), only_step).unwrap(), Fate::StepOnly("fifo prove".into()));
        assert_eq!(first_kill(&checks(), |_| Ok(Answer::Passes)).unwrap(), Fate::Survived);
        assert!(first_kill(&checks(), |_| Err(Failure::new("TIMEOUT"))).is_err());
    }

    #[test]
    fn a_fate_that_the_list_does_not_tell_of_is_found() {
        let killed = Fate::Killed("fifo prove".into(), "FAIL".into());
        let step = Fate::StepOnly("fifo prove".into());
        let mut mutant = Mutant {
            name: "m".into(),
            file: "a.sv".into(),
            from: "a".into(),
            to: "b".into(),
            breaks: "all".into(),
            checks: checks(),
            quick: false,
            step_only: None,
        };
        assert_eq!(killed.finding(&mutant), None);
        assert!(step.finding(&mutant).unwrap().contains("only the induction step of fifo prove breaks"));
        mutant.step_only = Some("It takes 2^32 cycles.".into());
        assert_eq!(step.finding(&mutant), None);
        assert!(killed.finding(&mutant).unwrap().contains("fifo prove kills it"));
        assert!(Fate::Survived.finding(&mutant).unwrap().contains("m (fifo prove, fifo bmc, bench): all"));
    }
}
