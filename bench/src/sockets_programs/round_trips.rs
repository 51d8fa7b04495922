//! Cases that send 64 B there and back.

use beeline_floor::bare_trip_p50_ns;

use std::net::Ipv4Addr;

use super::measured::{LIMIT, MICROSECOND, Measured, Place, needed, own_end};
use crate::BenchError;
use crate::programs::Job;
use crate::programs::servers::Server;
use crate::veth::{ADDRESSES, Veth};

/// Messages a second of sockperf that are more than there is time for: the next one goes as soon as the last one is back. It has room for no more.
pub(super) const AT_ONCE: u32 = 500_000;
/// Lines of a window of the library, and of the bare copy's.
const WINDOW_LINES: u32 = 1024;
/// Round trips of the bare copy beside a round.
const BARE_TRIPS: u64 = 200_000;

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Both ends of so many connections, each with a thread. One connection has a core for each end; more share all cores, as the scheduler has it.
pub(super) fn ping_pong(place: &Place<'_>, threads: usize) -> Result<Measured, BenchError> {
    let [client_core, server_core] =
        [place.client(), place.server()].map(|core| core.filter(|_| threads == 1));
    let end = |role: &str, port| own_end(place, &format!("{role} --threads {threads}"), port);
    let server = Server::start(place.ground, |port| end("answer", port).on(server_core))?;
    let client = place.ground.run(end("ask", server.port).on(client_core), LIMIT)?;
    let rate = needed("client that asks", &client.out, "a second: ")?;
    let mut measured = Measured::of(rate, &client, &server.wait(LIMIT)?);
    let bare = bare_trip_p50_ns(place.cores, WINDOW_LINES, BARE_TRIPS, 1)?;
    measured.latencies.push(("bare copy beside it", bare));
    Ok(measured)
}

/// sockperf, which blocks in `recvfrom` at both ends; its client waits at the clock until its next message is due.
pub(super) fn sockperf(place: &Place<'_>, spin: Option<&str>, a_second: u32) -> Result<Measured, BenchError> {
    let job = || match spin {
        Some(spin) => Job::new("sockperf").env("BEELINE_SOCKETS_SPIN", spin),
        None => Job::new("sockperf"),
    };
    sockperf_of(place, &Ipv4Addr::LOCALHOST.to_string(), [job(), job()], a_second)
}

/// The same between two network namespaces with a wire between them, which stand for two hosts.
pub(super) fn sockperf_between_hosts(place: &Place<'_>) -> Result<Measured, BenchError> {
    let veth = Veth::new()?.map_err(|what| BenchError::Rival { rival: "veth".to_owned(), what })?;
    let hosts = ADDRESSES.join(",");
    let ends = [0, 1]
        .map(|end| Job::new("sockperf").inside(veth.enter(end)).env("BEELINE_SOCKETS_HOSTS", hosts.clone()));
    sockperf_of(place, ADDRESSES[1], ends, AT_ONCE)
}

fn sockperf_of(
    place: &Place<'_>,
    address: &str,
    [client, server]: [Job; 2],
    a_second: u32,
) -> Result<Measured, BenchError> {
    let server = Server::start(place.ground, |port| {
        server.words("server --tcp -i").arg(address).arg("-p").arg(port).on(place.server())
    })?;
    let job = client.words("ping-pong --tcp -m 64 -t 1 --full-rtt --mps").arg(a_second);
    let job = job.arg("-i").arg(address).arg("-p").arg(server.port).on(place.client());
    let client = place.ground.run(job, LIMIT)?;
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
