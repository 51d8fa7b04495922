//! What is measured of each program, and what is made of what its client says.

use super::datagrams::{one_way, there_and_back, to_group};
use super::measured::{LIMIT, MICROSECOND, Measured, Place, needed, number, own_end};
use super::round_trips::{AT_ONCE, cores, ping_pong, sockperf, sockperf_between_hosts};
use crate::BenchError;
use crate::programs::servers::{self, Pages, Postgres, Server};
use crate::programs::{Ended, Job, Way};

const MILLISECOND: f64 = 1e6;

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
const HAPROXY: &[(&str, &str)] = &[("haproxy", "haproxy"), ("nginx", "nginx-light"), ("wrk", "wrk")];
const IPERF3: &[(&str, &str)] = &[("iperf3", "iperf3")];
const SOCKPERF: &[(&str, &str)] = &[("sockperf", "sockperf")];
const NAMESPACES: &[(&str, &str)] =
    &[("sockperf", "sockperf"), ("ip", "iproute2"), ("unshare", "util-linux")];
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
    case("haproxy and nginx, 1 kept connection", HAPROXY, 1.0, |place| haproxy(place, 1)),
    case("haproxy and nginx, 50 kept connections", HAPROXY, 1.0, |place| haproxy(place, 50)),
    case("pgbench -S, 1 connection", POSTGRES, 1.0, |place| pgbench(place, 1)),
    case("pgbench -S, 8 connections", POSTGRES, 1.0, |place| pgbench(place, 8)),
    case("iperf3 -l 64", IPERF3, 5.0, |place| iperf3(place, "64")),
    case("iperf3 -l 4K", IPERF3, 4.0, |place| iperf3(place, "4K")),
    case("iperf3 -l 1M", IPERF3, 2.0, |place| iperf3(place, "1M")),
    case("writes of 64 B", &[], 5.0, |place| stream(place, 64)),
    case("writes of 4 KiB", &[], 4.0, |place| stream(place, 4 << 10)),
    case("writes of 1 MiB", &[], 2.0, |place| stream(place, 1 << 20)),
    case("sockperf, spinning", SOCKPERF, 15.0, |place| sockperf(place, None, AT_ONCE)),
    case("sockperf, spin = 0", SOCKPERF, 1.0, |place| sockperf(place, Some("0"), AT_ONCE)),
    case("sockperf between two namespaces", NAMESPACES, 15.0, sockperf_between_hosts),
    // So long apart that both ends sleep in between, and natively, too.
    case("sockperf, a message in 200 us", SOCKPERF, 1.0, |place| sockperf(place, None, 5000)),
    case("sockperf, a message in 200 us, spin = 0", SOCKPERF, 1.0, |place| sockperf(place, Some("0"), 5000)),
    case("64 B there and back, 1 thread", &[], 1.0, |place| ping_pong(place, 1)),
    case("64 B there and back, a thread for each core", &[], 1.0, |place| ping_pong(place, cores())),
    case("UDP, 64 B there and back, spin = forever", &[], 10.0, |place| {
        there_and_back(place, Some("forever"))
    }),
    case("UDP, 64 B there and back", &[], 1.0, |place| there_and_back(place, None)),
    case("UDP, 64 B one way", &[], 4.0, one_way),
    case("UDP, 64 B in 40 us to a group of 3", &[], 1.0, to_group),
    case("connect and accept", &[], 0.8, connect),
    Case { rate_is_waste: true, ..case("1,000 idle connections", &[], 0.0, idle) },
];

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

fn ask(place: &Place<'_>, words: &str, port: u16) -> Result<Ended, BenchError> {
    place.ground.run(own_end(place, words, port).on(place.client()), LIMIT)
}

fn own_server(place: &Place<'_>, what: &str) -> Result<Server, BenchError> {
    Server::start(place.ground, |port| own_end(place, what, port).on(place.server()))
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

fn pages(place: &Place<'_>) -> Result<Server, BenchError> {
    let root = place.ground.folder("pages", None)?;
    place.ground.file("pages/index.html", "a page\n".repeat(88))?;
    let http = "keepalive_requests 1000000000; sendfile on; tcp_nopush on;";
    servers::nginx(place.ground, Pages { root: &root, workers: 1, user: "root", http }, place.server())
}

fn nginx(place: &Place<'_>, connections: u32) -> Result<Measured, BenchError> {
    let server = pages(place)?;
    let client = wrk(place, connections, server.port)?;
    with_wrks_latencies(&client, &server.end()?)
}

/// Each request goes over two connections of three programs, of which the one in the middle shares the core of the last.
fn haproxy(place: &Place<'_>, connections: u32) -> Result<Measured, BenchError> {
    let behind = pages(place)?;
    let front = servers::haproxy(place.ground, behind.port, place.server())?;
    let client = wrk(place, connections, front.port)?;
    let (front, behind) = (front.end()?, behind.end()?);
    let mut measured = with_wrks_latencies(&client, &front)?;
    measured.cpu += behind.cpu;
    measured.share += behind.share();
    Ok(measured)
}

fn wrk(place: &Place<'_>, connections: u32, port: u16) -> Result<Ended, BenchError> {
    let job = Job::new("wrk").words("--latency -t1 -d2s -c").arg(connections);
    place.ground.run(job.arg(format!("http://127.0.0.1:{port}/")).on(place.client()), LIMIT)
}

fn with_wrks_latencies(client: &Ended, server: &Ended) -> Result<Measured, BenchError> {
    let mut measured = Measured::of(needed("wrk", &client.out, "Requests/sec:")?, client, server);
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
