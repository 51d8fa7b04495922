//! The benches in cocotb: each folder of `nic/tb` that has a `bench.toml`. A short run takes the first configuration and those
//! that say `quick = true`, and of the seeds of a random test a third; a long one takes all.

use std::fs;
use std::time::Instant;

use serde::Deserialize;

use super::{Tools, answer, head};
use crate::effort::Effort;
use crate::failure::{Context, Outcome, none_found};
use crate::run::{Program, root};
use crate::workers;

const FOLDER: &str = "nic/tb";
/// Lines of a failing bench that are shown.
const SHOWN_LINES: usize = 40;

/// What of a `bench.toml` is needed here.
#[derive(Debug, Deserialize)]
struct Bench {
    build: Vec<Build>,
}

#[derive(Debug, Deserialize)]
struct Build {
    name: String,
    /// Whether CI runs the bench too, as it does the folder's first.
    #[serde(default)]
    quick: bool,
}

/// Every folder with the configurations to run, two at a time.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let jobs = jobs(effort)?;
    let findings = workers::each(&jobs, |(folder, build)| {
        let work = super::work_folder(&format!("rtl-bench-{folder}-{build}")).ok()?;
        let start = Instant::now();
        let program = program(&tools, folder, build, &work);
        let said = if effort == Effort::Short { program.arg("--short") } else { program }.output();
        match said {
            Ok(text) => {
                let line =
                    text.lines().rev().find(|line| line.contains(" passed, ")).unwrap_or("ran no test");
                println!("  {folder}/{build}: {line}, {:.1} seconds", start.elapsed().as_secs_f64());
                let has_passed = line.contains(" passed, 0 failed");
                if has_passed {
                    // 200 MB, most of it precompiled headers; what a failure left is kept.
                    let _ = fs::remove_dir_all(root().join(&work));
                }
                (!has_passed).then(|| format!("{folder}/{build}: {line}"))
            }
            Err(cause) => Some(format!("{folder}/{build}: {}", head(&answer(&cause), SHOWN_LINES))),
        }
    });
    none_found("a bench of nic/tb fails", findings.into_iter().flatten().collect())
}

/// What builds a configuration in the folder `work` and runs its tests.
pub(super) fn program(tools: &Tools, folder: &str, build: &str, work: &str) -> Program {
    // cocotb calls the simulator by its name.
    let path = format!("{}:{}", tools.bin.display(), std::env::var("PATH").unwrap_or_default());
    let program = tools.program("python").env("PATH", path).arg("nic/tb/run.py");
    program.args([folder, "--build", build, "--build-dir", work, "--log", "ERROR"])
}

fn jobs(effort: Effort) -> Outcome<Vec<(String, String)>> {
    let folder = root().join(FOLDER);
    let mut jobs = Vec::new();
    for entry in fs::read_dir(&folder).while_doing(format!("read {FOLDER}"))? {
        let path = entry.while_doing(format!("read {FOLDER}"))?.path().join("bench.toml");
        let (true, Some(name)) = (path.is_file(), path.parent().and_then(|folder| folder.file_name())) else {
            continue;
        };
        let text = fs::read_to_string(&path).while_doing(format!("read {}", path.display()))?;
        let bench: Bench = toml::from_str(&text).while_doing(format!("understand {}", path.display()))?;
        let name = name.to_string_lossy().into_owned();
        let builds = bench.build.into_iter().enumerate();
        let wanted = builds.filter(|(at, build)| effort == Effort::Long || *at == 0 || build.quick);
        jobs.extend(wanted.map(|(_, build)| (name.clone(), build.name)));
    }
    // From the end of the alphabet: the whole ports stand there, and one of them begun last would be waited for alone.
    jobs.sort_by(|a, b| b.cmp(a));
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bench_has_a_first_configuration() {
        let (short, long) = (jobs(Effort::Short).unwrap(), jobs(Effort::Long).unwrap());
        assert!(!short.is_empty() && short.len() < long.len());
        assert!(short.iter().all(|job| long.contains(job)));
    }
}
