//! The checks that a random mutant meets: proofs that read its file, benches in cocotb whose top holds its module, and the
//! tests of the compiled NIC. Where another part of this lane comes to run benches too, [`Checks::failed`] is the one place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use super::{PROVED, copy_of, failed_tests, prove, whole};
use crate::failure::{Context, Outcome};
use crate::rtl::{Tools, head, sources};
use crate::run::{Program, root};

const PROOFS: &str = "nic/formal";
const BENCHES: &str = "nic/tb";
/// The simulated NIC: what stands in it, the compiled tests see.
const COMPILED_TOP: &str = "nic_top";
/// The tests of nic/rtl.
const COMPILED_TESTS: [&str; 10] = [
    "conformance",
    "vectors",
    "compiled",
    "pending",
    "rate",
    "restart",
    "leftovers",
    "registers",
    "clobber",
    "isolation",
];
/// Seconds after which a bench is ended: many times what the slowest takes.
const TIMEOUT_S: &str = "1800";
/// Lines that the adversary of the compiled bench writes.
const LINES: &str = "100000";
/// Lines of what a check said that are shown.
const SHOWN: usize = 3;

/// A check, in the order of what it costs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// `STEM TASK`.
    Proof(String),
    /// The same of a task that shows that the proof is of something.
    Cover(String),
    /// Folder and build.
    Bench(String, String),
    /// The tests of nic/rtl.
    Compiled,
}

/// Fate of a fault.
#[derive(Debug)]
pub enum Seen {
    Killed { check: String, said: String },
    Survived { tried: String },
}

/// Which check reads which file, and how to run them.
#[derive(Debug)]
pub struct Checks<'a> {
    tools: &'a Tools,
    work: &'a str,
    by_file: BTreeMap<String, BTreeSet<Check>>,
    /// The conformance bodies take as long as all others together: a quick run does without.
    compiled_tests: &'static [&'static str],
    /// Whether a check that saw a fault passes without one; asked once each.
    passes: Mutex<BTreeMap<Check, bool>>,
    /// The compiled tests use every core, and one copy of the workspace.
    alone: Mutex<()>,
}

#[derive(Debug, Deserialize)]
struct Folder {
    top: String,
    build: Vec<Build>,
}

#[derive(Debug, Deserialize)]
struct Build {
    name: String,
    top: Option<String>,
    #[serde(default)]
    quick: bool,
}

impl<'a> Checks<'a> {
    /// Looks through proofs and benches; quick: of a folder's benches only what the short lane builds.
    pub fn find(tools: &'a Tools, work: &'a str, is_quick: bool) -> Outcome<Self> {
        let mut by_file: BTreeMap<String, BTreeSet<Check>> = BTreeMap::new();
        let mut add = |file: String, check: &Check| {
            by_file.entry(file).or_default().insert(check.clone());
        };
        for (name, text) in texts(PROOFS, "sby")? {
            for task in tasks(&text) {
                let property = format!("{name} {task}").trim_end().to_owned();
                let check = if task == "cover" { Check::Cover(property) } else { Check::Proof(property) };
                files_of(&text).for_each(|file| add(file.to_owned(), &check));
            }
        }
        let tree = Tree::read()?;
        for (folder, text) in bench_files()? {
            let bench: Folder =
                toml::from_str(&text).while_doing(format!("understand {BENCHES}/{folder}"))?;
            for (_, build) in
                bench.build.iter().enumerate().filter(|(at, build)| !is_quick || *at == 0 || build.quick)
            {
                let check = Check::Bench(folder.clone(), build.name.clone());
                let top = build.top.as_ref().unwrap_or(&bench.top);
                tree.files_below(top).into_iter().for_each(|file| add(file, &check));
            }
        }
        tree.files_below(COMPILED_TOP).into_iter().for_each(|file| add(file, &Check::Compiled));
        let (passes, alone) = (Mutex::default(), Mutex::default());
        let compiled_tests = &COMPILED_TESTS[usize::from(is_quick)..];
        Ok(Checks { tools, work, by_file, compiled_tests, passes, alone })
    }

    /// The checks that read a file, cheapest first.
    pub fn of(&self, file: &str) -> impl Iterator<Item = Check> {
        self.by_file.get(file).cloned().unwrap_or_default().into_iter()
    }

    /// What a proof or a bench said if it failed on the copy.
    pub fn failed(&self, check: &Check, copy: &str) -> Outcome<Option<String>> {
        match check {
            Check::Proof(property) | Check::Cover(property) => {
                let answer = prove(self.tools, copy, property)?;
                Ok((answer == "FAIL").then_some(answer))
            }
            Check::Bench(folder, build) => Ok(self.bench(folder, build, copy)),
            Check::Compiled => self.compiled(|_| Ok(())),
        }
    }

    /// Failing tests of a bench, by their number; a bench that does not end is ended.
    fn bench(&self, folder: &str, build: &str, copy: &str) -> Option<String> {
        let copy = root().join(copy);
        let path = format!("{}:{}", self.tools.bin.display(), std::env::var("PATH").unwrap_or_default());
        let run = Program::new("timeout").quiet().current_dir(&copy).env("PATH", path).arg(TIMEOUT_S);
        let run = run.args(["python", "nic/tb/run.py", folder, "--build", build, "--log", "ERROR"]);
        let said = run.arg("--build-dir").arg(copy.join("bench").join(format!("{folder}-{build}"))).output();
        let text = said.unwrap_or_else(|cause| cause.to_string());
        match text.lines().rev().find(|line| line.contains(" passed, ")) {
            Some(line) if line.contains(" passed, 0 failed") => None,
            Some(line) => Some(line.trim().to_owned()),
            None => Some(head(&text, SHOWN)),
        }
    }

    /// Failing tests of the compiled NIC, in the one copy of the workspace, with what `change` does to it.
    pub fn compiled(&self, change: impl FnOnce(&str) -> Outcome) -> Outcome<Option<String>> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = whole(self.work)?;
        change(&copy)?;
        let cargo = |arguments: &[&str]| {
            let program = Program::new("timeout").quiet().args([TIMEOUT_S, "cargo", "test"]);
            let program =
                program.env("BEELINE_RTL_TOOLS", self.tools.folder()).env("BEELINE_RTL_LINES", LINES);
            let program = program.args(["--package", "beeline-nic-rtl", "--features", "rtl"]);
            let tests = self.compiled_tests.iter().flat_map(|test| ["--test", test]);
            program.args(tests).args(arguments).current_dir(&root().join(&copy)).output()
        };
        cargo(&["--no-run"])?;
        Ok(cargo(&["--no-fail-fast"]).err().map(|cause| head(&failed_tests(&cause.to_string()), SHOWN)))
    }

    /// Whether a check that saw a fault passes on the RTL as it is: otherwise it sees anything.
    pub fn passes_unchanged(&self, check: &Check) -> Outcome<bool> {
        if let Some(passes) = self.known(check) {
            return Ok(passes);
        }
        let copy = format!("{}/unchanged", self.work);
        copy_of(&PROVED, &copy)?;
        copy_of(&["nic/tb"], &copy)?;
        let passes = self.failed(check, &copy)?.is_none();
        self.passes.lock().unwrap_or_else(PoisonError::into_inner).insert(check.clone(), passes);
        Ok(passes)
    }

    fn known(&self, check: &Check) -> Option<bool> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner).get(check).copied()
    }
}

/// Names without their ending, and texts, of the files of a folder.
fn texts(folder: &str, ending: &str) -> Outcome<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).while_doing(format!("look into {folder}"))? {
        let path = entry.while_doing(format!("look into {folder}"))?.path();
        if path.extension().is_some_and(|found| found == ending) {
            found.push((
                stem(&path),
                fs::read_to_string(&path).while_doing(format!("read {}", path.display()))?,
            ));
        }
    }
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn bench_files() -> Outcome<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(BENCHES)).while_doing(format!("look into {BENCHES}"))? {
        let path = entry.while_doing(format!("look into {BENCHES}"))?.path();
        if let Ok(text) = fs::read_to_string(path.join("bench.toml")) {
            found.push((stem(&path), text));
        }
    }
    Ok(found)
}

/// The tasks of a proof that the short lane runs; one without a name where it has none.
fn tasks(sby: &str) -> Vec<&str> {
    let section = sby.split_once("[tasks]\n").map(|(_, rest)| rest).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
    let short: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with("long")).collect();
    if names.is_empty() { vec![""] } else { short }
}

/// The files that a proof reads.
fn files_of(sby: &str) -> impl Iterator<Item = &str> {
    let section = sby.split_once("[files]\n").map(|(_, rest)| rest).unwrap_or_default();
    section.lines().take_while(|line| !line.starts_with('[')).filter(|line| line.starts_with("nic/rtl/"))
}

/// Which module stands in which, by their names in the text.
#[derive(Debug)]
struct Tree {
    /// Of each module its file and the modules in it.
    modules: BTreeMap<String, (String, BTreeSet<String>)>,
}

impl Tree {
    fn read() -> Outcome<Self> {
        let mut files = Vec::new();
        for path in sources::listed()? {
            let text = fs::read_to_string(root().join(&path)).while_doing(format!("read {path}"))?;
            files.push((path, text));
        }
        for (folder, _) in bench_files()? {
            let bench = format!("{BENCHES}/{folder}");
            let around = texts(&bench, "sv")?;
            files.extend(around.into_iter().map(|(name, text)| (format!("{bench}/{name}.sv"), text)));
        }
        Ok(Tree::of(&files))
    }

    fn of(files: &[(String, String)]) -> Self {
        let names: BTreeSet<String> = files.iter().map(|(path, _)| stem(Path::new(path))).collect();
        let inside = |text: &str| {
            let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
            let words = lines.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_')));
            words.filter(|word| names.contains(*word)).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let module = |(path, text): &(String, String)| (stem(Path::new(path)), (path.clone(), inside(text)));
        Tree { modules: files.iter().map(module).collect() }
    }

    /// The files of a module and of all that stand in it.
    fn files_below(&self, top: &str) -> BTreeSet<String> {
        let (mut files, mut left, mut known) = (BTreeSet::new(), vec![top.to_owned()], BTreeSet::new());
        while let Some(name) = left.pop() {
            if let Some((file, inside)) = self.modules.get(&name).filter(|_| known.insert(name.clone())) {
                files.insert(file.clone());
                left.extend(inside.iter().cloned());
            }
        }
        files
    }
}

impl fmt::Display for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Proof(property) | Check::Cover(property) => write!(out, "proof {property}"),
            Check::Bench(folder, build) => write!(out, "bench {folder}/{build}"),
            Check::Compiled => out.write_str("compiled tests"),
        }
    }
}

impl Seen {
    pub fn shown(&self) -> String {
        match self {
            Seen::Killed { check, said } => format!("{check}: {said}"),
            Seen::Survived { .. } => "nobody".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_says_its_tasks_and_files() {
        let sby =
            "[tasks]\nprove\nowners part2\nlong_cover\n\n[options]\n[files]\nspec/nic_pkg.sv\nnic/rtl/a.sv\n";
        assert_eq!(tasks(sby), ["prove", "owners"]);
        assert_eq!(tasks("[options]\n"), [""]);
        assert_eq!(files_of(sby).collect::<Vec<_>>(), ["nic/rtl/a.sv"]);
    }

    #[test]
    fn a_bench_reads_what_stands_in_its_top() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let tree = Tree::of(&[
            file("r/a.sv", "module a; b u_b (); // d\nendmodule"),
            file("r/b.sv", "module b; c #(.N(1)) u_c (); endmodule"),
            file("r/c.sv", "module c; endmodule"),
            file("r/d.sv", "module d; c u_c (); endmodule"),
        ]);
        let below = |top: &str| tree.files_below(top).into_iter().collect::<Vec<_>>();
        assert_eq!(below("b"), ["r/b.sv", "r/c.sv"]);
        assert!(below("a").contains(&"r/c.sv".to_owned()) && below("none").is_empty());
    }

    #[test]
    fn checks_come_in_the_order_of_their_cost() {
        let [cover, proof] = [Check::Cover("fifo cover".into()), Check::Proof("fifo prove".into())];
        let mut checks = [Check::Compiled, Check::Bench("kpio".into(), "mux".into()), cover, proof];
        checks.sort();
        assert_eq!(
            checks.map(|check| check.to_string()),
            ["proof fifo prove", "proof fifo cover", "bench kpio/mux", "compiled tests"]
        );
    }

    #[test]
    fn every_module_of_the_nic_is_read_by_a_bench_or_the_compiled_tests() {
        let tree = Tree::read().unwrap();
        let ends = ["nic_usplus", COMPILED_TOP].map(|top| tree.files_below(top));
        let missing: Vec<String> = (sources::listed().unwrap().into_iter())
            .filter(|path| !path.ends_with("_pkg.sv") && ends.iter().all(|files| !files.contains(path)))
            .collect();
        assert_eq!(missing, Vec::<String>::new());
    }
}
