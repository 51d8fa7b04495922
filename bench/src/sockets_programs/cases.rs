//! What is measured of each program, and what is made of what its client says.

use std::time::Duration;

use beeline_floor::Cores;

use crate::programs::servers::{self, Pages, Postgres, Server};
use crate::programs::{Ended, Ground, Job, Share, Way};
use crate::{BenchError, Settings};

/// How long a client may take.
const LIMIT: Duration = Duration::from_secs(120);
const MILLISECOND: f64 = 1e6;
const MICROSECOND: f64 = 1e3;

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
    fn server(&self) -> Option<usize> {
        Some(self.cores.second)
    }

    fn client(&self) -> Option<usize> {
        Some(self.cores.first)
    }
}

/// A program, and what is asked of it.
pub(super) struct Case {
    pub name: &'static str,
    /// Programs and the packages that bring them.
    pub needs: &'static [(&'static str, &'static str)],
    /// The way that is compared with the native one.
    pub way: Way,
    /// Times that our rate is to be the native one.
    pub least: f64,
    /// The rate is of something that is to be nothing.
    pub rate_is_waste: bool,
    pub run: fn(&Place<'_>) -> Result<Measured, BenchError>,
}

const REDIS: &[(&str, &str)] = &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")];
const NGINX: &[(&str, &str)] = &[("nginx", "nginx-light"), ("wrk", "wrk")];
const IPERF3: &[(&str, &str)] = &[("iperf3", "iperf3")];
const SOCKPERF: &[(&str, &str)] = &[("sockperf", "sockperf")];
const POSTGRES: &[(&str, &str)] = &[("postgresql", "postgresql"), ("pgbench", "postgresql")];
const MEMCACHED: &[(&str, &str)] = &[("memcached", "memcached")];

const fn case(
    name: &'static str,
    needs: &'static [(&'static str, &'static str)],
    least: f64,
    run: fn(&Place<'_>) -> Result<Measured, BenchError>,
) -> Case {
    Case { name, needs, way: Way::Accelerated, least, rate_is_waste: false, run }
}

pub(super) const CASES: &[Case] = &[
    case("redis, 1 connection", REDIS, 3.0, |place| redis(place, 1)),
    case("redis, 50 connections", REDIS, 1.0, |place| redis(place, 50)),
    Case {
        way: Way::Preloaded,
        ..case("redis, 50 connections, accelerate = false", REDIS, 0.98, |place| redis(place, 50))
    },
    case("memcached, 1 connection", MEMCACHED, 3.0, memcached),
    case("nginx, 1 kept connection", NGINX, 3.0, |place| nginx(place, 1)),
    case("nginx, 50 kept connections", NGINX, 1.0, |place| nginx(place, 50)),
    case("pgbench -S, 1 connection", POSTGRES, 1.0, |place| pgbench(place, 1)),
    case("pgbench -S, 8 connections", POSTGRES, 1.0, |place| pgbench(place, 8)),
    case("iperf3 -l 64", IPERF3, 5.0, |place| iperf3(place, "64")),
    case("iperf3 -l 4K", IPERF3, 4.0, |place| iperf3(place, "4K")),
    case("iperf3 -l 1M", IPERF3, 2.0, |place| iperf3(place, "1M")),
    case("writes of 64 B", &[], 5.0, |place| stream(place, 64)),
    case("writes of 4 KiB", &[], 4.0, |place| stream(place, 4 << 10)),
    case("writes of 1 MiB", &[], 2.0, |place| stream(place, 1 << 20)),
    case("sockperf, spinning", SOCKPERF, 15.0, |place| sockperf(place, None)),
    case("sockperf, sleeping", SOCKPERF, 1.0, |place| sockperf(place, Some("0"))),
    case("connect and accept", &[], 0.8, connect),
    Case { rate_is_waste: true, ..case("1,000 idle connections", &[], 0.0, idle) },
];

/// The rest of the first line that begins so, and its first number.
fn number(said: &str, beginning: &str) -> Option<f64> {
    let rest = said.lines().find_map(|line| line.trim().strip_prefix(beginning))?;
    let first = rest.trim_start_matches(|sign: char| !sign.is_ascii_digit());
    let digits: String = first.chars().take_while(|sign| sign.is_ascii_digit() || *sign == '.').collect();
    digits.parse().ok()
}

fn needed(program: &str, said: &str, beginning: &str) -> Result<f64, BenchError> {
    number(said, beginning).ok_or_else(|| BenchError::Rival {
        rival: program.to_owned(),
        what: format!("does not say `{beginning}`: {said}"),
    })
}

impl Measured {
    fn of(rate: f64, client: &Ended, server: &Ended) -> Self {
        let mut share = client.share();
        share += server.share();
        Measured { rate, latencies: Vec::new(), cpu: client.cpu + server.cpu, share }
    }
}

fn redis(place: &Place<'_>, connections: u32) -> Result<Measured, BenchError> {
    let server = servers::redis(place.ground, place.server())?;
    let job = Job::new("redis-benchmark")
        .words("--csv -t get -n 100000 -c")
        .arg(connections)
        .arg("-p")
        .arg(server.port);
    let client = place.ground.run(job.on(place.client()), LIMIT)?;
    let line = client.out.lines().find(|line| line.starts_with("\"GET\"")).unwrap_or_default().to_owned();
    let fields: Vec<f64> = line.split(',').filter_map(|field| field.trim_matches('"').parse().ok()).collect();
    // Requests a second; then milliseconds: average, least, p50, p95, p99, most.
    let [rate, _, _, p50, _, p99, _] = fields[..] else {
        return Err(BenchError::Rival { rival: "redis-benchmark".to_owned(), what: client.out });
    };
    let mut measured = Measured::of(rate, &client, &server.end()?);
    measured.latencies = vec![("p50", p50 * MILLISECOND), ("p99", p99 * MILLISECOND)];
    Ok(measured)
}

/// Asks with this program: what it says is in nanoseconds.
fn ask(place: &Place<'_>, words: &str, port: u16) -> Result<Ended, BenchError> {
    let job = Job::new(&place.settings.program.path().to_string_lossy());
    place.ground.run(job.arg("sockets-client").words(words).arg(port).on(place.client()), LIMIT)
}

fn own_server(place: &Place<'_>, what: &str) -> Result<Server, BenchError> {
    let program = place.settings.program.path().to_string_lossy().into_owned();
    Server::start(place.ground, |port| {
        Job::new(&program).arg("sockets-client").words(what).arg(port).on(place.server())
    })
}

fn with_own_latencies(mut measured: Measured, said: &str) -> Measured {
    for name in ["p50", "p99", "p99.9"] {
        measured.latencies.extend(number(said, &format!("{name}: ")).map(|found| (name, found)));
    }
    measured
}

fn memcached(place: &Place<'_>) -> Result<Measured, BenchError> {
    let server = servers::memcached(place.ground, place.server())?;
    let client = ask(place, "memcached", server.port)?;
    let rate = needed("client of memcached", &client.out, "a second: ")?;
    Ok(with_own_latencies(Measured::of(rate, &client, &server.end()?), &client.out))
}

fn connect(place: &Place<'_>) -> Result<Measured, BenchError> {
    let server = own_server(place, "accept")?;
    let client = ask(place, "connect", server.port)?;
    let rate = needed("client that connects", &client.out, "a second: ")?;
    Ok(with_own_latencies(Measured::of(rate, &client, &server.end()?), &client.out))
}

fn idle(place: &Place<'_>) -> Result<Measured, BenchError> {
    let server = own_server(place, "hold")?;
    let client = ask(place, "idle", server.port)?;
    let used = needed("client with idle connections", &client.out, "used: ")?;
    // It ends with its connections.
    Ok(Measured::of(used, &client, &server.wait(LIMIT)?))
}

fn nginx(place: &Place<'_>, connections: u32) -> Result<Measured, BenchError> {
    let root = place.ground.folder("pages", None)?;
    place.ground.file("pages/index.html", "a page\n".repeat(88))?;
    let http = "keepalive_requests 1000000000; sendfile on; tcp_nopush on;";
    let server =
        servers::nginx(place.ground, Pages { root: &root, workers: 1, user: "root", http }, place.server())?;
    let job = Job::new("wrk").words("--latency -t1 -d2s -c").arg(connections);
    let job = job.arg(format!("http://127.0.0.1:{}/", server.port)).on(place.client());
    let client = place.ground.run(job, LIMIT)?;
    let mut measured = Measured::of(needed("wrk", &client.out, "Requests/sec:")?, &client, &server.end()?);
    for (name, line) in [("p50", "50%"), ("p99", "99%")] {
        measured.latencies.extend(wrk_time(&client.out, line).map(|found| (name, found)));
    }
    Ok(measured)
}

/// A time of wrk's, `12.00us` or `1.02ms`, in nanoseconds.
fn wrk_time(said: &str, beginning: &str) -> Option<f64> {
    let value = said.lines().find_map(|line| line.trim().strip_prefix(beginning))?.trim();
    let units = [("us", MICROSECOND), ("ms", MILLISECOND), ("s", 1e9)];
    units.into_iter().find_map(|(unit, scale)| Some(value.strip_suffix(unit)?.parse::<f64>().ok()? * scale))
}

fn pgbench(place: &Place<'_>, connections: u32) -> Result<Measured, BenchError> {
    let postgres = Postgres::start(place.ground, place.server())?;
    place.ground.run(postgres.client("pgbench").words("-i -s 1 -q"), LIMIT)?;
    let job =
        postgres.client("pgbench").words("-n -S -M prepared -T 2 -c").arg(connections).on(place.client());
    let client = place.ground.run(job, LIMIT)?;
    let (rate, average) =
        (needed("pgbench", &client.out, "tps = ")?, needed("pgbench", &client.out, "latency average = ")?);
    let mut measured = Measured::of(rate, &client, &postgres.server.end()?);
    measured.latencies.push(("average", average * MILLISECOND));
    Ok(measured)
}

fn iperf3(place: &Place<'_>, length: &str) -> Result<Measured, BenchError> {
    let server = servers::iperf3(place.ground, place.server())?;
    let job = Job::new("iperf3").words("-c 127.0.0.1 --json -t 1 -l").arg(length).arg("-p").arg(server.port);
    let client = place.ground.run(job.on(place.client()), LIMIT)?;
    let received = client.out.split_once("\"sum_received\"").map_or("", |(_, rest)| rest);
    let rate = needed("iperf3", received, "\"bits_per_second\":")?;
    Ok(Measured::of(rate, &client, &server.wait(LIMIT)?))
}

/// The bare loop beside iperf3: no other call between two writes, or between two reads.
fn stream(place: &Place<'_>, bytes: usize) -> Result<Measured, BenchError> {
    let server = own_server(place, &format!("read --bytes {bytes}"))?;
    let client = ask(place, &format!("write --bytes {bytes}"), server.port)?;
    let server = server.wait(LIMIT)?;
    Ok(Measured::of(needed("reader", &server.out, "bits a second: ")?, &client, &server))
}

fn sockperf(place: &Place<'_>, spin: Option<&str>) -> Result<Measured, BenchError> {
    let server = Server::start(place.ground, |port| {
        let job = Job::new("sockperf").words("server --tcp -i 127.0.0.1 -p").arg(port).on(place.server());
        with_spin(job, spin)
    })?;
    let job =
        Job::new("sockperf").words("ping-pong --tcp -i 127.0.0.1 -m 64 -t 1 --mps 500000 --full-rtt -p");
    let client = place.ground.run(with_spin(job.arg(server.port).on(place.client()), spin), LIMIT)?;
    let lines: Vec<&str> =
        client.out.lines().filter_map(|line| line.split_once("---> ")).map(|(_, rest)| rest).collect();
    let said = lines.join("\n");
    let time = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_once('=')?.1.trim().parse::<f64>().ok())
            .map(|found| found * MICROSECOND)
    };
    let Some(middle) = time("percentile 50.000") else {
        return Err(BenchError::Rival { rival: "sockperf".to_owned(), what: client.out });
    };
    // Messages there and back one after the other: as many a second as fit.
    let mut measured = Measured::of(1e9 / middle, &client, &server.end()?);
    for (name, line) in
        [("p50", "percentile 50.000"), ("p99", "percentile 99.000"), ("p99.9", "percentile 99.900")]
    {
        measured.latencies.extend(time(line).map(|found| (name, found)));
    }
    Ok(measured)
}

fn with_spin(job: Job, spin: Option<&str>) -> Job {
    match spin {
        Some(spin) => job.env("BEELINE_SOCKETS_SPIN", spin),
        None => job,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_what_clients_say() {
        let wrk = "  Latency Distribution\n     50%   12.00us\n     99%    1.02ms\nRequests/sec:  81234.50\n";
        assert_eq!(number(wrk, "Requests/sec:"), Some(81234.5));
        assert_eq!((wrk_time(wrk, "50%"), wrk_time(wrk, "99%")), (Some(12e3), Some(1.02e6)));
        assert_eq!(number("tps = 1234.5 (without initial connection time)", "tps = "), Some(1234.5));
        assert_eq!(number("\t\t\"bits_per_second\":\t3.1e10,", "\"bits_per_second\":"), Some(3.1));
        assert_eq!(number("nothing", "tps = "), None);
    }
}
