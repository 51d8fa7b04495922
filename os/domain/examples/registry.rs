//! What a registry costs here: times of put and remove, of find, and of joining, in a folder that is given or a temporary one.
//!
//! `cargo run --release -p beeline-domain --example registry [folder]`

use std::error::Error;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig, Entry, Kind};

const ROUNDS: usize = 20_000;
const JOINS: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let root = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let config = DomainConfig { root: Some(root), name: "registry-cost".to_owned() };
    let registry = Domain::open(&config)?.registry("names")?;
    let holder = registry.join(NonZeroU64::MIN)?;
    let entry = |id| Entry { kind: Kind::new(1).expect("1 to 7"), id, slot: 0 };
    let find = |id| Ok(registry.find(entry(id).kind, id).map(drop)?);
    for id in 0..1000 {
        holder.put(entry(id), |_| false)?;
    }
    time("put and remove", ROUNDS, |round| {
        holder.put(entry(1000 + round as u32), |_| false)?;
        holder.remove(entry(1000 + round as u32))?;
        Ok(())
    })?;
    time("find one", ROUNDS, |round| find(round as u32 % 1000))?;
    time("find none", ROUNDS, |round| find(1000 + round as u32))?;
    time("join and leave", JOINS, |_| Ok(registry.join(NonZeroU64::MAX).map(drop)?))
}

/// Prints how long `work` took in the middle and at the end.
fn time(
    what: &str,
    rounds: usize,
    mut work: impl FnMut(usize) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut times: Vec<Duration> = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let started = Instant::now();
        work(round)?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    println!("{what}: p50 {:?}, p99 {:?}", times[rounds / 2], times[rounds * 99 / 100]);
    Ok(())
}
