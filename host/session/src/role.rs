//! Other processes of the same program: each is started with a hidden subcommand, talks in lines on its standard
//! output, and ends when its standard input does, so that none outlives whoever started it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

    /// Returns the file of the program.
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

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says; `None` when it says no more.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line.trim().to_owned())
    }

    /// As [`Role::line`], which may wait for ever: gives an error when it has said nothing for this long.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`]; its output cannot be waited for.
    pub fn line_within(&mut self, timeout: Duration) -> io::Result<Option<String>> {
        if self.output.buffer().is_empty() {
            let time = Timespec::try_from(timeout).map_err(io::Error::other)?;
            // An end of its output counts: it is said as `None`.
            if poll(&mut [PollFd::new(self.output.get_ref(), PollFlags::IN)], Some(&time))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(self.line())
    }

    /// Gives it a line on its standard input.
    ///
    /// # Errors
    /// It has ended.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{line}").and_then(|()| input.flush())
    }

    /// The bytes that it says next, as many as there is room for.
    ///
    /// # Errors
    /// It says fewer.
    pub fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.output.read_exact(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_role_is_told_lines_and_not_waited_for_without_end() -> io::Result<()> {
        let mut role = Role::start(&mut Command::new("cat"))?;
        role.tell("first")?;
        role.tell("12345678")?;
        let long = Duration::from_secs(60);
        assert_eq!(role.line_within(long)?.as_deref(), Some("first"));
        let mut bytes = [0; 9];
        role.read_exact(&mut bytes)?;
        assert_eq!(&bytes, b"12345678\n");
        let silent = role.line_within(Duration::from_millis(1)).map_err(|error| error.kind());
        assert_eq!(silent, Err(io::ErrorKind::TimedOut));
        role.end()?;
        assert_eq!(role.line_within(long)?, None);
        assert!(role.tell("too late").is_err());
        Ok(())
    }
}
