//! Orders to running processes: to take their connections off windows, and to let them go back.

use std::path::Path;
use std::time::{Duration, Instant};

use beeline_domain::{BellAddress, Ringer};
use beeline_socket_rules::{OrderError, Ordered, Windows, order};

const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// What became of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switched {
    /// Processes that have carried it out.
    pub done: Vec<u32>,
    /// Those that have not within the time: they are stopped, or in another network namespace, and do it when they run and are rung.
    pub not_yet: Vec<u32>,
}

/// Orders all processes of a domain, or those with these numbers, to take their connections off windows or to let them go back. Waits until they have
/// done so, for `within` at most.
///
/// # Errors
/// The folder of the domain cannot be used.
pub fn switch(
    domain_folder: &Path,
    pids: &[u32],
    to: Windows,
    within: Duration,
) -> Result<Switched, OrderError> {
    let ordered = order(domain_folder, pids, to)?;
    match Ringer::new() {
        Ok(ringer) => ordered.iter().for_each(|process| {
            let rung = ringer.ring(&BellAddress::from_words(process.bell));
            tracing::debug!(pid = process.pid, ?rung, "a process is told of an order");
        }),
        Err(error) => tracing::warn!(%error, "processes are not rung"),
    }
    let started = Instant::now();
    let (mut done, mut waiting) = (Vec::new(), ordered);
    loop {
        let (ended, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(Ordered::is_carried_out);
        done.extend(ended.iter().map(|process| process.pid));
        if rest.is_empty() || started.elapsed() >= within {
            let not_yet = rest.iter().map(|process| process.pid).collect();
            return Ok(Switched { done, not_yet });
        }
        waiting = rest;
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
