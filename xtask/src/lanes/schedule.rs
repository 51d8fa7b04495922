//! Lanes side by side, as many as there are cores, each in a process of its own that writes to a file. The files are
//! shown in the order of the table: the first lane that is not shown to its end is shown while it runs.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use super::lane::Lane;
use super::report::{Cost, Report, last_words};
use crate::cores;
use crate::effort::Effort;
use crate::failure::{Context, Failure, Outcome};
use crate::run::{Program, root};

/// Between two looks at what runs.
const POLL: Duration = Duration::from_millis(100);
/// Where the outputs and the cores are, below the target folder.
const WORK: &str = "target/lanes";

/// A lane that was started.
struct Started<'l> {
    lane: &'l Lane,
    output: PathBuf,
    child: Child,
    since: Instant,
    /// Cost and result of the lane.
    ended: Option<(Cost, Option<Failure>)>,
}

/// Runs every lane and reports each. A lane that fails stops no other.
pub fn run(lanes: &[&Lane], effort: Effort) -> Outcome<Report> {
    let (work, start) = (root().join(WORK), Instant::now());
    cores::prepare(&work)?;
    let mut waiting: Vec<&Lane> = lanes.to_vec();
    let mut started: Vec<Started> = Vec::new();
    let mut screen = Screen::default();
    let (mut report, mut shown) = (Report::default(), 0);
    while shown < lanes.len() {
        let mut running: Vec<&Lane> =
            started.iter().filter(|one| one.ended.is_none()).map(|one| one.lane).collect();
        while let Some(at) = next(&waiting, &running) {
            let lane = waiting.remove(at);
            running.push(lane);
            started.push(begin(lane, effort, &work)?);
        }
        thread::sleep(POLL);
        started.iter_mut().try_for_each(|one| one.look())?;
        while let Some(one) = lanes.get(shown).and_then(|lane| started.iter_mut().find(|one| one.is(lane))) {
            screen.show(one.lane.name, &one.output)?;
            let Some((cost, failure)) = one.ended.take() else { break };
            report.add(one.lane.name, cost, failure);
            one.ended = Some((cost, None));
            screen.close();
            shown += 1;
        }
    }
    report.took(start.elapsed());
    Ok(report)
}

/// The lane to start now: the first that waits, does not need the target folder of one that runs, and has a core.
fn next(waiting: &[&Lane], running: &[&Lane]) -> Option<usize> {
    if running.len() >= cores::COUNT {
        return None;
    }
    let is_taken = running.iter().any(|lane| lane.takes_target);
    waiting.iter().position(|lane| !(is_taken && lane.takes_target))
}

fn begin<'l>(lane: &'l Lane, effort: Effort, work: &Path) -> Outcome<Started<'l>> {
    let output = work.join(format!("{}.log", lane.name.replace(' ', "")));
    let file = File::create(&output).while_doing(format!("make {}", output.display()))?;
    // This program as it is in memory: a lane may build it anew.
    let program = Program::new("/proc/self/exe").args(["lane", lane.name]);
    let program = if effort == Effort::Long { program.arg("--long") } else { program };
    // Until it has its cores, a cargo has one.
    let child = program.env(cores::FOLDER, work).env("CARGO_BUILD_JOBS", "1").start(file)?;
    Ok(Started { lane, output, child, since: Instant::now(), ended: None })
}

impl Started<'_> {
    fn is(&self, lane: &Lane) -> bool {
        self.lane.name == lane.name
    }

    /// Notes that it ended, if it did.
    fn look(&mut self) -> Outcome {
        if self.ended.is_some() {
            return Ok(());
        }
        let (name, used) = (self.lane.name, cores::used());
        let Some(status) = self.child.try_wait().while_doing(format!("wait for lane {name}"))? else {
            return Ok(());
        };
        let failure = if status.success() {
            None
        } else {
            let bytes = fs::read(&self.output).while_doing(format!("read {}", self.output.display()))?;
            Some(cause(name, &String::from_utf8_lossy(&bytes), &status.to_string()))
        };
        // The kernel adds what a lane used when it is waited for, and this process itself uses next to nothing.
        let cpu = cores::used().saturating_sub(used);
        self.ended = Some((Cost { took: self.since.elapsed(), cpu }, failure));
        Ok(())
    }
}

/// Why a lane failed, by its output; how its process ended, if it said nothing.
fn cause(name: &str, output: &str, status: &str) -> Failure {
    let mark = last_words(name, &Failure::new(""));
    let said = output.rsplit_once(&mark).map(|(_, said)| said.trim_end());
    Failure::new(said.map_or_else(|| format!("its process ended with {status}"), str::to_owned))
}

/// What was shown of the lane that is shown now.
#[derive(Default)]
struct Screen {
    source: Option<File>,
}

impl Screen {
    /// Shows what a lane wrote since the last look.
    fn show(&mut self, name: &str, output: &Path) -> Outcome {
        let doing = || format!("show {}", output.display());
        let mut screen = io::stdout().lock();
        if self.source.is_none() {
            writeln!(screen, "\n== {name}").while_doing(doing())?;
            self.source = Some(File::open(output).while_doing(doing())?);
        }
        if let Some(source) = &mut self.source {
            let mut news = Vec::new();
            source.read_to_end(&mut news).while_doing(doing())?;
            screen.write_all(&news).and_then(|()| screen.flush()).while_doing(doing())?;
        }
        Ok(())
    }

    fn close(&mut self) {
        self.source = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &'static str, takes_target: bool) -> Lane {
        Lane { name, is_long: false, takes_target, scratch: &[], run: |_| Ok(()) }
    }

    #[test]
    fn one_lane_at_a_time_has_the_target_folder() {
        let (clippy, test, loom, miri) =
            (lane("clippy", true), lane("test", true), lane("loom", false), lane("miri", false));
        assert_eq!(next(&[&clippy, &test, &loom], &[]), Some(0));
        assert_eq!(next(&[&test, &loom], &[&clippy]), Some(1));
        assert_eq!(next(&[&test], &[&clippy]), None);
        assert_eq!(next(&[&miri], &[&clippy, &loom]), None);
        assert_eq!(next(&[], &[]), None);
    }

    #[test]
    fn cause_is_what_the_lane_said_last() {
        let failure = Failure::new("two\nlines");
        let output = format!("error: lane docs: quoted\nwarning\n{}\n", last_words("docs", &failure));
        assert_eq!(cause("docs", &output, "exit status: 1"), failure);
        let killed = cause("docs", "warning\n", "signal: 9");
        assert_eq!(killed.to_string(), "its process ended with signal: 9");
    }
}
