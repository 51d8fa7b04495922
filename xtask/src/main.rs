//! Automation of the workspace: `cargo xtask <lane>`. Each lane is one command, locally and in CI.
//!
//! What it is not: part of the product. Nothing here is needed to build, install or run Beeline; `make run` and
//! `make install` do not come by. Lanes that need tools say so and install them ([`install`]).
#![forbid(unsafe_code)]

mod bounded;
mod citations;
mod claims;
mod cores;
mod effort;
mod failure;
mod generate;
mod guest;
mod house;
mod install;
mod lanes;
mod links;
mod pointers;
mod promises;
mod readmes;
mod rtl;
mod run;
mod source;
mod table;
mod tour;
mod workers;

use std::process::ExitCode;

use clap::Parser;

/// Code generation, CI lanes and checks of the Beeline workspace
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
#[command(
    after_help = "`make test` runs `cargo xtask ci`: every short lane, a summary, and `N passed, N failed`."
)]
struct Cli {
    #[command(subcommand)]
    lane: lanes::Command,
}

fn main() -> ExitCode {
    match lanes::run(Cli::parse().lane) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
