//! The compiled lane: the NIC's RTL, Verilated, as a device behind the same trait as the behavioural NIC.

use super::Tools;
use crate::failure::Outcome;
use crate::lanes::Effort;
use crate::run::Program;

/// Lines that the adversary writes in a long run; a short one has the tests' own 10^6.
const LONG_LINES: &str = "100000000";

/// clippy and the tests of `nic/rtl` with its RTL compiled in, and those of `lab` in virtual time: five minutes, of which one is the compiler's.
pub fn run(effort: Effort) -> Outcome {
    let tools = Tools::install()?;
    let cargo = |arguments: &[&str]| {
        let program = Program::cargo().env("BEELINE_RTL_TOOLS", tools.folder());
        let program =
            if effort == Effort::Long { program.env("BEELINE_RTL_LINES", LONG_LINES) } else { program };
        program.args(arguments.iter().copied()).on_cores().run()
    };
    cargo(&[
        "clippy",
        "--package",
        "beeline-nic-rtl",
        "--features",
        "rtl",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])?;
    // What a run has met (places in the span, wraps, shapes of pieces) is to be seen.
    cargo(&["test", "--package", "beeline-nic-rtl", "--features", "rtl", "--", "--nocapture"])?;
    // The same device in virtual time, beside the behavioural one: what it prints is how much later frames are.
    cargo(&[
        "test",
        "--package",
        "beeline-experiments",
        "--features",
        "rtl",
        "--test",
        "rtl",
        "--",
        "--nocapture",
    ])?;
    cargo(&["test", "--package", "beeline-cli", "--features", "rtl", "--test", "rtl"])
}
