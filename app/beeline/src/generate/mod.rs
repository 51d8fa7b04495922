//! Man pages and completions, from the definition of the command line.

mod man;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, Subcommand};

use crate::failure::Failure;
use crate::out;

/// Options of `generate`.
#[derive(Args, Debug, Clone)]
pub struct GenerateArgs {
    /// What to write
    #[command(subcommand)]
    pub what: Generate,
}

/// Things generated from the command line's definition.
#[derive(Subcommand, Debug, Clone)]
pub enum Generate {
    /// Man pages, one a command
    Man {
        /// Folder to write them into
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Completions for a shell, on standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs `beeline generate` for the program that `command` defines.
pub fn run(args: &GenerateArgs, mut command: Command) -> Result<(), Failure> {
    match &args.what {
        Generate::Man { out } => pages(command, out),
        Generate::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, "beeline", &mut text);
            out::bytes(&text)
        }
    }
}

/// Writes the page of a command and of each command below it.
fn pages(mut command: Command, folder: &Path) -> Result<(), Failure> {
    let failed = |e: io::Error| {
        Failure::new(format!("cannot write man pages into {}", folder.display()))
            .because(e)
            .remedy("name a folder you may write into with --out")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    command.build();
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|below| below.get_name() != "help").cloned());
        let page = man::Page::new(&command);
        let text = page.render().map_err(failed)?;
        std::fs::write(folder.join(page.file_name()), text).map_err(failed)?;
    }
    Ok(())
}
