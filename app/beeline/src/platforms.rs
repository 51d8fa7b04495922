//! `beeline platforms`: the machines of virtual time, listed, described or checked.

use std::path::{Path, PathBuf};

use beeline_platforms::Platform;
use clap::Args;

use crate::choices::PlatformName;
use crate::compare::table::empty as empty_table;
use crate::failure::Failure;
use crate::out;

/// Columns of the description.
const WIDTH: u16 = 100;

/// Options of `platforms`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline platforms                       what is built in
  beeline platforms epyc-7543-cx6dx       every parameter of one, with its unit and its source
  beeline platforms ./mine.toml           the same of a file of yours
  beeline platforms --check mine.toml     only whether it can be used; says the line if not")]
pub struct PlatformsArgs {
    /// Platform to describe: the name of a built-in one, or a file
    #[arg(value_name = "NAME|FILE", conflicts_with = "check", value_parser = PlatformName, hide_possible_values = true)]
    pub platform: Option<String>,
    /// Check files and say nothing more
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub check: Vec<PathBuf>,
}

/// Runs `beeline platforms`.
pub fn run(args: &PlatformsArgs) -> Result<(), Failure> {
    if !args.check.is_empty() {
        return check(&args.check);
    }
    if let Some(name) = &args.platform {
        return out::line(find(name)?.describe(WIDTH));
    }
    let platforms = Platform::all().map_err(refused)?;
    let mut table = empty_table(["platform", "chosen", "machine"].map(str::to_owned).to_vec());
    if let Some(column) = table.column_mut(2) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for platform in &platforms {
        let knobs = platform.knobs().len().to_string();
        table.add_row([platform.name.clone(), knobs, platform.summary.clone()]);
    }
    out::line(table)?;
    out::line("chosen: parameters that were fitted, or assumed and are not shared; all others have a source")
}

/// A platform by the name of a built-in one, or by its file.
pub fn find(name: &str) -> Result<Platform, Failure> {
    let is_file = name.contains(['/', '\\']) || name.ends_with(".toml");
    if is_file { Platform::read(Path::new(name)) } else { Platform::named(name) }.map_err(refused)
}

/// A platform that is refused; the error says the file, the line, and what to do.
pub fn refused(error: beeline_platforms::PlatformError) -> Failure {
    let failure = Failure::new("cannot use the platform").because(&error);
    match error {
        beeline_platforms::PlatformError::NoSuchPlatform { .. } => {
            failure.remedy("`beeline platforms` for what is built in; ./NAME.toml for a file of yours")
        }
        _ => failure,
    }
}

fn check(files: &[PathBuf]) -> Result<(), Failure> {
    for file in files {
        let platform = Platform::read(file).map_err(refused)?;
        // A file can keep every bound and still make no machine.
        beeline_experiments::machine(
            &platform,
            1,
            beeline_experiments::NicShape::for_cores(1).aperture(),
            beeline_experiments::Data::default(),
        )
        .map_err(|error| Failure::new(format!("{} makes no machine", file.display())).because(error))?;
        out::line(format_args!(
            "{}: {} parameters, {} chosen",
            file.display(),
            platform.rows().len(),
            platform.knobs().len()
        ))?;
    }
    Ok(())
}
