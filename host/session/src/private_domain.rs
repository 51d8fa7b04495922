//! Domains for one run: a NIC of one's own, a victim to be killed.
//!
//! Nobody asks for such a domain a second time, so what a killed run leaves behind would stay for ever; whoever makes
//! the next private domain sweeps it away. Names are random: two containers may share a folder and not process ids.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use beeline_domain::DomainConfig;
use rustix::fs::{FlockOperation, fcntl_lock};

/// How the names of private domains begin.
const PREFIX: &str = "private-";
/// How old a folder is before it may be left over: a young one may be about to get its first lock.
const YOUNG: Duration = Duration::from_secs(60);

/// A domain that nobody else has. Dropping it removes what it left in the file system.
#[derive(Debug)]
pub struct PrivateDomain(DomainConfig);

impl PrivateDomain {
    /// Under a fresh name; removes what killed runs left.
    ///
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn new() -> Result<Self, getrandom::Error> {
        let config =
            DomainConfig::named(format!("{PREFIX}{}-{:016x}", std::process::id(), getrandom::u64()?));
        sweep(&config.root_folder(), YOUNG);
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

/// Removes private domains in `root` that are older than `young` and have no living owner. What cannot be looked at or
/// removed stays: this is tidying and nobody's task depends on it.
fn sweep(root: &Path, young: Duration) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let is_private = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Not through a link: only a folder of its own is ours to remove.
        let age = entry
            .metadata()
            .ok()
            .filter(|data| data.is_dir())
            .and_then(|data| data.modified().ok()?.elapsed().ok());
        if is_private && age.is_some_and(|age| age >= young) && is_abandoned(&entry.path()).unwrap_or(false) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether nobody holds a lock in this domain: owners of names do, and the kernel ends their locks with them.
fn is_abandoned(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock")
            && is_locked(&OpenOptions::new().write(true).open(&path)?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_locked(lock: &File) -> bool {
    fcntl_lock(lock, FlockOperation::NonBlockingLockExclusive).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_domain::Domain;

    #[test]
    fn a_private_domain_leaves_nothing() -> Result<(), Box<dyn std::error::Error>> {
        let (private, other) = (PrivateDomain::new()?, PrivateDomain::new()?);
        assert_ne!(private.name(), other.name());
        let domain = Domain::open(private.config())?;
        let path = domain.path().to_owned();
        assert!(path.is_dir());
        drop((domain, private));
        assert!(!path.exists());
        Ok(())
    }

    #[test]
    fn only_what_is_private_old_and_without_an_owner_is_swept() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        for (folder, file) in
            [("private-1-a", "nic.lock"), ("private-2-b", "nic.lock"), ("default", "nic.lock")]
        {
            fs::create_dir(root.path().join(folder))?;
            fs::write(root.path().join(folder).join(file), "")?;
        }
        fs::write(root.path().join("private-3-file"), "")?;
        sweep(root.path(), Duration::from_secs(3600));
        assert!(root.path().join("private-1-a").exists(), "young");
        // The lock must be another process's: one's own is no obstacle to oneself.
        let held = root.path().join("private-2-b/nic.lock");
        let script = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.lockf(f,fcntl.LOCK_EX); print('held',flush=True); sys.stdin.read()";
        let mut command = std::process::Command::new("python3");
        command.args(["-c", script]).arg(&held);
        let Ok(mut owner) = crate::Role::start(&mut command) else {
            println!("skipped the living owner: no python3 to hold a lock");
            return Ok(());
        };
        assert_eq!(owner.line().as_deref(), Some("held"));
        sweep(root.path(), Duration::ZERO);
        let left = |name: &str| root.path().join(name).exists();
        assert!(!left("private-1-a") && left("private-2-b") && left("default") && left("private-3-file"));
        assert!(owner.end()?.success());
        sweep(root.path(), Duration::ZERO);
        assert!(!root.path().join("private-2-b").exists());
        Ok(())
    }
}
