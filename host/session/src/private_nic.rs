//! A NIC process of one's own: started for a measurement, stopped with it.

use std::io::Read;
use std::process::{ChildStderr, Stdio};

use beeline_domain::DomainConfig;
use beeline_mmio::StoreKernel;

use crate::nic_options::{NicOptions, READY, SERVICE};
use crate::private_domain::PrivateDomain;
use crate::role::{Program, Role};
use crate::serve::ServeArgs;
use crate::{NicError, SessionOptions};

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
        SessionOptions { domain: self.domain().clone(), nic: self.name().to_owned(), kernel }
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
