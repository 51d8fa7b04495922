//! What the table of connections costs here: times of a look that finds nobody and of one that finds another process, in a folder that
//! is given or a temporary one.
//!
//! `cargo run --release -p beeline-domain --example connection_table [folder]`

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use beeline_domain::{ConnectionEnds, Domain, DomainConfig, OtherProcess};

const ROUNDS: u16 = 20_000;
/// Looks that are timed together.
const BATCH: u16 = 50;

fn end(port: u16) -> ConnectionEnds {
    let address = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    ConnectionEnds::new(1, address(port), address(65_000))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let temporary = tempfile::tempdir()?;
    let root = arguments.next().map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let config = DomainConfig { root: Some(root.clone()), name: "table-cost".to_owned() };
    let table = Domain::open(&config)?.connection_table()?;
    if arguments.next().is_some() {
        for port in 0..ROUNDS {
            table.find(&end(port).mirrored())?;
        }
        std::io::stdout().write_all(b"x\n")?;
        // Until the other process has ended.
        std::io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    time("look, nobody there", |port| Ok(table.find(&end(port + ROUNDS))? == OtherProcess::NotYet))?;
    let mut other = Command::new(std::env::current_exe()?);
    other.arg(root).arg("other").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut other = other.spawn()?;
    other.stdout.as_mut().ok_or("no output")?.read_exact(&mut [0])?;
    time("look, somebody there", |port| Ok(matches!(table.find(&end(port))?, OtherProcess::Found(_))))?;
    drop(other.stdin.take());
    other.wait()?;
    Ok(())
}

/// Prints how long `look` took, by batches, at best, in the middle and at the end, and how often it did not see what it was to see.
fn time(what: &str, look: impl Fn(u16) -> Result<bool, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let mut times: Vec<Duration> = Vec::new();
    let mut others = 0;
    for first in (0..ROUNDS).step_by(BATCH.into()) {
        let started = Instant::now();
        for port in first..first + BATCH {
            others += u32::from(!look(port)?);
        }
        times.push(started.elapsed() / BATCH.into());
    }
    times.sort_unstable();
    let (middle, end) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{what}: least {:?}, p50 {middle:?}, p99 {end:?}; {others} saw something else", times[0]);
    Ok(())
}
