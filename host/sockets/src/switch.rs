//! Orders to running processes: to take their connections off windows, and to let them go back.

use std::path::Path;
use std::time::{Duration, Instant};

use beeline_domain::{BellAddress, Domain, DomainConfig, Ringer, Rung};
use beeline_socket_rules::{OrderError, Ordered, Windows, order};

const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// What became of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switched {
    /// Processes that have carried it out.
    pub done: Vec<u32>,
    /// Those that have not within the time: they are stopped, and do it when they run.
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
    let started = Instant::now();
    let is_rung = |ringer: &Ringer, process: &Ordered| {
        let rung = ringer.ring(&BellAddress::from_words(process.bell));
        tracing::debug!(pid = process.pid, ?rung, "a process is told of an order");
        rung == Rung::Rung
    };
    match Ringer::new() {
        Ok(ringer) => {
            let not_rung = ordered.iter().filter(|process| !is_rung(&ringer, process)).count();
            if not_rung > 0 {
                wake_others(domain_folder, &|| {
                    started.elapsed() < within && !ordered.iter().all(Ordered::is_carried_out)
                });
            }
        }
        Err(error) => tracing::warn!(%error, "processes are not rung"),
    }
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

/// Wakes processes that have their bells in other network namespaces, as long as that is wanted.
fn wake_others(domain_folder: &Path, is_wanted: &dyn Fn() -> bool) {
    let name = domain_folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let config = DomainConfig { root: domain_folder.parent().map(Path::to_owned), name: name.to_owned() };
    let woken = Domain::open(&config)
        .map_err(|error| error.to_string())
        .and_then(|domain| domain.wake_all_pairs(is_wanted).map_err(|error| error.to_string()));
    if let Err(error) = woken {
        tracing::debug!(error, "processes in other network namespaces are not woken");
    }
}
