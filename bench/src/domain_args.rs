//! The domain in which a process of a bench meets the one that started it, as options of its hidden subcommand.

use std::path::PathBuf;
use std::process::Command;

use beeline_domain::DomainConfig;
use clap::Args;

#[derive(Args, Clone, Debug)]
pub(crate) struct DomainArgs {
    /// Folder of the domain.
    #[arg(long)]
    root: PathBuf,
    /// Name of the domain.
    #[arg(long)]
    domain: String,
}

impl DomainArgs {
    /// Adds the options that name a domain to the command that starts the process.
    pub(crate) fn add_to(command: &mut Command, domain: &DomainConfig) {
        command.arg("--root").arg(domain.root_folder()).args(["--domain", &domain.name]);
    }

    pub(crate) fn config(&self) -> DomainConfig {
        DomainConfig { root: Some(self.root.clone()), name: self.domain.clone() }
    }

    /// A file in the folder for a listener that is of no domain, with a name that no other domain has.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.join(format!("{}.{name}", self.domain))
    }
}
