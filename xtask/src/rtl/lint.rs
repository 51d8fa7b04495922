//! `rtl-lint`: every module of `nic/rtl/sources.f`, alone and in the corners of `nic/rtl/lint.toml`, under two front
//! ends and Yosys' `check`; parameters that must be refused; Verible's rules on every file.
//!
//! Verible's formatter is left out: it undoes aligned ports and declarations and breaks `unique case ({a, b})` over
//! four lines, with no option against either.

use std::fs;

use serde::Deserialize;

use super::parameters::{Parameters, label};
use super::{Tools, answer, head, sources};
use crate::effort::Effort;
use crate::failure::{Context, Failure, Outcome, none_found};
use crate::generate;
use crate::run::root;
use crate::source;
use crate::workers;

const LIST: &str = "nic/rtl/lint.toml";
const WAIVERS: &str = "nic/tools/verilator.vlt";
const VERIBLE_RULES: &str = "nic/tools/verible.rules";
/// `unique case` with a default is the house's style; a cast that one set of parameters does not need, another does; a
/// memory may begin as zeros.
const SLANG_WAIVERS: [&str; 3] =
    ["-Wno-case-redundant-default", "-Wno-useless-cast", "--allow-dup-initial-drivers"];
/// Lines of a tool's message that are shown.
const SHOWN: usize = 24;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    module: Vec<Module>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Module {
    name: String,
    #[serde(default)]
    corners: Vec<Parameters>,
    #[serde(default)]
    refused: Vec<Refusal>,
}

/// Parameters that must not elaborate, and a part of the sentence that says so.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    parameters: Parameters,
    says: String,
}

/// One elaboration.
#[derive(Debug, Clone)]
struct Job {
    module: String,
    parameters: Parameters,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Clean in both front ends and in Yosys.
    Alone,
    /// Clean in both front ends.
    Corner,
    /// Both front ends refuse it with this sentence.
    Refused(String),
}

/// Runs the lane. Of the corners and the refusals a short run leaves Verilator out: it takes 1 to 6 seconds for what
/// takes slang a quarter of one, and slang tells the same widths and the same sentences. Every module alone is clean under both,
/// and the benches elaborate corners under Verilator.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let paths = sources::listed()?;
    let files = source::files(&["sv"])?;
    let text = fs::read_to_string(root().join(LIST)).while_doing(format!("read {LIST}"))?;
    let list: List = toml::from_str(&text).while_doing(format!("understand {LIST}"))?;
    let jobs = jobs(&sources::modules(&paths), list.module)?;

    let ours: Vec<&str> = files
        .iter()
        .map(|file| &*file.path)
        .filter(|path| path.starts_with("nic/") && !path.starts_with("nic/tb/"))
        .collect();
    let rules = format!("--rules_config={VERIBLE_RULES}");
    let mut findings = sources::findings(&paths, &files);
    if let Err(cause) = tools.program("verible-verilog-lint").arg(rules).args(&ours).output() {
        findings.extend(said(&cause).lines().map(str::to_owned));
    }
    findings.extend(grouped(workers::each(&jobs, |job| check(&tools, job, effort)).into_iter().flatten()));
    none_found("the SystemVerilog is not clean", findings)?;
    let count = |wanted: fn(&Kind) -> bool| jobs.iter().filter(|job| wanted(&job.kind)).count();
    println!(
        "  {} files under Verible; {} modules under Verilator, slang and Yosys; {} corners and {} refusals under {}: {} passed",
        ours.len(),
        count(|kind| matches!(kind, Kind::Alone)),
        count(|kind| matches!(kind, Kind::Corner)),
        count(|kind| matches!(kind, Kind::Refused(_))),
        if effort == Effort::Long { "Verilator and slang" } else { "slang" },
        ours.len() + jobs.len()
    );
    Ok(())
}

/// Every module alone, then what the list adds.
fn jobs(modules: &[String], list: Vec<Module>) -> Outcome<Vec<Job>> {
    let alone =
        |name: &String| Job { module: name.clone(), parameters: Parameters::default(), kind: Kind::Alone };
    let mut jobs: Vec<Job> = modules.iter().map(alone).collect();
    for Module { name, corners, refused } in list {
        if !modules.contains(&name) {
            return Err(Failure::new(format!("{LIST} names {name}, which {} does not have", sources::LIST)));
        }
        let job = |parameters, kind| Job { module: name.clone(), parameters, kind };
        jobs.extend(corners.into_iter().map(|parameters| job(parameters, Kind::Corner)));
        jobs.extend(refused.into_iter().map(|refusal| job(refusal.parameters, Kind::Refused(refusal.says))));
    }
    Ok(jobs)
}

/// What is wrong, and with which module. A file's fault is often found once for each module that is elaborated.
type Finding = (String, String);

/// Each fault once, under all that have it.
fn grouped(findings: impl Iterator<Item = Finding>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (what, fault) in findings {
        match groups.iter_mut().find(|(known, _)| *known == fault) {
            Some((_, whats)) => whats.push(what),
            None => groups.push((fault, vec![what])),
        }
    }
    groups.into_iter().map(|(fault, whats)| format!("{}: {fault}", whats.join(", "))).collect()
}

/// What a tool said, without the command and without what names the module that was elaborated.
fn said(cause: &Failure) -> String {
    let (answer, mut kept, mut skip_next) = (answer(cause), Vec::new(), false);
    for line in answer.lines() {
        let is_note = line.contains("... note: In instance") || line.contains("... For warning description");
        let is_note = is_note || line.contains("... Use \"/*") || line.starts_with("Build failed");
        if !is_note && !skip_next && !line.starts_with("Top level design units:") {
            kept.push(line);
        }
        // slang names the module on the line below.
        skip_next = line.starts_with("Top level design units:");
    }
    kept.join("\n")
}

fn check(tools: &Tools, job: &Job, effort: Effort) -> Vec<Finding> {
    let mut runs = vec![("slang", slang(tools, job))];
    let is_alone = matches!(job.kind, Kind::Alone);
    if is_alone || effort == Effort::Long {
        runs.push(("Verilator", verilator(tools, job)));
    }
    if is_alone {
        runs.push(("Yosys", yosys(tools, job)));
    }
    let what = label(&job.module, &job.parameters);
    let fault = |(tool, outcome)| Some((what.clone(), fault(tool, &job.kind, outcome)?));
    runs.into_iter().filter_map(fault).collect()
}

/// What is wrong with how a tool ended, if anything is.
fn fault(tool: &str, kind: &Kind, outcome: Outcome<String>) -> Option<String> {
    match (kind, outcome) {
        (Kind::Refused(says), Ok(_)) => Some(format!("{tool} takes it, and should say \"{says}\"")),
        (Kind::Refused(says), Err(cause)) if !cause.to_string().contains(&**says) => {
            Some(format!("{tool} does not say \"{says}\" but {}", head(&said(&cause), SHOWN)))
        }
        (Kind::Refused(_), Err(_)) | (_, Ok(_)) => None,
        (_, Err(cause)) => Some(format!("{tool}: {}", head(&said(&cause), SHOWN))),
    }
}

fn verilator(tools: &Tools, job: &Job) -> Outcome<String> {
    let lint =
        tools.program("verilator").args(["--lint-only", "-Wall", "--quiet", WAIVERS, "-f", sources::LIST]);
    let settings = job.parameters.settings().into_iter().map(|setting| format!("-G{setting}"));
    lint.args(["--top-module", &job.module]).args(settings).output()
}

fn slang(tools: &Tools, job: &Job) -> Outcome<String> {
    let slang =
        tools.program("python").args(["-c", generate::SLANG, "-Wextra", "-Werror"]).args(SLANG_WAIVERS);
    let settings = job.parameters.settings().into_iter().flat_map(|setting| ["-G".to_owned(), setting]);
    slang.args(["-f", sources::LIST, "--top", &job.module]).args(settings).output()
}

/// As synthesis sees it: no loop, no wire without a driver or with two.
fn yosys(tools: &Tools, job: &Job) -> Outcome<String> {
    let (list, module) = (sources::LIST, &job.module);
    tools.yosys(&format!(
        "read_slang -j 1 --allow-dup-initial-drivers -f {list} --top {module}; proc; opt_clean; check -assert"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Module> {
        toml::from_str::<List>(text).unwrap().module
    }

    #[test]
    fn every_module_is_checked_and_the_list_adds_to_it() {
        let rows = "[[module]]\nname = \"a\"\ncorners = [{ W = 1 }]\nrefused = [{ parameters = { W = 0 }, says = \"no\" }]\n";
        let modules = ["a", "b"].map(str::to_owned);
        assert_eq!(jobs(&modules, list(rows)).unwrap().len(), 4);
        let unknown = jobs(&modules[1..], list(rows)).unwrap_err().to_string();
        assert!(unknown.contains("names a"), "{unknown}");
    }

    #[test]
    fn a_refusal_must_say_why() {
        let kind = Kind::Refused("must be even".to_owned());
        let says = |text: &str| fault("slang", &kind, Err(Failure::new(text)));
        assert_eq!(says("error: W must be even"), None);
        assert!(says("error: no such file").unwrap().contains("does not say"));
        assert!(fault("slang", &kind, Ok(String::new())).unwrap().contains("takes it"));
        assert!(fault("slang", &Kind::Corner, Err(Failure::new("width"))).unwrap().contains("width"));
        assert_eq!(fault("slang", &Kind::Corner, Ok(String::new())), None);
    }

    #[test]
    fn a_fault_of_many_modules_is_told_once() {
        let message = "`slang --top a` failed: exit status: 1\nTop level design units:\n    a\nx.sv:1: width\nBuild failed: 1";
        assert_eq!(said(&Failure::new(message)), "x.sv:1: width");
        let findings = [("a", "width"), ("b", "loop"), ("c", "width")];
        let findings = findings.map(|(what, fault)| (what.to_owned(), fault.to_owned()));
        assert_eq!(grouped(findings.into_iter()), ["a, c: width", "b: loop"]);
    }
}
