//! Tests of the workspace, built once for all lanes that run some of them.
//!
//! cargo chooses the features of a dependency by the packages that are built together, so `--package` would build half of
//! the workspace again. Every build here is of the whole workspace, and a lane runs the test programs of its packages:
//! those of two packages at a time, and those of one package one after the other, as they may share files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::cores;
use crate::effort::Effort;
use crate::failure::{Failure, Outcome, none_found};
use crate::run::Program;
use crate::workers;

/// How long a test program may take in a short run: some times what the slowest takes on two cores that others load too.
const LIMIT: Duration = Duration::from_secs(600);
/// How many of the slowest test programs are listed.
const SLOWEST: usize = 12;

/// What a test program says of one of its tests that may hang.
const HANGS: &str = " has been running for over 60 seconds";

/// A test program that cargo built.
#[derive(Debug, PartialEq, Eq)]
pub struct TestProgram {
    pub package: String,
    pub target: String,
    /// That of its package, where cargo would run it.
    folder: PathBuf,
    path: PathBuf,
}

/// What of cargo's messages is needed here.
#[derive(Deserialize)]
struct Message {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// How the tests run.
#[derive(Default)]
pub struct Settings {
    env: Vec<(&'static str, String)>,
    args: Vec<&'static str>,
    /// How long each program may take.
    limit: Option<Duration>,
}

impl Settings {
    /// In a long run tests marked `#[ignore]` run too, property tests draw more cases, and attacks last longer.
    pub fn of(effort: Effort) -> Self {
        match effort {
            Effort::Short => Settings { limit: Some(LIMIT), ..Settings::default() },
            Effort::Long => Settings::default()
                .env("PROPTEST_CASES", "20000")
                .env("BEELINE_SCRIBBLE_MS", "10000")
                .env("BEELINE_KILLS", "10000")
                .env("BEELINE_CRASHES", "10000")
                .env("BEELINE_SOAK_ROUNDS", "200")
                .env("BEELINE_LITMUS_CASES", "10000000")
                .arg("--include-ignored"),
        }
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    pub fn arg(mut self, arg: &'static str) -> Self {
        self.args.push(arg);
        self
    }

    fn applied_to(&self, program: Program) -> Program {
        self.env.iter().fold(program.args(&self.args).within(self.limit), |program, (name, value)| {
            program.env(name, value)
        })
    }
}

/// Builds the workspace's tests, or those that `selection` leaves of them.
pub fn build(cargo: Program, selection: &[&str]) -> Outcome<Vec<TestProgram>> {
    let cargo =
        cargo.args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"]);
    let messages = cargo.args(selection).on_cores().output()?;
    let programs: Vec<TestProgram> = messages.lines().filter_map(program).collect();
    if programs.is_empty() { Err(Failure::new("cargo built no test")) } else { Ok(programs) }
}

/// The test program that a message tells of.
fn program(message: &str) -> Option<TestProgram> {
    let message: Message = serde_json::from_str(message).ok()?;
    let folder = message.manifest_path.parent()?.to_owned();
    let path = message.executable.filter(|_| message.profile.test)?;
    let package = package_of(&message.manifest_path)?;
    Some(TestProgram { package, target: message.target.name, folder, path })
}

fn package_of(manifest: &Path) -> Option<String> {
    let text = std::fs::read_to_string(manifest).ok()?;
    crate::source::package_name(&text).map(str::to_owned)
}

/// Runs the programs; one that fails stops no other.
pub fn run(programs: Vec<TestProgram>, settings: &Settings) -> Outcome {
    let mut packages: BTreeMap<String, Vec<TestProgram>> = BTreeMap::new();
    for program in programs {
        packages.entry(program.package.clone()).or_default().push(program);
    }
    // Those with the most programs first: what begins last is waited for alone.
    let mut packages: Vec<Vec<TestProgram>> = packages.into_values().collect();
    packages.sort_by_key(|programs| std::cmp::Reverse(programs.len()));
    let ended = workers::each(&packages, |programs| {
        programs.iter().map(|program| run_one(program, settings)).collect::<Vec<_>>()
    });
    let mut ended: Vec<(String, Duration, Outcome)> = ended.into_iter().flatten().collect();
    ended.sort_by_key(|(_, took, _)| std::cmp::Reverse(*took));
    println!("\n  {:<44} {:>8}", format!("slowest of {} test programs", ended.len()), "seconds");
    for (name, took, _) in ended.iter().take(SLOWEST) {
        println!("  {name:<44} {:>8.1}", took.as_secs_f64());
    }
    none_found(
        "tests fail",
        ended.into_iter().filter_map(|(name, .., outcome)| finding(&name, outcome)).collect(),
    )
}

fn run_one(program: &TestProgram, settings: &Settings) -> (String, Duration, Outcome) {
    let name = format!("{} {}", program.package, program.target);
    let start = Instant::now();
    let test = settings.applied_to(Program::new(&program.path).quiet().current_dir(&program.folder));
    // Our own tests run jobs too. They would wait for the core that this job holds, and for the other lane's.
    let test = test.env_remove(cores::FOLDER);
    let output = test.env("CARGO_MANIFEST_DIR", &program.folder).output();
    // One piece, so that the outputs of two programs do not mix.
    let outcome = match output {
        Ok(text) => {
            println!("\n     Running {name}\n{}", text.trim());
            Ok(())
        }
        Err(cause) => {
            println!("\n     Running {name}\n{cause}");
            Err(cause)
        }
    };
    (name, start.elapsed(), outcome)
}

/// The tests of a program that failed, or how it ended.
fn finding(name: &str, outcome: Outcome) -> Option<String> {
    let cause = outcome.err()?.to_string();
    let told = |line: &'_ str| {
        let test = line.strip_prefix("test ")?;
        test.strip_suffix(" ... FAILED").or_else(|| test.strip_suffix(HANGS)).map(str::to_owned)
    };
    let ended = |test: &String| cause.lines().any(|line| line == format!("test {test} ... ok"));
    let mut failed: Vec<String> = cause.lines().filter_map(told).filter(|test| !ended(test)).collect();
    failed.sort();
    failed.dedup();
    let what = if failed.is_empty() {
        cause.lines().next().unwrap_or_default().to_owned()
    } else {
        failed.join(", ")
    };
    Some(format!("{name}: {what}"))
}

/// Documentation tests of the workspace.
pub fn run_doc_tests(settings: &Settings) -> Outcome {
    let env = |cargo: Program| settings.env.iter().fold(cargo, |cargo, (name, value)| cargo.env(name, value));
    env(Program::cargo().args(["test", "--workspace", "--doc", "--no-fail-fast"])).on_cores().run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_cargos_messages() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason": "compiler-artifact", "manifest_path": "{folder}/Cargo.toml", "target": {{"name": "tour", "kind": ["test"]}},
                "profile": {{"test": {test}, "opt_level": "1"}}, "executable": {executable}}}"#
            )
        };
        let expected = TestProgram {
            package: "xtask".to_owned(),
            target: "tour".to_owned(),
            folder: folder.into(),
            path: "/t/tour-1".into(),
        };
        assert_eq!(program(&message(true, "\"/t/tour-1\"")), Some(expected));
        assert_eq!(program(&message(false, "\"/t/example\"")), None);
        assert_eq!(program(&message(false, "null")), None);
        assert_eq!(program(r#"{"reason": "build-finished", "success": true}"#), None);
    }

    #[test]
    fn failed_tests_are_named() {
        let said =
            "`/t/tour-1` failed: exit status: 101\nrunning 2 tests\ntest a ... FAILED\ntest b ... ok\n";
        assert_eq!(finding("xtask tour", Err(Failure::new(said))).unwrap(), "xtask tour: a");
        let said = "`/t/tour-1` did not end within 600 s\ntest a has been running for over 60 seconds\n\
            test b has been running for over 60 seconds\ntest b ... ok\n";
        assert_eq!(finding("xtask tour", Err(Failure::new(said))).unwrap(), "xtask tour: a");
        let killed = Failure::new("`/t/tour-1` failed: signal: 9");
        assert!(finding("xtask tour", Err(killed)).unwrap().contains("signal: 9"));
        assert_eq!(finding("xtask tour", Ok(())), None);
    }

    #[test]
    fn failing_program_fails_the_run_and_the_others_are_run() {
        let program = |package: &str, path: &str| TestProgram {
            package: package.to_owned(),
            target: "t".to_owned(),
            folder: "/".into(),
            path: path.into(),
        };
        let programs = vec![program("a", "/bin/false"), program("b", "/bin/true")];
        let failure = run(programs, &Settings::default()).unwrap_err().to_string();
        assert!(failure.contains("a t: ") && !failure.contains("b t: "), "{failure}");
        assert_eq!(run(vec![program("b", "/bin/true")], &Settings::default()), Ok(()));
        let settings = Settings { limit: Some(Duration::from_millis(100)), ..Settings::default() };
        let failure = run(vec![program("b", "/bin/sleep")], &settings.arg("1000")).unwrap_err().to_string();
        assert!(failure.contains("did not end within"), "{failure}");
    }
}
