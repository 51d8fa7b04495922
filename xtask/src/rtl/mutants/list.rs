//! The list of faults, `nic/formal/mutants.toml`: what it must hold, and how one of them is put into a copy.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::failure::{Context, Failure, Outcome, none_found};
use crate::run::root;

/// The list, from the root.
pub const LIST: &str = "nic/formal/mutants.toml";
/// The name of the check that is no proof.
pub const BENCH: &str = "bench";
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
    /// `STEM TASK` of a proof, or `bench`: the first that sees it ends the search.
    pub checks: Vec<String>,
    /// Runs in CI too; its checks are proofs.
    #[serde(default)]
    pub quick: bool,
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
        if mutant.quick && mutant.checks.iter().any(|check| check == BENCH) {
            findings.push(format!("{}: the bench takes too long for CI", mutant.name));
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
        format!("{} ({}): {}", self.name, self.checks.join(", "), self.breaks)
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
    fn a_fault_changes_the_one_place_that_it_names() {
        let list = parse(&list("")).unwrap();
        assert_eq!(list.mutant[0].changed("x a y").unwrap(), "x b y");
        for text in ["x y", "a a"] {
            assert!(list.mutant[0].changed(text).unwrap_err().to_string().contains("should stand once"));
        }
    }
}
