//! Datagrams of UDP by plain calls that block: there and back, as many as go, and to several members of a group.
//!
//! An end that receives listens on its port for TCP, too: so who starts it knows that it is there, and who sends learns when it has heard the last datagram.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket, sockopt::ReuseAddr,
};

use super::measured::{LIMIT, Measured, Place, needed, own_end, tell};
use crate::BenchError;
use crate::fail_over::now_ns;
use crate::programs::Job;
use crate::programs::servers::Server;

const BYTES: usize = 64;
/// A datagram that says that no other comes.
const END: &[u8] = b"end";
/// Round trips before it counts: far more than two sockets need to leave the kernel.
const WARM_UP: u64 = 2000;
/// How long is sent before it counts.
const BEGINS_AFTER: Duration = Duration::from_millis(300);
const LASTS: Duration = Duration::from_secs(1);
const TRIPS_A_LOOK: u64 = 64;
/// Room for as many as come in that time.
const MOST_HEARD: usize = 10_000_000;
/// Between two that say that no other comes: one may be lost.
const PAUSE: Duration = Duration::from_millis(10);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 70, 1);
const MEMBERS: usize = 3;

fn bound(at: SocketAddrV4) -> Result<UdpSocket, BenchError> {
    let made = || {
        let fd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        // Members of a group share its port.
        if at.ip().is_unspecified() {
            setsockopt(&fd, ReuseAddr, &true)?;
        }
        bind(fd.as_raw_fd(), &SockaddrIn::from(at))?;
        Ok(fd)
    };
    Ok(made().map_err(|error: nix::Error| std::io::Error::from(error))?.into())
}

/// Answers each datagram by itself, until one says that no other comes.
pub(super) fn answer(port: u16) -> Result<(), BenchError> {
    let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let (heard, _listens) = (bound(at)?, TcpListener::bind(at)?);
    let mut datagram = [0; BYTES];
    loop {
        let (bytes, from) = heard.recv_from(&mut datagram)?;
        if &datagram[..bytes] == END {
            return Ok(());
        }
        heard.send_to(&datagram[..bytes], from)?;
    }
}

/// Asks who answers, and says how many answers came a second.
pub(super) fn ask(port: u16) -> Result<(), BenchError> {
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let asks = bound(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let mut datagram = [0; BYTES];
    let mut trips = 0_u64;
    let mut go = |count: u64| -> Result<u64, BenchError> {
        for _ in 0..count {
            trips += 1;
            datagram[..8].copy_from_slice(&trips.to_le_bytes());
            asks.send_to(&datagram, to)?;
            let (bytes, _) = asks.recv_from(&mut datagram)?;
            if bytes != BYTES || datagram[..8] != trips.to_le_bytes() {
                let what = format!("another answer than that to {trips}");
                return Err(BenchError::Rival { rival: "datagrams there and back".to_owned(), what });
            }
        }
        Ok(count)
    };
    go(WARM_UP)?;
    let (started, mut counted) = (Instant::now(), 0);
    while started.elapsed() < LASTS {
        counted += go(TRIPS_A_LOOK)?;
    }
    println!("a second: {:.1}", counted as f64 / started.elapsed().as_secs_f64());
    asks.send_to(END, to)?;
    Ok(())
}

/// Sends datagrams with their number and the time, as many as it can or one each `every`, to one socket or to a group; then that no other comes, until all
/// `ends` have heard it.
pub(super) fn flood(port: u16, group: Option<u16>, ends: &[u16], every: Duration) -> Result<(), BenchError> {
    let mut listeners = Vec::new();
    for end in std::iter::once(&port).chain(ends) {
        listeners.push(TcpStream::connect((Ipv4Addr::LOCALHOST, *end))?);
    }
    let to = match group {
        Some(port) => SocketAddrV4::new(GROUP, port),
        None => SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
    };
    // The interface of this address is that of the group, too.
    let sends = bound(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let (started, mut sent, mut datagram) = (Instant::now(), 0_u64, [0; BYTES]);
    let mut due = started;
    while started.elapsed() < BEGINS_AFTER + LASTS {
        sent += 1;
        due += every;
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        datagram[..8].copy_from_slice(&sent.to_le_bytes());
        datagram[8..16].copy_from_slice(&now_ns().to_le_bytes());
        sends.send_to(&datagram, to)?;
    }
    println!("sent a second: {:.1}", sent as f64 / started.elapsed().as_secs_f64());
    for mut listener in listeners {
        listener.set_read_timeout(Some(PAUSE))?;
        // The end of the connection, which nobody accepts, is that of the listener.
        let is_there =
            |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        while listener.read(&mut [0]).is_err_and(|error| is_there(&error)) {
            sends.send_to(END, to)?;
        }
    }
    Ok(())
}

/// Counts what comes, alone or as a member of a group, checks that it comes in order, and says how long it took.
pub(super) fn hear(port: u16, group: Option<u16>) -> Result<(), BenchError> {
    let heard = match group {
        Some(port) => bound(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?,
        None => bound(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?,
    };
    if group.is_some() {
        heard.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
    }
    let _listens = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let (mut datagram, mut last) = ([0; BYTES], 0);
    let mut next = || -> Result<Option<u64>, BenchError> {
        let (bytes, _) = heard.recv_from(&mut datagram)?;
        if &datagram[..bytes] == END {
            return Ok(None);
        }
        let word = |at: usize| u64::from_le_bytes(datagram[at..at + 8].try_into().expect("eight bytes"));
        if bytes != BYTES || word(0) <= last {
            let what = format!("number {} of {bytes} bytes behind {last}", word(0));
            return Err(BenchError::Rival { rival: "datagrams".to_owned(), what });
        }
        last = word(0);
        Ok(Some(now_ns().saturating_sub(word(8))))
    };
    // The first one is waited for.
    let mut goes_on = next()?.is_some();
    let began = Instant::now();
    while goes_on && began.elapsed() < BEGINS_AFTER {
        goes_on = next()?.is_some();
    }
    let (started, mut times) = (Instant::now(), Vec::with_capacity(MOST_HEARD));
    let mut took = Duration::ZERO;
    while let Some(time) = next()? {
        took = started.elapsed();
        times.push(Duration::from_nanos(time));
    }
    if times.is_empty() {
        return Err(BenchError::Rival { rival: "datagrams".to_owned(), what: "none was heard".to_owned() });
    }
    tell(times, took);
    Ok(())
}

fn end(place: &Place<'_>, words: &str, port: u16, spin: Option<&str>) -> Job {
    let job =
        own_end(place, words, port).env("BEELINE_SOCKETS_UDP", true).env("BEELINE_SOCKETS_MULTICAST", "host");
    match spin {
        Some(spin) => job.env("BEELINE_SOCKETS_SPIN", spin),
        None => job,
    }
}

/// One datagram at a time between two sockets.
pub(super) fn there_and_back(place: &Place<'_>, spin: Option<&str>) -> Result<Measured, BenchError> {
    let server = Server::start(place.ground, |port| end(place, "udp-answer", port, spin).on(place.server()))?;
    let client = place.ground.run(end(place, "udp-ask", server.port, spin).on(place.client()), LIMIT)?;
    let rate = needed("client that asks", &client.out, "a second: ")?;
    Ok(Measured::of(rate, &client, &server.wait(LIMIT)?))
}

/// As many as go from one socket to another; those that the other has heard count.
pub(super) fn one_way(place: &Place<'_>) -> Result<Measured, BenchError> {
    let server = Server::start(place.ground, |port| end(place, "udp-hear", port, None).on(place.server()))?;
    let client = place.ground.run(end(place, "udp-flood", server.port, None).on(place.client()), LIMIT)?;
    let server = server.wait(LIMIT)?;
    Ok(Measured::of(needed("receiver", &server.out, "a second: ")?, &client, &server))
}

/// A datagram in 40 us to the members of a group, who share a core: how long it takes to the member that is last by its own times.
pub(super) fn to_group(place: &Place<'_>) -> Result<Measured, BenchError> {
    let member = |group: Option<u16>| {
        Server::start(place.ground, |port| {
            let job = end(place, "udp-hear --group", group.unwrap_or(port), None);
            job.arg(port).on(place.server())
        })
    };
    let first = member(None)?;
    let group = first.port;
    let others: Vec<Server> = (1..MEMBERS).map(|_| member(Some(group))).collect::<Result<_, _>>()?;
    let ends: Vec<String> = others.iter().map(|other| other.port.to_string()).collect();
    let job = end(place, "udp-flood --every-us 40 --group", group, None).arg(group);
    let client = place.ground.run(job.arg("--ends").arg(ends.join(",")).on(place.client()), LIMIT)?;
    let mut measured = Measured { cpu: client.cpu, share: client.share(), ..Measured::default() };
    let mut said = Vec::new();
    for member in std::iter::once(first).chain(others) {
        let member = member.wait(LIMIT)?;
        measured.cpu += member.cpu;
        measured.share += member.share();
        said.push(member.out);
    }
    for name in ["p50", "p99", "p99.9"] {
        let times = said.iter().map(|said| needed("member", said, &format!("{name}: ")));
        let worst = times.collect::<Result<Vec<f64>, _>>()?.into_iter().fold(0.0, f64::max);
        measured.latencies.push((name, worst));
    }
    // One after the other, as many a second as fit.
    measured.rate = 1e9 / measured.latencies[0].1.max(1.0);
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use crate::programs::free_port;

    use super::*;

    fn wait_until_listening(port: u16) {
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            std::thread::sleep(PAUSE);
        }
    }

    #[test]
    fn each_member_of_a_group_hears_what_is_sent_until_its_end() {
        let ports = [0; MEMBERS].map(|_| free_port().unwrap());
        std::thread::scope(|scope| {
            let members = ports.map(|port| scope.spawn(move || hear(port, Some(ports[0]))));
            ports.into_iter().for_each(wait_until_listening);
            flood(ports[0], Some(ports[0]), &ports[1..], Duration::from_micros(100)).unwrap();
            members.into_iter().for_each(|member| member.join().unwrap().unwrap());
        });
    }

    #[test]
    fn answers_are_those_to_what_was_asked() {
        let port = free_port().unwrap();
        std::thread::scope(|scope| {
            let server = scope.spawn(move || answer(port));
            wait_until_listening(port);
            ask(port).unwrap();
            server.join().unwrap().unwrap();
        });
    }
}
