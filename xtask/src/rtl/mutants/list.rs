//! The list of faults, `nic/formal/mutants.toml`: what it must hold, and how one of them is put into a copy.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::failure::{Context, Failure, Outcome, none_found};
use crate::run::root;

/// The list, from the root.
pub const LIST: &str = "nic/formal/mutants.toml";
/// Faults that there must be at least, and how many of them CI runs.
const LEAST: [usize; 2] = [20, 5];

/// The list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutants {
    pub bench: Bench,
    pub mutant: Vec<Mutant>,
}

/// The compiled bench: a command that builds it, which must succeed, and one that runs it, which must not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bench {
    pub build: Vec<String>,
    pub run: Vec<String>,
}

/// One fault: a piece of text that stands once in a file, what it becomes, and what that breaks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    pub name: String,
    pub file: String,
    pub from: String,
    pub to: String,
    pub breaks: String,
    /// The first that sees it ends the search.
    pub checks: Vec<Check>,
    /// Runs in CI too; its checks are proofs.
    #[serde(default)]
    pub quick: bool,
    /// Why no check has a run that shows it, if none has: a proof's induction step breaks, and nothing else is seen.
    pub step_only: Option<String>,
}

/// Who may see a fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum Check {
    Proof {
        stem: String,
        task: String,
    },
    /// `tb FOLDER BUILD`: a build of a bench in cocotb.
    Tb {
        folder: String,
        build: String,
    },
    /// `bench`: the compiled bench.
    Bench,
}

impl TryFrom<String> for Check {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        match *words.as_slice() {
            ["bench"] => Ok(Check::Bench),
            ["tb", folder, build] => Ok(Check::Tb { folder: folder.into(), build: build.into() }),
            [stem, task] if stem != "tb" => Ok(Check::Proof { stem: stem.into(), task: task.into() }),
            _ => Err(format!("`{text}` is no check: `STEM TASK` of a proof, `tb FOLDER BUILD`, or `bench`")),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Proof { stem, task } => write!(out, "{stem} {task}"),
            Check::Tb { folder, build } => write!(out, "tb {folder} {build}"),
            Check::Bench => out.write_str("bench"),
        }
    }
}

impl Check {
    fn is_proof(&self) -> bool {
        matches!(self, Check::Proof { .. })
    }
}

/// The list as it is.
pub fn read() -> Outcome<Mutants> {
    let text = fs::read_to_string(root().join(LIST)).while_doing(format!("read {LIST}"))?;
    parse(&text)
}

/// The list, if it is one: names differ, texts are there, and there are enough.
fn parse(text: &str) -> Outcome<Mutants> {
    let list: Mutants = toml::from_str(text).while_doing(format!("read {LIST}"))?;
    let mut findings = Vec::new();
    for (at, mutant) in list.mutant.iter().enumerate() {
        if list.mutant[..at].iter().any(|other| other.name == mutant.name) {
            findings.push(format!("{}: stands twice", mutant.name));
        }
        if mutant.from == mutant.to || mutant.from.is_empty() {
            findings.push(format!("{}: changes nothing", mutant.name));
        }
        if mutant.checks.is_empty() || mutant.breaks.is_empty() {
            findings.push(format!("{}: says not what it breaks, or nobody is to see it", mutant.name));
        }
        if mutant.quick && !mutant.checks.iter().all(Check::is_proof) {
            findings.push(format!("{}: a bench takes too long for CI", mutant.name));
        }
        if mutant.step_only.as_ref().is_some_and(|why| mutant.quick || why.is_empty()) {
            findings
                .push(format!("{}: a fault of CI must be killed, and another one says why not", mutant.name));
        }
    }
    let counts = [list.mutant.len(), list.mutant.iter().filter(|mutant| mutant.quick).count()];
    for (count, least) in counts.iter().zip(LEAST).filter(|(count, least)| *count < least) {
        findings.push(format!("{count} mutants where there should be {least}"));
    }
    none_found(LIST, findings)?;
    Ok(list)
}

impl Mutant {
    /// Puts the fault into the copy.
    pub fn apply(&self, copy: &Path) -> Outcome {
        let file = copy.join(&self.file);
        let text = fs::read_to_string(&file).while_doing(format!("read {}", file.display()))?;
        let changed = self.changed(&text)?;
        fs::write(&file, changed).while_doing(format!("write {}", file.display()))
    }

    fn changed(&self, text: &str) -> Outcome<String> {
        match text.matches(&self.from).count() {
            1 => Ok(text.replacen(&self.from, &self.to, 1)),
            count => Err(Failure::new(format!(
                "{LIST}: {}: its text stands {count} times in {}, where it should stand once",
                self.name, self.file
            ))),
        }
    }

    /// What is said of one that nobody saw.
    pub fn survived(&self) -> String {
        let checks: Vec<String> = self.checks.iter().map(Check::to_string).collect();
        format!("{} ({}): {}", self.name, checks.join(", "), self.breaks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(name: &str, checks: &str, quick: bool) -> String {
        format!(
            "[[mutant]]\nname = \"{name}\"\nfile = \"a.sv\"\nfrom = \"a\"\nto = \"b\"\nbreaks = \"all\"\n\
             checks = [{checks}]\nquick = {quick}\n"
        )
    }

    fn list(first: &str) -> String {
        let rest: String = (0..20).map(|at| mutant(&format!("m{at}"), "\"fifo prove\"", at < 5)).collect();
        format!("[bench]\nbuild = [\"true\"]\nrun = [\"false\"]\n{first}{rest}")
    }

    #[test]
    fn a_list_is_read_and_a_bad_one_is_refused() {
        assert_eq!(parse(&list("")).unwrap().mutant.len(), 20);
        let said = |first: &str| parse(&list(first)).unwrap_err().to_string();
        assert!(said(&mutant("m3", "\"bench\"", false)).contains("m3: stands twice"));
        assert!(said(&mutant("x", "", false)).contains("nobody is to see it"));
        assert!(said(&mutant("x", "\"bench\"", true)).contains("too long for CI"));
        assert!(said(&mutant("x", "\"bench\"", false).replace("\"b\"", "\"a\"")).contains("changes nothing"));
        let few = format!("[bench]\nbuild = []\nrun = []\n{}", mutant("x", "\"bench\"", false));
        assert!(parse(&few).unwrap_err().to_string().contains("0 mutants where there should be 5"));
    }

    #[test]
    fn a_check_is_a_proof_a_build_of_a_bench_or_the_compiled_bench() {
        for text in ["fifo prove", "tb usplus dma", "bench"] {
            assert_eq!(Check::try_from(text.to_owned()).unwrap().to_string(), text);
        }
        let said = |first: &str| parse(&list(first)).unwrap_err().to_string();
        for text in ["\"tb usplus\"", "\"fifo\"", "\"a b c\""] {
            assert!(said(&mutant("x", text, false)).contains("is no check"));
        }
        assert!(said(&mutant("x", "\"tb usplus dma\"", true)).contains("too long for CI"));
    }

    #[test]
    fn a_fault_of_ci_is_killed_and_another_that_is_not_says_why() {
        let row =
            |quick, why: &str| mutant("x", "\"fifo prove\"", quick) + &format!("step_only = \"{why}\"\n");
        assert!(parse(&list(&row(false, "It takes 2^32 cycles."))).is_ok());
        for refused in [row(true, "It takes 2^32 cycles."), row(false, "")] {
            let said = parse(&list(&refused)).unwrap_err().to_string();
            assert!(said.contains("another one says why not"), "{said}");
        }
    }

    #[test]
    fn a_fault_changes_the_one_place_that_it_names() {
        let list = parse(&list("")).unwrap();
        assert_eq!(list.mutant[0].changed("x a y").unwrap(), "x b y");
        for text in ["x y", "a a"] {
            assert!(list.mutant[0].changed(text).unwrap_err().to_string().contains("should stand once"));
        }
    }
}
