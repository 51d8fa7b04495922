//! A NIC process of one's own: started for a command, stopped with it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::failure::Failure;

/// The line a NIC prints on standard output once ports can reach it.
pub const READY: &str = "ready";

/// How the private NIC is to run.
#[derive(Default)]
pub struct Options<'a> {
    /// Give frames back to their sender.
    pub loopback: bool,
    /// Wait for slow receivers instead of dropping.
    pub lossless: bool,
    /// Core to run on.
    pub core: Option<usize>,
    /// Capture what leaves by the up-link.
    pub pcap_out: Option<&'a Path>,
    /// Poll without pause.
    pub spin: bool,
}

/// A running private NIC. Dropping it ends the process.
pub struct PrivateNic {
    child: Child,
    stderr: Option<ChildStderr>,
    domain: String,
}

impl PrivateNic {
    /// Starts `beeline nic` as a separate process in a domain of its own and waits until ports can reach it.
    pub fn start(options: &Options<'_>) -> Result<Self, Failure> {
        let program = own_program()?;
        let domain = format!("private-{}", std::process::id());
        let mut command = Command::new(&program);
        command.args(["nic", "--name", NAME, "--domain", &domain, "--until-stdin-closes"]);
        command.args(["--idle", if options.spin { "spin" } else { "yield" }]);
        if options.loopback {
            command.arg("--loopback");
        }
        if options.lossless {
            command.arg("--lossless");
        }
        if let Some(core) = options.core {
            command.args(["--core", &core.to_string()]);
        }
        if let Some(path) = options.pcap_out {
            command.arg("--pcap-out").arg(path);
        }
        let failed =
            |e| Failure::new(format!("cannot start a NIC process from {}", program.display())).because(e);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take().expect("the child was spawned with a pipe");
        let stderr = child.stderr.take();
        let mut nic = PrivateNic { child, stderr, domain };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        if line.trim() == READY {
            Ok(nic)
        } else {
            Err(nic.last_words("the NIC process ended before it was ready"))
        }
    }

    /// Domain the NIC lives in.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Name of the NIC in its domain.
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// Ends the NIC in good order, so that captures are whole, and waits for it.
    pub fn stop(mut self) -> Result<(), Failure> {
        // A private NIC ends when its standard input does; no signal can then go to a process that took its pid.
        drop(self.child.stdin.take());
        let failed = |e| Failure::new("cannot wait for the NIC process").because(e);
        let status = self.child.wait().map_err(failed)?;
        if status.success() {
            Ok(())
        } else {
            Err(self.last_words(&format!("the NIC process failed ({status})")))
        }
    }

    fn last_words(&mut self, what: &str) -> Failure {
        let mut text = String::new();
        if let Some(stderr) = &mut self.stderr {
            // What cannot be read is missing from the message, nothing else.
            let _ = self.child.kill();
            let _ = stderr.take(8192).read_to_string(&mut text);
        }
        match text.trim() {
            "" => Failure::new(what),
            text => Failure::new(format!("{what}:\n{text}")),
        }
    }
}

impl Drop for PrivateNic {
    fn drop(&mut self) {
        // The process may have ended already; both calls are then harmless errors.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const NAME: &str = "nic";

fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| {
        Failure::new("cannot find this program's own file").because(e).remedy("run it by its full path")
    })
}
