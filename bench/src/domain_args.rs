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

    /// A file in the folder of the domain, for a listener that is of no domain. It goes with that folder, also after a crash.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.join(&self.domain).join(name)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use beeline_session::PrivateDomain;

    use super::*;

    #[test]
    fn socket_of_a_killed_run_is_removed_with_its_domain() {
        let root = tempfile::tempdir().unwrap();
        let new = || PrivateDomain::new_in(Some(root.path().to_owned())).unwrap();
        // A killed run drops nothing.
        let killed = std::mem::ManuallyDrop::new(new());
        drop(beeline_domain::Domain::open(killed.config()).unwrap());
        let args = DomainArgs { root: root.path().to_owned(), domain: killed.name().to_owned() };
        let path = args.file("meeting");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _next = new();
        assert_eq!(root.path().read_dir().unwrap().count(), 0, "{}", path.display());
    }
}
