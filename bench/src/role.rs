//! Other processes of the same program: each is started with a hidden subcommand, talks in lines on its standard
//! output, and ends when its standard input does, so that none outlives whoever started it.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use beeline_domain::DomainConfig;

/// A program that has the hidden subcommands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(PathBuf);

impl Program {
    /// The one that this process runs.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn own() -> io::Result<Self> {
        std::env::current_exe().map(Program)
    }

    /// The one in this file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Program(path.into())
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A command that starts it in a role.
    pub fn command(&self, role: &str) -> Command {
        let mut command = Command::new(&self.0);
        command.arg(role);
        command
    }
}

/// A process in a role. Dropping it ends it.
#[derive(Debug)]
pub struct Role {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Role {
    /// Starts a process whose standard input and output are this one's to use.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().expect("the child was spawned with a pipe"));
        Ok(Role { child, output })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says; `None` when it says no more.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line.trim().to_owned())
    }

    /// Its standard error, if the command piped it.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Ends its standard input, which tells it to end, and waits for it.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        // No signal: it could go to a process that took the number of one that has ended already.
        drop(self.child.stdin.take());
        self.child.wait()
    }

    /// `kill -9`; does not wait.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It may have ended already; both calls are then harmless errors.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A domain that nobody else has. Dropping it removes what it left in the file system.
#[derive(Debug)]
pub struct PrivateDomain(DomainConfig);

impl PrivateDomain {
    /// Under a fresh name.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only uniqueness matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        PrivateDomain(DomainConfig::named(format!("private-{}-{number}", std::process::id())))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// To open it.
    pub fn config(&self) -> &DomainConfig {
        &self.0
    }
}

impl Default for PrivateDomain {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PrivateDomain {
    fn drop(&mut self) {
        // It may never have been made; what cannot be removed does no harm under a name that is not used again.
        let _ = fs::remove_dir_all(self.0.root_folder().join(&self.0.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_domain::Domain;

    #[test]
    fn a_role_says_lines_and_ends_with_its_input() -> io::Result<()> {
        let mut role = Role::start(&mut Command::new("cat"))?;
        assert!(role.pid() > 0);
        assert!(role.end()?.success());
        assert_eq!(role.line(), None);
        let mut role = Role::start(&mut Program::at("/bin/echo").command("ready"))?;
        assert_eq!(role.line().as_deref(), Some("ready"));
        Ok(())
    }

    #[test]
    fn a_private_domain_leaves_nothing() -> Result<(), Box<dyn std::error::Error>> {
        let (private, other) = (PrivateDomain::new(), PrivateDomain::new());
        assert_ne!(private.name(), other.name());
        let domain = Domain::open(private.config())?;
        let path = domain.path().to_owned();
        assert!(path.is_dir());
        drop((domain, private));
        assert!(!path.exists());
        Ok(())
    }
}
