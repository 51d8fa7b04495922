//! Both sides of one rival, started, and given jobs.

use beeline_bench_echo::Job;

use super::half::ClientHalf;
use super::{Launch, ServerHalf};
use crate::BenchError;
use beeline_floor::Cores;

/// Two running sides. Between jobs they wait for the next one and cost nothing. Dropping it ends both.
#[derive(Debug)]
pub struct Pair {
    name: String,
    // The client first: it goes while its server is still there.
    client: ClientHalf,
    server: ServerHalf,
}

impl Pair {
    /// Starts the server on the second core and the client on the first one.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: one cannot be started or does not get ready; what it says itself is on standard error.
    pub fn start(launch: &Launch, cores: Cores) -> Result<Self, BenchError> {
        let server = ServerHalf::start(launch, cores.second)?;
        let client = ClientHalf::start(launch, cores.first, server.address())?;
        Ok(Pair { name: launch.name.clone(), client, server })
    }

    /// Returns the rival's name in figures.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes round trips and gives the ticks of each of those that count.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: a side ended, or said nothing for two minutes.
    pub fn run(&mut self, job: Job) -> Result<Vec<u64>, BenchError> {
        self.server.begin(job)?;
        let ticks = self.client.run(job)?;
        self.server.finish()?;
        Ok(ticks)
    }

    /// Ends both sides in good order.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: one did not end well.
    pub fn stop(self) -> Result<(), BenchError> {
        self.client.stop()?;
        self.server.stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORES: Cores = Cores { first: 0, second: 1 };

    /// A shell that plays both sides: `$3` is the side and `$5` the address.
    fn started(script: &str) -> Result<Pair, BenchError> {
        let shell: Vec<String> = ["/bin/sh", "-c", script, "sh"].map(str::to_owned).into();
        Pair::start(&Launch::new("shell", "program", "rival").through(shell.clone(), shell), CORES)
    }

    fn what(outcome: Result<impl std::fmt::Debug, BenchError>) -> String {
        match outcome {
            Err(BenchError::Rival { rival, what }) if rival == "shell" => what,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_side_that_ends_is_an_error_that_says_which() {
        assert_eq!(what(started("exit 1")), "the server ended");
        assert_eq!(what(started("echo hello")), "the server said \"hello\", and not that it is ready");
        let server_only = "[ $3 = server ] && echo ready here && read job";
        assert_eq!(what(started(server_only)), "the client ended");
        let pair = started("[ $3 = server ] && echo ready here || echo ready; read job; echo serving");
        let job = Job { bytes: 10, warm_up: 0, trips: 1 };
        assert_eq!(
            what(pair.and_then(|mut pair| pair.run(job))),
            "the client said \"serving\" and not \"ticks 1\""
        );
    }

    #[test]
    fn samples_are_taken_as_they_come() -> Result<(), BenchError> {
        let script = "if [ $3 = server ]; then echo ready here; read job; echo serving; echo served; read end; exit 0
            else [ $5 = here ] && echo ready; read job; echo ticks 2; printf '\\001\\0\\0\\0\\0\\0\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0'; read end; exit 0; fi";
        let mut pair = started(script)?;
        assert_eq!(pair.run(Job { bytes: 10, warm_up: 0, trips: 2 })?, [1, 256]);
        assert_eq!(pair.name(), "shell");
        pair.stop()
    }
}
