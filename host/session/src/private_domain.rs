//! Domains for one run: a NIC of one's own, a victim to be killed.
//!
//! Nobody asks for such a domain a second time, so what a killed run leaves behind would stay for ever; whoever makes
//! the next private domain in that folder removes it, on the kernel's word that no process has it open any more. Names
//! are random: two containers may share a folder and not process ids.

use std::fs;
use std::path::PathBuf;

use beeline_domain::{DomainConfig, remove_unused_domains};

/// How the names of private domains begin.
const PREFIX: &str = "private-";

/// A domain that nobody else has. Dropping it removes what it left in the file system.
#[derive(Debug)]
pub struct PrivateDomain(DomainConfig);

impl PrivateDomain {
    /// Under a fresh name in the default folder; removes what killed runs left there.
    ///
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn new() -> Result<Self, getrandom::Error> {
        Self::new_in(None)
    }

    /// As [`PrivateDomain::new`], in the folder that [`DomainConfig::root`] would name.
    ///
    /// # Errors
    /// As [`PrivateDomain::new`].
    pub fn new_in(root: Option<PathBuf>) -> Result<Self, getrandom::Error> {
        let name = format!("{PREFIX}{}-{:016x}", std::process::id(), getrandom::u64()?);
        let config = DomainConfig { root, ..DomainConfig::named(name) };
        remove_unused_domains(&config.root_folder(), PREFIX);
        Ok(PrivateDomain(config))
    }

    /// Returns the name under which other processes open the domain.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the configuration with which other processes open the domain.
    pub fn config(&self) -> &DomainConfig {
        &self.0
    }
}

impl Drop for PrivateDomain {
    fn drop(&mut self) {
        // It may never have been made; what cannot be removed is swept by a later run.
        let _ = fs::remove_dir_all(self.0.root_folder().join(&self.0.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_domain::Domain;

    #[test]
    fn dropped_private_domain_leaves_nothing() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let new = || PrivateDomain::new_in(Some(root.path().to_owned()));
        let (private, other) = (new()?, new()?);
        assert_ne!(private.name(), other.name());
        let domain = Domain::open(private.config())?;
        let path = domain.path().to_owned();
        assert!(path.is_dir());
        drop((domain, private));
        assert!(!path.exists());
        Ok(())
    }

    #[test]
    fn next_private_domain_removes_what_a_killed_run_left_at_once() -> Result<(), Box<dyn std::error::Error>>
    {
        let root = tempfile::tempdir()?;
        let new = || PrivateDomain::new_in(Some(root.path().to_owned()));
        let made = new()?;
        let used = Domain::open(made.config())?;
        let left = root.path().join("private-1-killed");
        fs::create_dir(&left)?;
        fs::write(left.join("nic.lock"), "")?;
        let _next = new()?;
        assert!(!left.exists() && used.path().exists());
        Ok(())
    }
}
