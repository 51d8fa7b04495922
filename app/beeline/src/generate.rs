//! Man pages and completions, from the definition of the command line.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, Generate};
use crate::failure::Failure;

/// Runs `beeline generate`.
pub fn run(what: &Generate) -> Result<(), Failure> {
    match what {
        Generate::Man { out } => man(out),
        Generate::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "beeline", &mut text);
            io::stdout().write_all(&text).map_err(|e| Failure::new("cannot write completions").because(e))
        }
    }
}

fn man(out: &Path) -> Result<(), Failure> {
    let failed = |e: io::Error| {
        Failure::new(format!("cannot write man pages into {}", out.display()))
            .because(e)
            .remedy("name a folder you may write into with --out")
    };
    std::fs::create_dir_all(out).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), out).map_err(failed)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_man_page_is_written_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        super::man(folder.path()).unwrap();
        for page in ["beeline.1", "beeline-compare.1", "beeline-send.1", "beeline-doctor.1"] {
            assert!(folder.path().join(page).is_file(), "{page} is missing");
        }
    }
}
