//! What a round of a case gives, where it runs, and how numbers are found in what programs say.

use std::time::Duration;

use beeline_floor::Cores;

use crate::programs::{Ended, Ground, Job, Share};
use crate::{BenchError, Settings};

/// How long a client may take.
pub(super) const LIMIT: Duration = Duration::from_secs(120);
pub(super) const MICROSECOND: f64 = 1e3;

/// What one round of a case gave.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Requests, messages or bits a second; for idle connections, the part of a core that both ends used.
    pub rate: f64,
    /// What the client says of its latencies: name, nanoseconds.
    pub latencies: Vec<(&'static str, f64)>,
    pub cpu: Duration,
    pub share: Share,
}

/// Where a case runs, and on which cores.
pub(super) struct Place<'a> {
    pub ground: &'a Ground,
    pub cores: Cores,
    pub settings: &'a Settings,
}

impl Place<'_> {
    pub(super) fn server(&self) -> Option<usize> {
        Some(self.cores.second)
    }

    pub(super) fn client(&self) -> Option<usize> {
        Some(self.cores.first)
    }
}

/// The rest of the first line that begins so, and its first number.
pub(super) fn number(said: &str, beginning: &str) -> Option<f64> {
    let rest = said.lines().find_map(|line| line.trim().strip_prefix(beginning))?;
    let first = rest.trim_start_matches(|sign: char| !sign.is_ascii_digit());
    let digits: String = first.chars().take_while(|sign| sign.is_ascii_digit() || *sign == '.').collect();
    digits.parse().ok()
}

pub(super) fn needed(program: &str, said: &str, beginning: &str) -> Result<f64, BenchError> {
    number(said, beginning).ok_or_else(|| BenchError::Rival {
        rival: program.to_owned(),
        what: format!("does not say `{beginning}`: {said}"),
    })
}

impl Measured {
    pub(super) fn of(rate: f64, client: &Ended, server: &Ended) -> Self {
        let mut share = client.share();
        share += server.share();
        Measured { rate, latencies: Vec::new(), cpu: client.cpu + server.cpu, share }
    }
}

/// Says how many there were a second and what they took, as [`number`] finds it.
pub(super) fn tell(mut times: Vec<Duration>, took: Duration) {
    println!("a second: {:.1}", times.len() as f64 / took.as_secs_f64());
    times.sort_unstable();
    for (name, fraction) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let at = (times.len() as f64 * fraction) as usize;
        println!("{name}: {}", times[at.min(times.len() - 1)].as_nanos());
    }
}

/// This program as an end: what it says is in nanoseconds.
pub(super) fn own_end(place: &Place<'_>, words: &str, port: u16) -> Job {
    let program = place.settings.program.path().to_string_lossy().into_owned();
    Job::new(&program).arg("sockets-client").words(words).arg(port)
}
