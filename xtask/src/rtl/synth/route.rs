//! The clock of a module that was placed and routed: nextpnr, ECP5-85, speed grade 8, one seed.
//!
//! A 40 nm part, so its MHz say nothing about a faster one; but they have wires in them, and a critical path to read.

use std::collections::HashMap;
use std::fs;

use serde::Deserialize;

use super::{design, harness};
use crate::failure::{Context, Failure, Outcome};
use crate::rtl::Tools;
use crate::rtl::parameters::Parameters;
use crate::run::{Program, root};

/// What nextpnr is asked to reach; it stops trying when it is there, so it is out of reach.
const ASKED_MHZ: &str = "400";

/// How abc maps, with the delays of wires that Yosys knows (`{W}` and the like): its own way, and before it one that
/// makes long paths short, as sums of products.
const MAPPING: &str = "+&scorr;&sweep;&dc2;&if,-g,{W},{D},{R};&st;&dch,-f,-r;&if,{W},{D},{R},-v;&mfs";

/// A routed module.
#[derive(Debug, Clone, PartialEq)]
pub struct Routed {
    /// The fastest clock.
    pub mhz: f64,
    /// The cells of its slowest path: nanoseconds at its output since the clock, cell and pin.
    pub path: Vec<String>,
}

/// nextpnr's report; what is not read here is left out.
#[derive(Debug, Deserialize)]
struct Report {
    fmax: HashMap<String, Clock>,
    critical_paths: Vec<CriticalPath>,
}

#[derive(Debug, Deserialize)]
struct Clock {
    achieved: f64,
}

#[derive(Debug, Deserialize)]
struct CriticalPath {
    from: String,
    to: String,
    path: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    delay: f64,
    to: Pin,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Pin {
    cell: String,
    port: String,
}

/// Synthesises, places and routes a module in its frame; nextpnr has `timeout_s` seconds.
pub fn measure(
    tools: &Tools,
    work: &str,
    top: &str,
    parameters: &Parameters,
    timeout_s: u32,
) -> Outcome<Routed> {
    let stem = format!("{work}/{}", design::file_stem(top, parameters));
    tools.yosys(&format!("{}; write_rtlil {stem}.il", design::read_script(top, parameters)))?;
    let read = |name: &str| fs::read_to_string(root().join(name)).while_doing(format!("read {name}"));
    let frame = harness::verilog(top, &harness::ports(&read(&format!("{stem}.il"))?, top)?)?;
    let frame_file = format!("{stem}.v");
    fs::write(root().join(&frame_file), frame).while_doing(format!("write {frame_file}"))?;
    tools.yosys(&format!(
        "scratchpad -set abc9.script {MAPPING}; read_rtlil {stem}.il; read_verilog {frame_file}; \
         synth_ecp5 -abc9 -top harness -json {stem}.json"
    ))?;
    let chip = ["--85k", "--package", "CABGA756", "--speed", "8", "--seed", "1"];
    let json = ["--json", &format!("{stem}.json"), "--report", &format!("{stem}.report")];
    let goal = ["--freq", ASKED_MHZ, "--timing-allow-fail", "--lpf-allow-unconstrained", "--quiet"];
    let (seconds, nextpnr) = (timeout_s.to_string(), tools.bin.join("nextpnr-ecp5"));
    let route = Program::new("timeout").quiet().arg(&seconds).arg(nextpnr).args(chip).args(json).args(goal);
    route.output().map_err(|cause| {
        // coreutils' timeout ends with this when it had to step in.
        let is_late = cause.to_string().contains("exit status: 124");
        if is_late { Failure::new(format!("not routed in {seconds} seconds")) } else { cause }
    })?;
    Routed::parse(&read(&format!("{stem}.report"))?)
}

impl Routed {
    fn parse(json: &str) -> Outcome<Self> {
        let report: Report = serde_json::from_str(json).while_doing("understand nextpnr's report")?;
        let slowest = report.fmax.values().map(|clock| clock.achieved).min_by(f64::total_cmp);
        let mhz = slowest.ok_or_else(|| Failure::new("nextpnr's report names no clock"))?;
        // Paths from and to a clock's edge, not those that begin or end at a pin.
        let inside = |path: &&CriticalPath| !path.from.contains("<async>") && !path.to.contains("<async>");
        let mut time = 0.0;
        let path = report.critical_paths.iter().find(inside).map_or_else(Vec::new, |path| {
            let step = |Step { delay, kind, to }: &Step| {
                time += delay;
                (kind != "routing").then(|| format!("{time:>5.2} ns {}.{}", to.cell, to.port))
            };
            path.path.iter().filter_map(step).collect()
        });
        Ok(Routed { mhz, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_clock_and_its_path_are_read() {
        let step = |delay: &str, cell: &str, kind: &str| {
            format!(
                r#"{{"delay": {delay}, "from": {{}}, "to": {{"cell": "{cell}", "port": "Z"}}, "type": "{kind}"}}"#
            )
        };
        let steps = [step("0.5", "a_q", "clk-to-q"), step("0.3", "b", "routing"), step("0.2", "b", "logic")]
            .join(",");
        let json = format!(
            r#"{{"fmax": {{"clk": {{"achieved": 151.5, "constraint": 400.0}}}}, "utilization": {{}},
            "critical_paths": [{{"from": "<async>", "to": "posedge clk", "path": []}},
            {{"from": "posedge clk", "to": "posedge clk", "path": [{steps}]}}]}}"#
        );
        let routed = Routed::parse(&json).unwrap();
        assert_eq!(routed.mhz, 151.5);
        assert_eq!(routed.path, [" 0.50 ns a_q.Z", " 1.00 ns b.Z"]);
        let clockless = r#"{"fmax": {}, "critical_paths": []}"#;
        assert!(Routed::parse(clockless).unwrap_err().to_string().contains("no clock"));
    }
}
