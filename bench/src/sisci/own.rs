//! The programs that come with rivals and measure them: `ucx_perftest`, `fi_pingpong`, `fi_rma_bw`, beside the rivals in the loop of all.
//!
//! Each has a loop and a clock of its own, and says one number a run; a run is a round here, between those of the loop of all. They count
//! half of a round trip, which is doubled. Where one is not installed its row says so.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use beeline_floor::on_core;

use crate::figure::{Latencies, Row};
use crate::{BenchError, Figure, Missing, Settings};

/// Messages of a run.
const MESSAGES: u64 = 500_000;
/// Of those that are slow.
const FEWER: u64 = 50_000;
const BYTES: u32 = 64;
/// How long a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a run may take.
const LONGEST: Duration = Duration::from_secs(20);

/// What a number of a program's last line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// Microseconds of one way.
    OneWayUs,
    /// Messages a second, in millions or as they are.
    MillionsPerSecond,
    PerSecond,
}

/// A program, and where the number is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    program: &'static str,
    /// How to get it.
    remedy: &'static str,
    /// What it measures, as it calls that.
    what: &'static str,
    arguments: &'static [&'static str],
    messages: u64,
    /// Options for the number of messages, the server's port and the client's.
    options: [&'static str; 3],
    /// Which word of the last line that begins with a number, words being between these.
    word: usize,
    between: char,
    says: Says,
}

const UCX: Own = Own {
    program: "ucx_perftest",
    remedy: "`apt-get install ucx-utils`",
    what: "ucp_put_lat, its p50",
    arguments: &["-t", "ucp_put_lat", "-s", "64", "-f", "-v"],
    messages: MESSAGES,
    options: ["-n", "-p", "-p"],
    word: 1,
    between: ',',
    says: Says::OneWayUs,
};
pub(super) const ROUND_TRIPS: [Own; 2] = [
    UCX,
    Own {
        program: "fi_pingpong",
        remedy: "`apt-get install libfabric-bin`",
        what: "its mean",
        arguments: &["-p", "shm", "-e", "rdm", "-S", "64"],
        messages: FEWER,
        options: ["-I", "-B", "-P"],
        word: 6,
        between: ' ',
        says: Says::OneWayUs,
    },
];
pub(super) const STREAMS: [Own; 2] = [
    Own {
        what: "ucp_put_bw",
        arguments: &["-t", "ucp_put_bw", "-s", "64", "-f", "-v"],
        word: 7,
        says: Says::PerSecond,
        ..UCX
    },
    Own {
        program: "fi_rma_bw",
        remedy: "it is of fabtests, which Debian does not have: build it from libfabric's sources",
        what: "writes",
        arguments: &["-p", "shm", "-o", "write", "-S", "64"],
        messages: FEWER,
        options: ["-I", "-B", "-P"],
        word: 6,
        between: ' ',
        says: Says::MillionsPerSecond,
    },
];

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program and what its runs said, or why one did not.
pub(super) struct Runs<'a> {
    own: &'a Own,
    said: Result<Vec<f64>, String>,
}

impl<'a> Runs<'a> {
    pub(super) fn of(own: &'a Own) -> Self {
        Runs { own, said: Ok(Vec::new()) }
    }

    /// Runs it once. One that has failed is not run again.
    pub(super) fn round(&mut self, settings: &Settings) {
        if let Ok(said) = &mut self.said {
            match run(self.own, settings) {
                Ok(number) => said.push(number),
                Err(why) => self.said = Err(why),
            }
        }
    }

    pub(super) fn figure(self, bench: &str) -> Result<Figure, Missing> {
        let Runs { own, said } = self;
        let name = format!("{}, {}, {BYTES} B", own.program, own.what);
        let said = said.map_err(|why| Missing { bench: bench.to_owned(), name: name.clone(), why })?;
        let (kernel, memory, count) = ("-", "shared memory", own.messages);
        let row = Row { bench, name: &name, kernel, memory, size_bytes: BYTES, count };
        if own.says != Says::OneWayUs {
            return Ok(Figure::rate(row, said));
        }
        let mut latencies = Latencies::new();
        said.iter().for_each(|ns| latencies.add_round(&[*ns]));
        Ok(Figure::latency(row, latencies))
    }
}

/// One run: nanoseconds there and back, or messages a second; or why there are none.
fn run(own: &Own, settings: &Settings) -> Result<f64, String> {
    let port = free_port().map_err(|error| format!("no port: {error}"))?;
    let start = |core, option: &str, address: Option<&str>| {
        let mut command = Command::new(own.program);
        command.args(address).args(own.arguments).args([own.options[0], &own.messages.to_string()]);
        command.args([option, &port]).env("UCX_TLS", "posix,self").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        // Whom a thread starts is bound as it is.
        let started = on_core::<_, BenchError>(core, || Ok(command.spawn()?));
        started
            .map(Running)
            .map_err(|error| format!("{} does not start ({error}): {}", own.program, own.remedy))
    };
    let began = Instant::now();
    let _server = start(settings.cores.second, own.options[1], None)?;
    loop {
        let client = start(settings.cores.first, own.options[2], Some("127.0.0.1"))?;
        if let Some(found) = answer(own, client)? {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("{} has said nothing", own.program));
        }
    }
}

/// What the client says in the end; nothing if it has not found the server, which may be about to listen.
fn answer(own: &Own, mut client: Running) -> Result<Option<f64>, String> {
    let began = Instant::now();
    while client.0.try_wait().map_err(|error| error.to_string())?.is_none() {
        if began.elapsed() > LONGEST {
            return Err(format!("{} has not ended in {} s", own.program, LONGEST.as_secs()));
        }
        sleep(Duration::from_millis(20));
    }
    let mut said = String::new();
    let mut output = client.0.stdout.take().ok_or("no output")?;
    output.read_to_string(&mut said).map_err(|error| error.to_string())?;
    Ok(number(own, &said))
}

/// The number of the last line that begins with one.
fn number(own: &Own, said: &str) -> Option<f64> {
    let line = said.lines().rfind(|line| line.trim_start().starts_with(|it: char| it.is_ascii_digit()))?;
    let mut words = line.split(own.between).map(str::trim).filter(|word| !word.is_empty());
    let found: f64 = words.nth(own.word)?.parse().ok()?;
    Some(match own.says {
        Says::OneWayUs => found * 2e3,
        Says::MillionsPerSecond => found * 1e6,
        Says::PerSecond => found,
    })
}

fn free_port() -> std::io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_what_the_programs_say() {
        let ucx = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n\
                   100000,0.060,7.872,14.198,7.75,4.30,127030,70432\n";
        assert_eq!(number(&ROUND_TRIPS[0], ucx), Some(120.0));
        assert_eq!(number(&STREAMS[0], ucx), Some(70432.0));
        let fi = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                  64      50k     =50k     6.1m        0.03s    200.00       0.32       3.12\n";
        assert_eq!(number(&ROUND_TRIPS[1], fi), Some(640.0));
        let rma = "bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                   64      50k     3.0m        0.01s    256.00       0.25       4.00\n";
        assert_eq!(number(&STREAMS[1], rma), Some(4e6));
        assert_eq!(number(&STREAMS[1], "cannot connect\n"), None);
    }

    #[test]
    fn program_that_is_not_there_is_missing_with_how_to_get_it() {
        let own = Own { program: "no_such_program_of_a_rival", ..UCX };
        let mut runs = Runs::of(&own);
        (0..2).for_each(|_| runs.round(&Settings::quick().unwrap()));
        let missing = runs.figure("b").unwrap_err();
        assert!(missing.why.contains("apt-get install ucx-utils"), "{missing:?}");
    }
}
