//! What a wake-up between two sleepers costs here: there and back by bells, and by a connection of TCP, in turn.
//!
//! `cargo run --release -p beeline-domain --example bell`

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use beeline_domain::{Bell, BellAddress, Ringer, Rung};
use rustix::event::{PollFd, PollFlags, poll};

const ROUNDS: usize = 7;
const TRIPS: usize = 5_000;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn sleep_on(what: impl AsFd) -> Fallible<()> {
    poll(&mut [PollFd::new(&what, PollFlags::IN)], None)?;
    Ok(())
}

/// Times of there and back between this thread and another one. Each side waits until it is woken, and wakes the other.
fn trips<S: Send>(
    there: &mut S,
    here: &mut S,
    wait: fn(&mut S) -> Fallible<()>,
    wake: fn(&mut S) -> Fallible<()>,
) -> Fallible<Vec<Duration>> {
    thread::scope(|scope| {
        let answers = scope.spawn(move || {
            (0..TRIPS).try_for_each(|_| {
                wait(here)?;
                wake(here)
            })
        });
        let mut times = Vec::with_capacity(TRIPS);
        for _ in 0..TRIPS {
            let started = Instant::now();
            wake(there)?;
            wait(there)?;
            times.push(started.elapsed());
        }
        answers.join().map_err(|_| "the other side failed")??;
        Ok(times)
    })
}

struct Side {
    bell: Bell,
    ringer: Ringer,
    other: BellAddress,
}

fn main() -> Fallible<()> {
    let bells = [Bell::new()?, Bell::new()?];
    let [first, second] = bells.each_ref().map(Bell::address);
    let [one, two] = bells;
    let mut there = Side { bell: one, ringer: Ringer::new()?, other: second };
    let mut here = Side { bell: two, ringer: Ringer::new()?, other: first };
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let mut server = listener.accept()?.0;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    for _ in 0..ROUNDS {
        let by_bells = trips(
            &mut there,
            &mut here,
            |side| {
                sleep_on(&side.bell)?;
                if side.bell.clear() { Ok(()) } else { Err("the bell was lost".into()) }
            },
            |side| if side.ringer.ring(&side.other) == Rung::Rung { Ok(()) } else { Err("not rung".into()) },
        )?;
        let by_tcp = trips(
            &mut client,
            &mut server,
            |side| {
                sleep_on(&*side)?;
                Ok(side.read_exact(&mut [0; 64])?)
            },
            |side| Ok(side.write_all(&[0; 64])?),
        )?;
        print("bells", by_bells);
        print("TCP, poll and read of 64 B", by_tcp);
    }
    Ok(())
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1000].as_nanos();
    println!("{what:28} p50 {} p99 {} p99.9 {} ns", at(500), at(990), at(999));
}
