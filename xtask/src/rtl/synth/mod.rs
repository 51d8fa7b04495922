//! `rtl-synth`: what the RTL costs and how fast it may be, by the rows of `nic/syn/gates.toml`.
//!
//! Three figures, none of them a sign-off: LUT6 depth ([`depth`]), area on UltraScale+ ([`area`]), and the clock of
//! a placed and routed ECP5 ([`route`]). Yosys maps and nextpnr routes; both are pinned, so a figure that moves was
//! moved by the RTL.

mod area;
mod depth;
mod design;
mod gates;
mod harness;
mod netlist;
mod primitives;
mod route;

use std::time::{Duration, Instant};

use area::{Area, Mapped};
use depth::Depth;
use gates::{AreaRow, DepthRow, Gates, RouteRow, Row};
use route::Routed;

use super::parameters::label;
use super::{Tools, answer, head, work_folder};
use crate::effort::Effort;
use crate::failure::{Outcome, none_found};
use crate::workers;

/// Seconds that routing may take, of a row of CI and of a long one: watchdogs, on a machine that does other things too.
const TIMEOUT_S: [u32; 2] = [900, 7200];
/// Lines of a tool's message that are shown.
const SHOWN: usize = 12;

/// What to run, and what to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Rows of the long lane too.
    pub effort: Effort,
    /// Records areas in place of comparing them.
    pub update: bool,
    /// Shows the longest paths of rows that are good too.
    pub paths: bool,
    /// Only rows whose kind and name contain this, `depth fifo`.
    pub only: Option<&'a str>,
}

/// One row to measure.
enum Job<'r> {
    Route(&'r RouteRow),
    Depth(&'r DepthRow),
    Area(&'r AreaRow),
}

/// Result of a row, and the time it took.
#[derive(Default)]
struct Measured<'r> {
    routes: Vec<(&'r RouteRow, Outcome<Routed>, Duration)>,
    depths: Vec<(&'r DepthRow, Outcome<Depth>, Duration)>,
    areas: Vec<(&'r AreaRow, Outcome<Mapped>)>,
}

/// Runs the lane.
pub fn run(wanted: Wanted) -> Outcome {
    let tools = Tools::install()?;
    let work = work_folder("rtl-synth")?;
    let gates = Gates::read()?;
    let measured = measure(&tools, &work, &gates, wanted);
    let mut ended = Ended::default();
    depths(&mut ended, measured.depths, wanted);
    areas(&mut ended, measured.areas, wanted, &gates)?;
    routes(&mut ended, measured.routes, wanted);
    none_found("the gates of nic/syn are not kept", ended.findings)?;
    println!("  {} passed", ended.passed);
    Ok(())
}

/// Every row, in one list for all workers: routing one takes as long as all others, so it begins first.
fn measure<'r>(tools: &Tools, work: &str, gates: &'r Gates, wanted: Wanted) -> Measured<'r> {
    let mut jobs: Vec<Job> = wanted.choose("route", &gates.route).into_iter().rev().map(Job::Route).collect();
    jobs.extend(wanted.choose("depth", &gates.depth).into_iter().map(Job::Depth));
    jobs.extend(wanted.choose("area", &gates.area).into_iter().map(Job::Area));
    let done = workers::each(&jobs, |job| {
        let (start, mut one) = (Instant::now(), Measured::default());
        match *job {
            Job::Route(row) => {
                let timeout_s = TIMEOUT_S[usize::from(row.is_long())];
                let routed = route::measure(tools, work, &row.top, &row.parameters, timeout_s);
                one.routes.push((row, routed, start.elapsed()));
            }
            Job::Depth(row) => {
                let depth = depth::measure(tools, work, &row.top, &row.parameters);
                one.depths.push((row, depth, start.elapsed()));
            }
            Job::Area(row) => one.areas.push((row, area::measure(tools, work, &row.top, &row.parameters))),
        }
        one
    });
    let mut all = Measured::default();
    for one in done {
        all.routes.extend(one.routes);
        all.depths.extend(one.depths);
        all.areas.extend(one.areas);
    }
    all
}

/// How many rows of a part were good, and what was wrong with the others.
#[derive(Debug, Default)]
struct Ended {
    passed: usize,
    findings: Vec<String>,
}

impl Ended {
    /// What was measured; where nothing could be, that is what is wrong.
    fn measured<T>(&mut self, name: &str, outcome: Outcome<T>) -> Option<T> {
        outcome.map_err(|cause| self.findings.push(format!("{name}: {}", head(&answer(&cause), SHOWN)))).ok()
    }
    fn note(&mut self, finding: Option<String>) {
        match finding {
            Some(finding) => self.findings.push(finding),
            None => self.passed += 1,
        }
    }
}

impl Wanted<'_> {
    /// The rows of this run.
    fn choose<'r, R: Row>(&self, kind: &str, rows: &'r [R]) -> Vec<&'r R> {
        let is_named = |row: &&R| {
            let name = format!("{kind} {}", label(row.top(), row.parameters()));
            self.only.is_none_or(|only| name.contains(only))
        };
        rows.iter().filter(|row| self.effort == Effort::Long || !row.is_long()).filter(is_named).collect()
    }
}

fn depths(ended: &mut Ended, rows: Vec<(&DepthRow, Outcome<Depth>, Duration)>, wanted: Wanted) {
    println!("  {:<44} {:>6} {:>5} {:>8} {:>8}", "LUT6 depth", "levels", "most", "at ports", "seconds");
    for (row, depth, took) in rows {
        let name = label(&row.top, &row.parameters);
        let Some(depth) = ended.measured(&name, depth) else { continue };
        let (levels, ports, seconds) = (depth.inside.levels, depth.at_ports.levels, took.as_secs_f64());
        println!("  {name:<44} {levels:>6} {:>5} {ports:>8} {seconds:>8.1}", row.levels);
        if wanted.paths {
            println!("    inside: {}\n    at ports: {}", depth.inside, depth.at_ports);
        }
        ended.note(row.finding(&depth));
    }
}

fn areas(
    ended: &mut Ended,
    rows: Vec<(&AreaRow, Outcome<Mapped>)>,
    wanted: Wanted,
    gates: &Gates,
) -> Outcome {
    let mut record = area::Record::read()?;
    println!("  {:<44} {}  levels", "area, UltraScale+", Area::head());
    for (row, now) in rows {
        let name = label(&row.top, &row.parameters);
        let Some(Mapped { area: now, levels }) = ended.measured(&name, now) else { continue };
        println!("  {name:<44} {now} {levels:>7}");
        if wanted.update {
            record.set(&name, now);
            ended.note(None);
        } else {
            for drift in record.drift(&name, &now) {
                println!("    drift: {drift}");
            }
            ended.note(record.finding(&name, &now));
        }
    }
    if wanted.update {
        record.keep_only(&gates.area.iter().map(|row| label(&row.top, &row.parameters)).collect::<Vec<_>>());
        record.write()?;
    }
    Ok(())
}

fn routes(ended: &mut Ended, rows: Vec<(&RouteRow, Outcome<Routed>, Duration)>, wanted: Wanted) {
    println!("  {:<44} {:>6} {:>6} {:>8}", "routed clock, ECP5-85 -8", "MHz", "least", "seconds");
    // The last row began first.
    for (row, routed, took) in rows.into_iter().rev() {
        let name = label(&row.top, &row.parameters);
        let Some(routed) = ended.measured(&name, routed) else { continue };
        println!("  {name:<44} {:>6.1} {:>6} {:>8.1}", routed.mhz, row.mhz, took.as_secs_f64());
        if wanted.paths {
            println!("    {}", routed.path.join("\n    "));
        }
        ended.note(row.finding(&routed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_effort_and_name() {
        let gates = Gates::parse(
            "[[depth]]\ntop = \"a\"\nlevels = 3\n[[depth]]\ntop = \"b\"\nparameters = { W = 8 }\nlevels = 3\nlong = true\n",
        )
        .unwrap();
        let chosen = |effort, only| {
            Wanted { effort, update: false, paths: false, only }.choose("depth", &gates.depth).len()
        };
        assert_eq!((chosen(Effort::Short, None), chosen(Effort::Long, None)), (1, 2));
        assert_eq!((chosen(Effort::Long, Some("b W=8")), chosen(Effort::Long, Some("area"))), (1, 0));
    }
}
