//! A NIC process of one's own: started for a measurement, stopped with it.

use std::io::Read;
use std::process::{ChildStderr, Stdio};
use std::time::{Duration, Instant};

use beeline_domain::DomainConfig;
use beeline_mmio::StoreKernel;

use crate::nic_options::{NicOptions, READY, SERVICE};
use crate::private_domain::PrivateDomain;
use crate::role::{Program, Role};
use crate::serve::ServeArgs;
use crate::{NicError, SessionOptions, TIMEOUT};

/// The hidden subcommand that runs [`crate::serve`], in every program that starts a [`PrivateNic`] of itself.
const ROLE: &str = "private-nic";

/// Bytes of a failed NIC's last words that are shown.
const LAST_WORDS_BYTES: u64 = 8192;

/// A running private NIC. Dropping it ends the process; what it left in its domain is removed.
#[derive(Debug)]
pub struct PrivateNic {
    // Before the domain: the folder goes when the process has ended.
    role: Role,
    stderr: Option<ChildStderr>,
    domain: PrivateDomain,
}

impl PrivateNic {
    /// Starts a NIC as a process of `program` in a domain of its own and waits until ports can reach it.
    ///
    /// # Errors
    /// The process cannot be started, or ends before it is ready.
    pub fn start(program: &Program, options: &NicOptions) -> Result<Self, NicError> {
        let domain = PrivateDomain::new_in(options.root.clone()).map_err(NicError::Random)?;
        let args = ServeArgs { domain: domain.name().to_owned(), options: options.clone() };
        let mut command = program.command(ROLE);
        command.args(args.to_args()).stderr(Stdio::piped());
        let failed = |source| NicError::Start { program: program.path().to_owned(), source };
        let mut role = Role::start(&mut command).map_err(failed)?;
        let stderr = role.take_stderr();
        let mut nic = PrivateNic { role, stderr, domain };
        if nic.role.line().as_deref() == Some(READY) {
            Ok(nic)
        } else {
            Err(nic.last_words("ended before it was ready".to_owned()))
        }
    }

    /// Domain the NIC lives in.
    pub fn domain(&self) -> &DomainConfig {
        self.domain.config()
    }

    /// Name of the NIC in its domain.
    pub fn name(&self) -> &'static str {
        SERVICE
    }

    /// Where a [`crate::Session`] finds it, storing with `kernel`.
    pub fn session_options(&self, kernel: StoreKernel) -> SessionOptions {
        SessionOptions::new(self.domain().clone(), self.name(), kernel)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.role.pid()
    }

    /// Waits until the NIC has nothing to do and sleeps, so that its core is free.
    ///
    /// # Errors
    /// [`NicError::TimedOut`] when it does not come to rest, as one that yields for ever ([`NicOptions::spin`] off).
    pub fn until_asleep(&self) -> Result<(), NicError> {
        let start = Instant::now();
        while !is_asleep(self.role.pid()) {
            if start.elapsed() > TIMEOUT {
                let what = "the NIC to sleep".to_owned();
                return Err(NicError::TimedOut { seconds: TIMEOUT.as_secs(), what });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Ends the NIC in good order, so that captures are whole, and waits for it.
    ///
    /// # Errors
    /// It failed, with its last words.
    pub fn stop(mut self) -> Result<(), NicError> {
        let status = self.role.end().map_err(NicError::Wait)?;
        if status.success() { Ok(()) } else { Err(self.last_words(format!("failed ({status})"))) }
    }

    fn last_words(&mut self, how: String) -> NicError {
        let mut words = String::new();
        if let Some(stderr) = &mut self.stderr {
            // What cannot be read is missing from the message, nothing else.
            let _ = self.role.kill();
            let _ = stderr.take(LAST_WORDS_BYTES).read_to_string(&mut words);
        }
        NicError::Ended { how, words: words.trim().to_owned() }
    }
}

/// Whether every thread of a process waits in the kernel.
fn is_asleep(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        // A thread that is gone by now runs no more.
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The name before the state is in parentheses, and may hold any byte.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('S'))
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn process_that_waits_is_asleep_and_one_that_works_is_not() -> std::io::Result<()> {
        let waiting = Role::start(&mut Command::new("cat"))?;
        let working = Role::start(Command::new("sh").args(["-c", "while :; do :; done"]))?;
        let end = Instant::now() + TIMEOUT;
        while !is_asleep(waiting.pid()) {
            assert!(Instant::now() < end, "cat waits for its input");
        }
        // It may not have come to its loop yet, or be on its way to it.
        while is_asleep(working.pid()) {
            assert!(Instant::now() < end, "the loop never sleeps");
        }
        assert!(!is_asleep(u32::MAX), "a process that is not there is not asleep");
        Ok(())
    }
}
