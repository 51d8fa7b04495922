//! `beeline figures`: the published figures beside ours, from machines in virtual time.

use std::path::{Path, PathBuf};

use beeline_figures::output;
use beeline_figures::{Options, VirtualTime, run as run_figures};
use clap::Args;

use crate::failure::Failure;

/// Options of `figures`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Every figure is simulated, on the platform that its row names (`lab/platforms/*.toml`); published ones stand beside it with their
source. Nothing is measured on this machine.

Examples:
  beeline figures                      the rows that are scored, shapes, fences and the score
  beeline figures --all                every row, inputs and what was lost too
  beeline figures --html figures.html  the papers' figures, published points over our curves")]
pub struct FiguresArgs {
    /// Show every row, not only those that a machine gives
    #[arg(long)]
    pub all: bool,
    /// Leave out scoring each platform with the knobs of its kin
    #[arg(long)]
    pub quick: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON in place of tables
    #[arg(long)]
    pub json: bool,
    /// Write every row as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write one page with the figures of the papers
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Runs `beeline figures`.
pub fn run(args: &FiguresArgs) -> Result<(), Failure> {
    let cannot = |what: &str, error| Failure::new(format!("cannot make {what}")).because(error);
    let mut simulator = VirtualTime::new(args.seed)
        .map_err(|error| Failure::new("a built-in platform is wrong").because(error))?;
    let options = Options { files: VirtualTime::files(), leave_out: !args.quick, draw: args.html.is_some() };
    let outcome = run_figures(&options, &mut simulator).map_err(|error| cannot("the figures", error))?;
    if args.json {
        crate::out::line(output::json(&outcome).map_err(|error| cannot("JSON", error))?)?;
    } else {
        crate::out::text(output::tables(&outcome, args.all))?;
    }
    if let Some(path) = &args.csv {
        write(path, &output::csv(&outcome).map_err(|error| cannot("the CSV file", error))?)?;
    }
    if let Some(path) = &args.html {
        write(path, &output::page(&outcome).map_err(|error| cannot("the page", error))?)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| {
        Failure::new(format!("cannot write {}", path.display()))
            .because(error)
            .remedy("name a file in a folder that you may write to")
    })
}
