//! A server that somebody else wrote, started for a row: on a core of its own, gone with whoever started it.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::BenchError;

/// How long a server may take to listen.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks whether it does.
const PAUSE: Duration = Duration::from_millis(5);

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct KvServer {
    child: Child,
    socket: PathBuf,
}

impl KvServer {
    /// Starts `program` with `arguments` on `core` and waits until it listens on `socket`; `None` when there is no such
    /// program. The kernel ends it when the calling thread ends, so that a run that is killed leaves none.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: it cannot be started, or does not listen.
    pub fn start(
        program: &'static str,
        arguments: &[&str],
        core: usize,
        socket: PathBuf,
    ) -> Result<Option<Self>, BenchError> {
        if !is_installed(program) {
            return Ok(None);
        }
        let failed = |what: String| BenchError::Rival { rival: program.to_owned(), what };
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "taskset", "--cpu-list", &core.to_string(), program])
            .args(arguments);
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = silent.spawn().map_err(|error| failed(format!("cannot start {command:?}: {error}")))?;
        let mut server = KvServer { child, socket };
        let started = Instant::now();
        while UnixStream::connect(&server.socket).is_err() {
            if let Some(status) = server.child.try_wait()? {
                return Err(failed(format!("{command:?} ended with {status}")));
            }
            if started.elapsed() > TIMEOUT {
                return Err(failed(format!("does not listen after {} s", TIMEOUT.as_secs())));
            }
            thread::sleep(PAUSE);
        }
        Ok(Some(server))
    }

    /// Returns the socket that the server listens on.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for KvServer {
    fn drop(&mut self) {
        // It keeps nothing that would have to be saved. It may have ended already; both calls are then harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_installed(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    !matches!(asked, Err(error) if error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_none_and_what_ends_an_error() -> Result<(), BenchError> {
        let nowhere = || PathBuf::from("/nowhere/socket");
        assert!(KvServer::start("no-such-server", &[], 0, nowhere())?.is_none());
        let core = beeline_floor::Cores::pair().map_or(0, |cores| cores.first);
        match KvServer::start("false", &[], core, nowhere()) {
            Err(BenchError::Rival { rival, what }) => {
                assert!(rival == "false" && what.contains("ended"), "{what}")
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}
