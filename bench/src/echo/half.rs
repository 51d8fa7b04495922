//! One side of an echo, as the process that started it sees it.

use std::process::Command;
use std::time::Duration;

use beeline_bench_echo::Job;

use super::Launch;
use crate::BenchError;
use beeline_session::Role;

/// How long a side may say nothing: longer than any job takes, and than a slow machine starts a program. Where the two cores
/// have other work too, each of a thousand trips waits for two turns of the scheduler.
const TIMEOUT: Duration = Duration::from_secs(120);
const SAMPLE_BYTES: usize = 8;

/// A running side. Between jobs it waits for the next one and costs nothing. Dropping it ends it.
#[derive(Debug)]
struct Half {
    /// What errors are about: the rival, and which side of it.
    rival: String,
    side: &'static str,
    role: Role,
}

impl Half {
    fn start(rival: &str, side: &'static str, mut command: Command) -> Result<Self, BenchError> {
        match Role::start(&mut command) {
            Ok(role) => Ok(Half { rival: rival.to_owned(), side, role }),
            Err(error) => {
                let what = format!("cannot start {command:?}: {error}");
                Err(BenchError::Rival { rival: rival.to_owned(), what })
            }
        }
    }

    fn tell(&mut self, job: Job) -> Result<(), BenchError> {
        self.role.tell(&job.to_string()).map_err(|error| self.failed(&format!("takes no job: {error}")))
    }

    fn said(&mut self) -> Result<String, BenchError> {
        match self.role.line_within(TIMEOUT) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(self.failed("ended")),
            Err(error) => Err(self.failed(&format!("said nothing for {} s: {error}", TIMEOUT.as_secs()))),
        }
    }

    fn expect(&mut self, words: &str) -> Result<(), BenchError> {
        let said = self.said()?;
        if said == words { Ok(()) } else { Err(self.failed(&format!("said {said:?} and not {words:?}"))) }
    }

    fn stop(mut self) -> Result<(), BenchError> {
        match self.role.end() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.failed(&format!("ended with {status}"))),
            Err(error) => Err(self.failed(&format!("cannot be waited for: {error}"))),
        }
    }

    fn failed(&self, what: &str) -> BenchError {
        BenchError::Rival { rival: self.rival.clone(), what: format!("the {} {what}", self.side) }
    }
}

/// The side that answers.
#[derive(Debug)]
pub struct ServerHalf {
    half: Half,
    address: String,
}

impl ServerHalf {
    /// Starts it on a core.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: it cannot be started or does not get ready; what it says itself is on standard error.
    pub fn start(launch: &Launch, core: usize) -> Result<Self, BenchError> {
        let mut half = Half::start(&launch.name, "server", launch.server(core))?;
        let said = half.said()?;
        match said.strip_prefix("ready ") {
            Some(address) => Ok(ServerHalf { address: address.to_owned(), half }),
            None => Err(half.failed(&format!("said {said:?}, and not that it is ready"))),
        }
    }

    /// Returns the address that a client connects to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Makes it answer as many requests as the job has trips.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: it does not begin.
    pub fn begin(&mut self, job: Job) -> Result<(), BenchError> {
        self.half.tell(job)?;
        self.half.expect("serving")
    }

    /// Waits until it has answered them all.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: it ended, or did not finish.
    pub fn finish(&mut self) -> Result<(), BenchError> {
        self.half.expect("served")
    }

    /// Ends it in good order.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: it did not end well.
    pub fn stop(self) -> Result<(), BenchError> {
        self.half.stop()
    }
}

/// The side that asks.
#[derive(Debug)]
pub(super) struct ClientHalf(Half);

impl ClientHalf {
    /// Starts it on a core, towards a server.
    pub(super) fn start(launch: &Launch, core: usize, address: &str) -> Result<Self, BenchError> {
        let mut half = Half::start(&launch.name, "client", launch.client(core, address))?;
        half.expect("ready")?;
        Ok(ClientHalf(half))
    }

    /// Makes it ask, and gives the ticks of each trip that counts.
    pub(super) fn run(&mut self, job: Job) -> Result<Vec<u64>, BenchError> {
        self.0.tell(job)?;
        self.0.expect(&format!("ticks {}", job.trips))?;
        let mut bytes = vec![0; job.trips as usize * SAMPLE_BYTES];
        let read = self.0.role.read_exact(&mut bytes);
        read.map_err(|error| self.0.failed(&format!("kept its samples: {error}")))?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    /// Ends it in good order.
    pub(super) fn stop(self) -> Result<(), BenchError> {
        self.0.stop()
    }
}
