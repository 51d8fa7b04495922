//! `rtl-speed`: how fast the RTL simulates, on one core. It prints and asserts nothing about time.

use serde::Deserialize;

use super::{Tools, sources, work_folder};
use crate::effort::Effort;
use crate::failure::{Context, Outcome, none_found};
use crate::run::{Program, root};

/// Cycles, or lines, that are timed.
const COUNT: [&str; 2] = ["300000", "3000000"];

/// Lines and frames of a line a cycle at least; the whole port has some frames inside when it is looked at.
const LEAST_PACE: f64 = 0.999;

/// What a timed program prints.
#[derive(Deserialize)]
struct Timed {
    cycles: u64,
    lines: u64,
    frames: u64,
    seconds: f64,
}

impl Timed {
    /// Lines in, or frames out, a cycle: whichever is less.
    fn pace(&self) -> f64 {
        self.lines.min(self.frames) as f64 / self.cycles as f64
    }
}

/// Queues of the engine, contexts for all of them, lines of its pool: the two sizes for which a line a cycle is asked.
const ENGINES: [[u32; 2]; 2] = [[64, 1024], [1024, 32_768]];

/// Builds the loads, runs them one after the other, and prints a table. Time is only shown; that an engine takes a line and
/// sends a message in every cycle is a count of its own clock, and must hold.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let count = COUNT[usize::from(effort == Effort::Long)];
    let work = work_folder("rtl-speed")?;
    let mut rows = Vec::new();
    for [queues, pool_lines] in ENGINES {
        let name = format!("mmio engine, {queues} queues x 16 lines");
        rows.push((name, engine(&tools, &work, count, queues, pool_lines)?));
    }
    rows.push(("the whole port, 16 queues".to_owned(), port(&tools, count)?));
    println!(
        "  {:<36} {:>12} {:>12} {:>12} {:>12}",
        "one core, measured", "k cycles/s", "k lines/s", "k frames/s", "lines/cycle"
    );
    for (name, timed) in &rows {
        let thousands = |count: u64| count as f64 / timed.seconds / 1e3;
        let [cycles, lines, frames] = [timed.cycles, timed.lines, timed.frames].map(thousands);
        let pace = timed.pace();
        println!("  {name:<36} {cycles:>12.0} {lines:>12.0} {frames:>12.0} {pace:>12.4}");
    }
    let slow = rows.iter().filter(|(_, timed)| timed.pace() < LEAST_PACE);
    none_found("less than a line a cycle", slow.map(|(name, _)| name.clone()).collect())
}

/// The engine alone, with as many contexts as queues: all of them have a hole at a time under this load.
fn engine(tools: &Tools, work: &str, count: &str, queues: u32, pool_lines: u32) -> Outcome<Timed> {
    let folder = format!("{work}/engine{queues}");
    let build = tools.program("verilator").quiet();
    let build = build.args(["--cc", "--exe", "--build", "-O3", "--no-timing", "-Wno-fatal", "-Wno-lint"]);
    let build = build.args(["--x-assign", "fast", "--x-initial", "fast", "-MAKEFLAGS", "OPT_FAST=-O3"]);
    let sizes = [("NumQueues", queues), ("NumContexts", queues), ("PoolLines", pool_lines)];
    let build = build.args(sizes.map(|(name, value)| format!("-G{name}={value}")));
    let build = build.args(["--top-module", "reorder_load", "--Mdir", &folder, "-f", sources::LIST]);
    // The generated Makefile is run in a folder of its own.
    let program = root().join("bench/rtl/reorder_speed.cpp");
    build.arg("bench/rtl/reorder_load.sv").arg(program).output()?;
    timed(&Program::new(format!("{folder}/Vreorder_load")).quiet().arg(count).output()?)
}

fn port(tools: &Tools, count: &str) -> Outcome<Timed> {
    let program = Program::cargo().quiet().env("BEELINE_RTL_TOOLS", tools.folder());
    let program =
        program.args(["run", "--release", "--quiet", "--package", "beeline-nic-rtl", "--features", "rtl"]);
    timed(&program.args(["--example", "port_speed", "--", count]).output()?)
}

fn timed(said: &str) -> Outcome<Timed> {
    let line = said.lines().last().unwrap_or_default();
    serde_json::from_str(line).while_doing(format!("read what a timed program printed: {line}"))
}
