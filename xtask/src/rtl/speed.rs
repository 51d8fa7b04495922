//! `rtl-speed`: how fast the RTL simulates, on one core. It prints and asserts nothing about time.

use serde::Deserialize;

use super::{Tools, sources, work_folder};
use crate::failure::{Context, Outcome};
use crate::lanes::Effort;
use crate::run::{Program, root};

/// Cycles, or lines, that are timed.
const COUNT: [&str; 2] = ["300000", "3000000"];

/// What a timed program prints.
#[derive(Deserialize)]
struct Timed {
    cycles: u64,
    lines: u64,
    frames: u64,
    seconds: f64,
}

/// Builds both loads, runs them one after the other, and prints a table.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let count = COUNT[usize::from(effort == Effort::Long)];
    let rows = [
        ("mmio engine, 64 queues x 16 lines", engine(&tools, count)?),
        ("the whole port, 16 queues", port(&tools, count)?),
    ];
    println!("  {:<36} {:>14} {:>14} {:>14}", "one core, measured", "k cycles/s", "k lines/s", "k frames/s");
    for (name, timed) in rows {
        let thousands = |count: u64| count as f64 / timed.seconds / 1e3;
        let [cycles, lines, frames] = [timed.cycles, timed.lines, timed.frames].map(thousands);
        println!("  {name:<36} {cycles:>14.0} {lines:>14.0} {frames:>14.0}");
    }
    Ok(())
}

fn engine(tools: &Tools, count: &str) -> Outcome<Timed> {
    let work = work_folder("rtl-speed")?;
    let build = tools.program("verilator").quiet().args([
        "--cc",
        "--exe",
        "--build",
        "-O3",
        "--no-timing",
        "-Wno-fatal",
    ]);
    let build =
        build.args(["-Wno-lint", "--x-assign", "fast", "--x-initial", "fast", "-MAKEFLAGS", "OPT_FAST=-O3"]);
    let build = build.args([
        "--top-module",
        "reorder_load",
        "--Mdir",
        &format!("{work}/engine"),
        "-f",
        sources::LIST,
    ]);
    // The generated Makefile is run in a folder of its own.
    let program = root().join("bench/rtl/reorder_speed.cpp");
    build.arg("bench/rtl/reorder_load.sv").arg(program).run()?;
    timed(&Program::new(format!("{work}/engine/Vreorder_load")).quiet().arg(count).output()?)
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
