//! `rtl-formal`: every proof of `nic/formal/*.sby`, two at a time. A task whose name begins with `long` waits for the
//! long lane. Anything but PASS fails, and so does a proof that proves nothing.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use super::{Tools, head, work_folder};
use crate::effort::Effort;
use crate::failure::{Context, Failure, Outcome, none_found};
use crate::run::root;
use crate::workers;

const FOLDER: &str = "nic/formal";
/// Seconds after which a proof is given up, short and long.
const TIMEOUT_S: [&str; 2] = ["1200", "14400"];
/// The longest proofs, as [`Task::property`] names them, longest first: one that begins last is waited for alone.
const LONGEST: [&str; 4] =
    ["scheduler prove_4", "reorder_unit outcomes", "owners cover_reset", "owners prove4"];
/// Lines of a failed proof that are shown.
const SHOWN: usize = 12;

/// One task of one file.
#[derive(Debug, Clone)]
struct Task {
    file: String,
    /// Empty where the file has no tasks.
    name: String,
}

/// Result of a task.
#[derive(Debug)]
struct Ending {
    property: String,
    settings: Settings,
    checks: usize,
    result: String,
    took: Duration,
    /// What to show when it is no PASS.
    evidence: String,
}

/// What the file asked for, after sby has chosen the task's lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    engine: String,
    mode: String,
    depth: String,
}

/// Runs the lane.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let work = work_folder("rtl-formal")?;
    let tasks = tasks(&tools, effort)?;
    let endings = workers::each(&tasks, |task| prove(&tools, &work, task, effort));
    let endings: Vec<Ending> = endings.into_iter().collect::<Outcome<_>>()?;
    println!(
        "  {:<28} {:<6} {:<18} {:>5} {:>6} {:>8}  result",
        "property", "mode", "engine", "depth", "checks", "seconds"
    );
    endings.iter().for_each(|ending| println!("  {ending}"));
    none_found("not proved", endings.iter().filter_map(Ending::finding).collect())?;
    println!("  {} passed", endings.len());
    Ok(())
}

/// What there is to prove: the longest, then by file and in the order of each.
fn tasks(tools: &Tools, effort: Effort) -> Outcome<Vec<Task>> {
    let entries = fs::read_dir(root().join(FOLDER)).while_doing(format!("look into {FOLDER}"))?;
    let mut files: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".sby"))
        .map(|name| format!("{FOLDER}/{name}"))
        .collect();
    files.sort();
    let mut tasks = Vec::new();
    for file in files {
        let listed = sby(tools, "60").args(["--dumptasks", &file]).output()?;
        tasks.extend(named(&file, &listed).into_iter().filter(|task| task.runs_in(effort)));
    }
    if tasks.is_empty() {
        return Err(Failure::new(format!("{FOLDER} has no proof: the RTL would go unproved")));
    }
    tasks.sort_by_key(Task::rank);
    Ok(tasks)
}

/// The tasks that sby lists, or the file itself.
fn named(file: &str, listed: &str) -> Vec<Task> {
    let task = |name: &str| Task { file: file.to_owned(), name: name.to_owned() };
    let tasks: Vec<Task> = listed.split_whitespace().map(task).collect();
    if tasks.is_empty() { vec![task("")] } else { tasks }
}

impl Task {
    fn runs_in(&self, effort: Effort) -> bool {
        effort == Effort::Long || !self.name.starts_with("long")
    }

    /// Its place in [`LONGEST`]; all others come after those.
    fn rank(&self) -> usize {
        let property = self.property();
        LONGEST.iter().position(|longest| *longest == property).unwrap_or(LONGEST.len())
    }

    fn property(&self) -> String {
        let stem = self.file.rsplit('/').next().unwrap_or_default().trim_end_matches(".sby");
        format!("{stem} {}", self.name).trim_end().to_owned()
    }
}

/// sby finds Yosys and the solver by PATH; coreutils' timeout ends it and what it started.
pub(super) fn sby(tools: &Tools, seconds: &str) -> crate::run::Program {
    let path = std::env::var("PATH").unwrap_or_default();
    let program =
        crate::run::Program::new("timeout").quiet().env("PATH", format!("{}:{path}", tools.bin.display()));
    program.args([seconds, "nice", "sby"])
}

fn prove(tools: &Tools, work: &str, task: &Task, effort: Effort) -> Outcome<Ending> {
    let folder = format!("{work}/{}", task.property().replace(' ', "_"));
    let timeout_s = if effort == Effort::Short { TIMEOUT_S[0] } else { TIMEOUT_S[1] };
    let start = Instant::now();
    let run = sby(tools, timeout_s).args(["-f", "-d", &folder, &task.file]);
    let run = if task.name.is_empty() { run } else { run.arg(&task.name) };
    // sby's log is its answer; how it exits says no more.
    let log = run.output().unwrap_or_else(|cause| cause.to_string());
    let read = |name: &str| fs::read_to_string(root().join(&folder).join(name)).unwrap_or_default();
    let settings = settings(&read("config.sby"));
    Ok(Ending {
        property: task.property(),
        checks: checks(&read("model/design_prep.il"), &settings.mode),
        settings,
        result: result(&log).to_owned(),
        took: start.elapsed(),
        evidence: evidence(&log),
    })
}

/// `PASS`, `FAIL`, `UNKNOWN`, `ERROR` or `TIMEOUT`, by sby's last line; without one it was ended from outside.
pub(super) fn result(log: &str) -> &str {
    let last = log.lines().rev().find_map(|line| line.split_once("DONE (")).map(|(_, rest)| rest);
    last.and_then(|rest| rest.split([',', ')']).next()).unwrap_or("ENDED")
}

/// Mode, depth and engine as they stand in the file that sby wrote for the task.
fn settings(config: &str) -> Settings {
    let (mut settings, mut section) = (Settings { depth: "20".to_owned(), ..Settings::default() }, "");
    for line in config.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (section, line.split_once(' ')) {
            _ if line.starts_with('[') => section = line,
            ("[options]", Some(("mode", mode))) => settings.mode = mode.trim().to_owned(),
            ("[options]", Some(("depth", depth))) => settings.depth = depth.trim().to_owned(),
            ("[engines]", _) if settings.engine.is_empty() => settings.engine = line.to_owned(),
            _ => {}
        }
    }
    settings
}

/// How many properties the elaborated design has: assertions, or cover statements in that mode.
fn checks(design: &str, mode: &str) -> usize {
    let wanted = if mode == "cover" { "cell $cover" } else { "cell $assert" };
    design.lines().filter(|line| line.trim_start().starts_with(wanted)).count()
}

/// The lines of a log that say what went wrong.
fn evidence(log: &str) -> String {
    const MARKS: [&str; 6] =
        ["Assert failed", "Unreached", "counterexample trace:", "ERROR", "error:", "failed:"];
    let said = log.lines().filter(|line| MARKS.iter().any(|mark| line.contains(mark)));
    head(&said.collect::<Vec<_>>().join("\n"), SHOWN)
}

impl Ending {
    fn finding(&self) -> Option<String> {
        if self.result != "PASS" {
            Some(format!("{}: {}\n    {}", self.property, self.result, self.evidence))
        } else if self.checks == 0 {
            Some(format!("{}: passed, but it has nothing to {}", self.property, self.settings.mode))
        } else {
            None
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { engine, mode, depth } = &self.settings;
        let (seconds, checks) = (self.took.as_secs_f64(), self.checks);
        write!(
            out,
            "{:<28} {mode:<6} {engine:<18} {depth:>5} {checks:>6} {seconds:>8.1}  {}",
            self.property, self.result
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str =
        "# head\n[options]\nmode prove\ndepth 12\n\n[engines]\nsmtbmc yices\nabc pdr\n\n[script]\nprep\n";

    #[test]
    fn settings_are_read_from_the_chosen_task() {
        let expected = Settings { engine: "smtbmc yices".into(), mode: "prove".into(), depth: "12".into() };
        assert_eq!(settings(CONFIG), expected);
        assert_eq!(settings("[options]\nmode bmc\n").depth, "20");
    }

    #[test]
    fn the_log_says_how_it_ended() {
        let log = "SBY 1:00:00 [out] summary: successful proof by k-induction.\nSBY 1:00:00 [out] DONE (PASS, rc=0)\n";
        assert_eq!(result(log), "PASS");
        assert_eq!(result("SBY [out] DONE (UNKNOWN, rc=4)"), "UNKNOWN");
        assert_eq!(result("SBY [out] engine_0: starting process"), "ENDED");
        let failed = "x\nSBY [out] engine_0: Assert failed in top: a.sv:5\nSBY [out] DONE (FAIL, rc=2)";
        assert!(evidence(failed).contains("a.sv:5") && !evidence(failed).contains('x'));
    }

    #[test]
    fn a_proof_of_nothing_is_no_proof() {
        let design = "  cell $assert $1\n  cell $assume $2\n  cell $assert $3\n  cell $cover $4\n";
        assert_eq!((checks(design, "prove"), checks(design, "cover"), checks("", "bmc")), (2, 1, 0));
        let ending = |result: &str, checks| Ending {
            property: "fifo prove".into(),
            settings: settings(CONFIG),
            checks,
            result: result.into(),
            took: Duration::ZERO,
            evidence: "Assert failed".into(),
        };
        assert_eq!(ending("PASS", 2).finding(), None);
        assert!(ending("PASS", 0).finding().unwrap().contains("nothing to prove"));
        assert!(ending("UNKNOWN", 2).finding().unwrap().contains("Assert failed"));
    }

    #[test]
    fn longest_proofs_are_tasks_and_begin_first() {
        for longest in LONGEST {
            let (stem, task) = longest.split_once(' ').unwrap();
            let text = fs::read_to_string(root().join(format!("{FOLDER}/{stem}.sby"))).unwrap();
            assert!(text.lines().any(|line| line.split(' ').next() == Some(task)), "{longest} is gone");
        }
        let mut tasks = named("nic/formal/fifo.sby", "prove\n");
        tasks.extend(named("nic/formal/scheduler.sby", "cover\nprove_4\n"));
        tasks.sort_by_key(Task::rank);
        let order: Vec<_> = tasks.iter().map(Task::property).collect();
        assert_eq!(order, ["scheduler prove_4", "fifo prove", "scheduler cover"]);
    }

    #[test]
    fn long_tasks_wait_for_the_long_lane() {
        let tasks = named("nic/formal/fifo.sby", "prove\nlong_deep\n");
        let short: Vec<_> =
            tasks.iter().filter(|task| task.runs_in(Effort::Short)).map(Task::property).collect();
        assert_eq!(short, ["fifo prove"]);
        assert!(tasks.iter().all(|task| task.runs_in(Effort::Long)));
        assert_eq!(named("nic/formal/fifo.sby", "\n")[0].property(), "fifo");
    }
}
