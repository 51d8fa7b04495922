//! Runs PeakRDL on `nic.rdl`. It parses, elaborates and checks the SystemRDL; its messages go to the terminal.

use std::fs;
use std::path::Path;

use crate::failure::{Context, Failure, Outcome};
use crate::run::Program;

/// What PeakRDL makes.
#[derive(Debug)]
pub struct Exports {
    /// IP-XACT, IEEE 1685-2014.
    pub ipxact: String,
    /// The C header that is committed: plain 64-bit members, macros named by the path of each field.
    pub header: String,
    /// A C header with a type for each register, read for the names of the types and thrown away. It is not the
    /// committed one because it lays fields out as C bit-fields, whose order compilers choose.
    pub typed_header: String,
}

/// Exports `source` into `scratch` with the tools in `venv`.
pub fn export(venv: &Path, source: &Path, scratch: &Path) -> Outcome<Exports> {
    let peakrdl = |subcommand: &str, file: &str, extra: &[&str]| {
        let target = scratch.join(file);
        let program = Program::new(venv.join("bin/peakrdl")).quiet().args([subcommand]).arg(source);
        program.arg("-o").arg(&target).args(extra).run().map_err(|cause| {
            Failure::new(format!("{cause}\nPeakRDL refuses spec/nic.rdl; its message above says where"))
        })?;
        fs::read_to_string(&target).while_doing(format!("read {}", target.display()))
    };
    let header = peakrdl("c-header", "beeline_nic.h", &["--type-style", "hier", "--std", "gnu11"])?;
    let version = ["--vendor", "beeline-nic", "--library", "nic", "--version", "1.0", "--standard", "2014"];
    Ok(Exports {
        ipxact: peakrdl("ip-xact", "beeline_nic.xml", &version)?,
        header,
        typed_header: peakrdl(
            "c-header",
            "typed.h",
            &["--type-style", "lexical", "--std", "gnu11", "-b", "ltoh"],
        )?,
    })
}
