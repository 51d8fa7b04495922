//! Verilates `nic_top` and compiles what comes out, with the shim beside it, into a static library.
//!
//! Does nothing without the feature `verilated`, so that nobody who builds the host's side needs a simulator. Where the
//! simulator is: `$BEELINE_RTL_TOOLS`, or `target/rtl`, where `make rtl-tools` puts it. With `$BEELINE_RTL_CHECK_ONLY` set only
//! what the Rust side reads is written, for builds that check and link nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Sizes that are built; every smaller one is a strap.
const PARAMETERS: [(&str, u32); 5] =
    [("NumQueues", 16), ("WindowLines", 1024), ("SpanLines", 64), ("NumContexts", 16), ("PoolLines", 16384)];

/// Statements of a function that is generated, more or less.
const STATEMENTS: &str = "1000";

/// Set where nothing is linked.
const CHECK_ONLY: &str = "BEELINE_RTL_CHECK_ONLY";

/// What is simulated: nic_top with registers at the pins that seldom change.
const WRAPPER: &str = "nic/rtl/sys/src/nic_sim.sv";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BEELINE_RTL_TOOLS");
    println!("cargo::rerun-if-env-changed={CHECK_ONLY}");
    if env::var_os("CARGO_FEATURE_VERILATED").is_none() {
        return;
    }
    if let Err(what) = build() {
        eprintln!("error: the NIC's RTL cannot be verilated: {what}");
        eprintln!("  run `make rtl-tools`, which makes the simulator's environment, and build again");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names no OUT_DIR")?);
    fs::write(out.join("parameters.rs"), parameters()).map_err(|error| error.to_string())?;
    if env::var_os(CHECK_ONLY).is_some() {
        return Ok(());
    }
    // Not as it was when this was compiled: a target folder may be shared by two checkouts.
    let crate_folder = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).ok_or("cargo names no folder")?;
    let root = crate_folder.ancestors().nth(3).ok_or("the crate has moved")?;
    let tools = env::var_os("BEELINE_RTL_TOOLS").map_or_else(|| root.join("target/rtl"), PathBuf::from);
    let verilator = tools.join("bin/verilator");
    if !verilator.is_file() {
        return Err(format!("{} is not there", verilator.display()));
    }
    let sources = sources(root)?;
    for source in &sources {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    println!("cargo::rerun-if-changed={}", root.join("nic/rtl/sources.f").display());
    println!("cargo::rerun-if-changed={}", root.join(WRAPPER).display());
    // What an earlier run generated would be compiled too.
    let generated = out.join("verilated");
    if generated.exists() {
        fs::remove_dir_all(&generated).map_err(|error| format!("{}: {error}", generated.display()))?;
    }
    let mut command = Command::new(&verilator);
    command.current_dir(root).args(["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast"]);
    // As with Rust's own: assertions cost a tenth of the speed and belong to what is tested.
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        command.arg("--assert");
    }
    // Engines without a queue stand still (nic/rtl/base/engine_clock.sv).
    command.args(["-DBEELINE_SLEEP", "--no-timing", "-Wno-fatal", "-Wno-lint", "--top-module", "nic_sim"]);
    // Loops over counters and queues become straight code, of which constants fold most away.
    command.args(["--unroll-count", "256", "--unroll-stmts", "100000"]);
    // A compiler's time grows faster than a function: one of a megabyte takes it ten minutes.
    command.args(["--output-split", "20000", "--output-split-cfuncs", STATEMENTS]);
    if has_waves() {
        command.arg("--trace-vcd");
    }
    command.args(["--prefix", "Vnic_sim", "--Mdir"]).arg(&generated);
    command.args(PARAMETERS.iter().map(|(name, value)| format!("-G{name}={value}")));
    command.args(&sources).arg(WRAPPER);
    let output = command.output().map_err(|error| format!("{}: {error}", verilator.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    compile(&verilator, &generated)
}

/// The source list, without its comments.
fn sources(root: &Path) -> Result<Vec<String>, String> {
    let list = root.join("nic/rtl/sources.f");
    let text = fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    Ok(lines.map(str::to_owned).collect())
}

/// The parameters, for the Rust side.
fn parameters() -> String {
    PARAMETERS.iter().map(|(name, value)| format!("const {}: u32 = {value};\n", upper_snake(name))).collect()
}

fn has_waves() -> bool {
    env::var_os("CARGO_FEATURE_WAVES").is_some()
}

fn upper_snake(name: &str) -> String {
    let mut out = String::new();
    for (i, letter) in name.chars().enumerate() {
        if i > 0 && letter.is_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

fn compile(verilator: &Path, generated: &Path) -> Result<(), String> {
    let root = Command::new(verilator).args(["--getenv", "VERILATOR_ROOT"]).output();
    let root = root.map_err(|error| format!("{}: {error}", verilator.display()))?;
    let runtime = PathBuf::from(String::from_utf8_lossy(&root.stdout).trim()).join("include");
    let mut cpp: Vec<PathBuf> = fs::read_dir(generated)
        .map_err(|error| format!("{}: {error}", generated.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "cpp"))
        .collect();
    cpp.sort();
    for name in ["verilated.cpp", "verilated_threads.cpp"] {
        cpp.push(runtime.join(name));
    }
    let mut build = cc::Build::new();
    if has_waves() {
        cpp.push(runtime.join("verilated_vcd_c.cpp"));
        build.define("VM_TRACE", "1").define("VM_TRACE_VCD", "1");
    }
    cpp.push("src/shim.cpp".into());
    println!("cargo::rerun-if-changed=src/shim.cpp");
    println!("cargo::rerun-if-changed=src/pins.h");
    build
        .cpp(true)
        .std("c++17")
        // What matters is how much code a cycle runs through: less of it, with wide registers, beats more inlining.
        .opt_level(2)
        .flag_if_supported("-march=native")
        // The generated code is large: what a debugger needs of it would take longer than the rest.
        .debug(false)
        .warnings(false)
        .define("VERILATOR", "1")
        .include(&runtime)
        .include(runtime.join("vltstd"))
        .include(generated)
        .include("src")
        .files(&cpp)
        .try_compile("beeline_nic_rtl")
        .map_err(|error| error.to_string())
}
