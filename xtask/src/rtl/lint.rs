//! `rtl-lint`: every module of `nic/rtl/sources.f`, and the corners of `nic/rtl/lint.toml`, under two front ends and
//! Yosys' `check`; parameters that must be refused; Verible's rules on every file.
//!
//! A long run elaborates each module alone. A short run elaborates all of them together, once for each tool: most of the
//! time goes into submodules, which are the same in module after module.
//!
//! Verible's formatter is left out: it undoes aligned ports and declarations and breaks `unique case ({a, b})` over
//! four lines, with no option against either.

use std::fs;

use serde::Deserialize;

use super::parameters::{Parameters, label};
use super::{Tools, answer, head, sources, work_folder};
use crate::effort::Effort;
use crate::failure::{Context, Failure, Outcome, none_found};
use crate::generate;
use crate::run::root;
use crate::source::{self, SourceFile};
use crate::workers;

const LIST: &str = "nic/rtl/lint.toml";
const WAIVERS: &str = "nic/tools/verilator.vlt";
const VERIBLE_RULES: &str = "nic/tools/verible.rules";
/// `unique case` with a default is the house's style; a cast that one set of parameters does not need, another does; a
/// memory may begin as zeros.
const SLANG_WAIVERS: [&str; 3] =
    ["-Wno-case-redundant-default", "-Wno-useless-cast", "--allow-dup-initial-drivers"];
/// The module that a short run makes for Verilator, which elaborates one top at a time.
const EVERY: &str = "every_module";
/// Lines of a tool's message that are shown.
const SHOWN: usize = 24;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    whole: Vec<Whole>,
    module: Vec<Module>,
}

/// A design that a short run has Yosys check, with all that is in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    name: String,
    #[serde(default)]
    parameters: Parameters,
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

/// What a worker does.
type Task<'a> = Box<dyn Fn() -> Vec<Finding> + Sync + 'a>;

/// Runs the lane. Of the corners and the refusals a short run leaves Verilator out: it takes 1 to 6 seconds for what
/// takes slang a quarter of one, and slang tells the same widths and the same sentences. Every module is clean under both,
/// and the benches elaborate corners under Verilator.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let paths = sources::listed()?;
    let files = source::files(&["sv"])?;
    let text = fs::read_to_string(root().join(LIST)).while_doing(format!("read {LIST}"))?;
    let list: List = toml::from_str(&text).while_doing(format!("understand {LIST}"))?;
    let modules = sources::modules(&paths);
    let jobs = jobs(&modules, list.module)?;

    let ours: Vec<&str> = files
        .iter()
        .map(|file| &*file.path)
        .filter(|path| path.starts_with("nic/") && !path.starts_with("nic/tb/"))
        .collect();
    let rules = format!("--rules_config={VERIBLE_RULES}");
    let mut findings = sources::findings(&paths, &files);
    findings.extend(outside(&list.whole, &modules, &files));
    if let Err(cause) = tools.program("verible-verilog-lint").arg(rules).args(&ours).output() {
        findings.extend(said(&cause).lines().map(str::to_owned));
    }
    let mut tasks = Vec::new();
    if effort == Effort::Short {
        tasks = together(&tools, &modules, &list.whole)?;
    }
    let one_by_one = jobs.iter().filter(|job| effort == Effort::Long || !matches!(job.kind, Kind::Alone));
    let tools = &tools;
    tasks.extend(one_by_one.map(|job| -> Task { Box::new(move || check(tools, job, effort)) }));
    findings.extend(grouped(workers::each(&tasks, |task| task()).into_iter().flatten()));
    none_found("the SystemVerilog is not clean", findings)?;
    let count = |wanted: fn(&Kind) -> bool| jobs.iter().filter(|job| wanted(&job.kind)).count();
    println!(
        "  {} files under Verible; {} modules under Verilator, slang and Yosys, {}; {} corners and {} refusals under {}: {} passed",
        ours.len(),
        count(|kind| matches!(kind, Kind::Alone)),
        if effort == Effort::Long { "each alone" } else { "together" },
        count(|kind| matches!(kind, Kind::Corner)),
        count(|kind| matches!(kind, Kind::Refused(_))),
        if effort == Effort::Long { "Verilator and slang" } else { "slang" },
        ours.len() + jobs.len()
    );
    Ok(())
}

/// Every module with its own parameters, in one run of each front end, and in Yosys as a part of the `whole` designs.
fn together<'a>(tools: &'a Tools, modules: &'a [String], wholes: &'a [Whole]) -> Outcome<Vec<Task<'a>>> {
    let work = work_folder("rtl-lint")?;
    let path = format!("{work}/{EVERY}.sv");
    fs::write(root().join(&path), every(modules)).while_doing(format!("write {path}"))?;
    let told = |tool: &str, outcome| {
        let fault = fault(tool, &Kind::Alone, outcome);
        fault.map(|fault| ("every module".to_owned(), fault)).into_iter().collect()
    };
    let in_verilator = move || told("Verilator", verilator(tools, EVERY, &Parameters::default(), &[&path]));
    let tops: Vec<&str> = modules.iter().map(String::as_str).collect();
    let in_slang = move || told("slang", slang(tools, &tops, &Parameters::default()));
    let mut tasks: Vec<Task> = vec![Box::new(in_verilator)];
    tasks.extend(wholes.iter().map(|whole| -> Task {
        Box::new(move || {
            let fault = fault("Yosys", &Kind::Alone, yosys(tools, &whole.name, &whole.parameters));
            fault.map(|fault| (label(&whole.name, &whole.parameters), fault)).into_iter().collect()
        })
    }));
    tasks.push(Box::new(in_slang));
    Ok(tasks)
}

/// A module that has each of `modules` once. Its pins are left open: what is at them is no business of theirs.
fn every(modules: &[String]) -> String {
    let instances: String = modules.iter().map(|module| format!("  {module} u_{module} ();\n")).collect();
    format!("/* verilator lint_off PINMISSING */\nmodule {EVERY};\n{instances}endmodule\n")
}

/// Modules that are in none of the `whole` designs, so that Yosys would see them in a long run only.
fn outside(wholes: &[Whole], modules: &[String], files: &[SourceFile]) -> Vec<String> {
    let mut reached: Vec<&str> = wholes.iter().map(|whole| whole.name.as_str()).collect();
    let mut next = 0;
    while let Some(module) = reached.get(next).copied() {
        next += 1;
        let file = files.iter().find(|file| file.path.ends_with(&format!("/{module}.sv")));
        // An instance begins a line: `fifo #(` or `fifo u_lines (`.
        let begins = file.iter().flat_map(|file| file.text.lines()).filter_map(|line| {
            let (name, rest) = line.trim_start().split_once(' ')?;
            (rest.starts_with("#(") || rest.starts_with("u_")).then_some(name)
        });
        for name in begins.filter(|name| modules.iter().any(|module| module == name)) {
            if !reached.contains(&name) {
                reached.push(name);
            }
        }
    }
    let is_missing = |module: &&String| !reached.contains(&module.as_str());
    modules
        .iter()
        .filter(is_missing)
        .map(|module| format!("{LIST}: no `whole` design has {module}"))
        .collect()
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
    let mut runs = vec![("slang", slang(tools, &[&job.module], &job.parameters))];
    let is_alone = matches!(job.kind, Kind::Alone);
    if is_alone || effort == Effort::Long {
        runs.push(("Verilator", verilator(tools, &job.module, &job.parameters, &[])));
    }
    if is_alone {
        runs.push(("Yosys", yosys(tools, &job.module, &job.parameters)));
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

fn verilator(tools: &Tools, top: &str, parameters: &Parameters, more: &[&str]) -> Outcome<String> {
    let lint =
        tools.program("verilator").args(["--lint-only", "-Wall", "--quiet", WAIVERS, "-f", sources::LIST]);
    let settings = parameters.settings().into_iter().map(|setting| format!("-G{setting}"));
    lint.args(more).args(["--top-module", top]).args(settings).output()
}

fn slang(tools: &Tools, tops: &[&str], parameters: &Parameters) -> Outcome<String> {
    let slang =
        tools.program("python").args(["-c", generate::SLANG, "-Wextra", "-Werror"]).args(SLANG_WAIVERS);
    let settings = parameters.settings().into_iter().flat_map(|setting| ["-G".to_owned(), setting]);
    let tops = tops.iter().flat_map(|top| ["--top", top]);
    slang.args(["-f", sources::LIST]).args(tops).args(settings).output()
}

/// As synthesis sees it: no loop, no wire without a driver or with two.
fn yosys(tools: &Tools, top: &str, parameters: &Parameters) -> Outcome<String> {
    let settings: String = parameters.settings().iter().map(|setting| format!(" -G {setting}")).collect();
    let list = sources::LIST;
    tools.yosys(&format!(
        "read_slang -j 1 --allow-dup-initial-drivers -f {list} --top {top}{settings}; proc; opt_clean; check -assert"
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
    fn module_that_no_whole_design_has_is_found() {
        let files = [
            SourceFile::new("nic/rtl/top/a.sv", "module a;\n  b #(\n  ) u_b ();\nendmodule\n"),
            SourceFile::new("nic/rtl/base/b.sv", "module b;\n  c u_c ();\nendmodule\n"),
            SourceFile::new("nic/rtl/base/c.sv", "module c;\nendmodule\n"),
            SourceFile::new("nic/rtl/base/d.sv", "// a d here\nmodule d;\n  c u_c ();\nendmodule\n"),
        ];
        let modules = ["a", "b", "c", "d"].map(str::to_owned);
        let whole = |name: &str| Whole { name: name.to_owned(), parameters: Parameters::default() };
        let found = outside(&[whole("a")], &modules, &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("has d"), "{found:?}");
        assert_eq!(outside(&[whole("a"), whole("d")], &modules, &files), Vec::<String>::new());
        assert!(every(&modules).contains("  d u_d ();\n"));
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
