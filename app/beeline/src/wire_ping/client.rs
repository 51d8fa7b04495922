//! The side that asks: round trips one after the other, each answer checked, and sending alone.

use beeline_datagram::{
    Adversary, Config, ConnectError, ConnectionId, Down, Endpoint, EndpointError, Event, MacAddress, Port,
    SendError, Sent,
};
use beeline_ethernet::{Uplink, UplinkError, WireConfig};
use beeline_mmio::clock::{Calibration, now_ticks};
use beeline_session::{Times, new_times};
use indicatif::ProgressBar;

use super::show::{Missing, Results, RoundTrips, Transmit, show};
use super::socket::Socket;
use super::transmit::{self, BURSTS, TransmitError};
use crate::failure::Failure;
use crate::ping::args::PingArgs;
use crate::{machine, progress};

/// Reasons for which a wire gave no figures.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Transmit(#[from] TransmitError),
    #[error("the system gives no random numbers: {0}; see that getrandom(2) or /dev/urandom is there")]
    NoRandom(getrandom::Error),
    #[error("the connection ended: {0}")]
    Down(Down),
    #[error("the answer to question {number} has {bytes} bytes or other contents than the question")]
    WrongAnswer { number: u64, bytes: usize },
}

/// Asks over every wire that was named.
pub fn run(args: &PingArgs, server: MacAddress) -> Result<(), Failure> {
    let most = Config::client(server).frame_bytes - beeline_datagram::HEAD_BYTES;
    if let Some(size) = args.size.iter().find(|size| **size as usize > most) {
        return Err(Failure::new(format!("a payload of {size} B does not fit a frame"))
            .remedy(format!("give --size up to {most}")));
    }
    let wires = &args.wire.uplink;
    let total = wires.len() * (args.size.len() + BURSTS.len());
    let bar = progress::bar(total as u64, "measurements", args.output.json);
    let mut results = Results { cpu: machine::look(&[]).cpu, ..Results::default() };
    for wire in wires {
        match Socket::open(wire) {
            Ok(socket) => measure(args, server, socket, &bar, &mut results)
                .map_err(|e| Failure::new(format!("cannot measure over {}", describe(wire))).because(e))?,
            Err(error) if wires.len() > 1 || is_refusal(&error) => {
                results.not_available.push(Missing { uplink: describe(wire), why: error.to_string() });
            }
            Err(error) => return Err(Failure::new(format!("cannot open {}", describe(wire))).because(error)),
        }
    }
    bar.finish_and_clear();
    show(args, &results)
}

/// Whether the wire is there but does not do what it was asked for, such as zero-copy on a veth.
fn is_refusal(error: &UplinkError) -> bool {
    matches!(error, UplinkError::Socket { .. })
}

fn describe(wire: &WireConfig) -> String {
    use beeline_ethernet::{WireKind, XdpCopy};
    let copy = match wire.options.copy {
        _ if wire.kind == WireKind::AfPacket => "",
        XdpCopy::Auto => "",
        XdpCopy::Copy => " (copy)",
        XdpCopy::ZeroCopy => " (zero-copy)",
    };
    let kind = match wire.kind {
        WireKind::AfXdp => "af-xdp",
        WireKind::AfPacket => "af-packet",
        WireKind::Auto => "auto",
    };
    format!("{kind} {}{copy}", wire.options.interface)
}

/// Measures everything over one wire.
fn measure(
    args: &PingArgs,
    server: MacAddress,
    mut socket: Socket,
    bar: &ProgressBar,
    results: &mut Results,
) -> Result<(), AskError> {
    let calibration = Calibration::measure();
    let uplink = socket.name().to_owned();
    // First the sending alone: an endpoint would take the socket for itself.
    for frames in BURSTS {
        bar.set_message(format!("{uplink}, {frames} in a row"));
        let times = transmit::measure(&mut socket, server, frames, args.count.min(20_000), calibration)?;
        results.transmit.push(Transmit::new(&uplink, frames, &times));
        bar.inc(1);
    }
    let config = Config { port: random_port()?, ..Config::client(socket.station()) };
    match args.wire.chances() {
        // Another seed than the server's, or both would lose the same frames.
        Some(chances) => {
            let uplink = Adversary::new(socket, chances, !args.wire.seed);
            ask_all(args, server, Endpoint::new(uplink, config)?, bar, results)
        }
        None => ask_all(args, server, Endpoint::new(socket, config)?, bar, results),
    }
}

/// A port that other clients on the interface hardly have, drawn at random. The server has port 0.
///
/// No number of the process's own: the pids of two containers that share an interface may be the same.
fn random_port() -> Result<Port, AskError> {
    let random = getrandom::u64().map_err(AskError::NoRandom)?;
    Ok(Port((random % u64::from(u16::MAX)) as u16 + 1))
}

fn ask_all<U: Uplink>(
    args: &PingArgs,
    server: MacAddress,
    mut endpoint: Endpoint<U>,
    bar: &ProgressBar,
    results: &mut Results,
) -> Result<(), AskError> {
    let uplink = endpoint.uplink().name().to_owned();
    let id = endpoint.connect(server)?;
    loop {
        match endpoint.poll()? {
            Some(Event::Opened { .. }) => break,
            Some(Event::Closed { why, .. }) => return Err(AskError::Down(why)),
            _ => {}
        }
    }
    let calibration = Calibration::measure();
    for size in &args.size {
        bar.set_message(format!("{uplink}, {size} B"));
        let before = endpoint.stats(id).unwrap_or_default();
        let times = ask(&mut endpoint, id, *size as usize, args.count, calibration)?;
        let after = endpoint.stats(id).unwrap_or_default();
        let frames_sent = after.frames_sent - before.frames_sent;
        let repeats = after.repeated_early + after.timeouts - before.repeated_early - before.timeouts;
        results.round_trips.push(RoundTrips {
            frames_sent,
            repeats,
            ..RoundTrips::new(&uplink, *size, &times)
        });
        bar.inc(1);
    }
    endpoint.close(id);
    while !matches!(endpoint.poll()?, Some(Event::Closed { .. })) {}
    Ok(())
}

/// Asks `count` times, each time after the answer to the time before.
fn ask<U: Uplink>(
    endpoint: &mut Endpoint<U>,
    id: ConnectionId,
    payload_bytes: usize,
    count: u64,
    calibration: Calibration,
) -> Result<Times, AskError> {
    let mut question: Vec<u8> = (0..payload_bytes).map(|index| index as u8).collect();
    let label_bytes = payload_bytes.min(8);
    let mut times = new_times();
    let warm_up = count / 10 + 100;
    for number in 0..warm_up + count {
        question[..label_bytes].copy_from_slice(&number.to_le_bytes()[..label_bytes]);
        let start = now_ticks();
        while endpoint.try_send(id, &question, &[])? == Sent::Full {
            if let Some(Event::Closed { why, .. }) = endpoint.poll()? {
                return Err(AskError::Down(why));
            }
        }
        loop {
            match endpoint.poll()? {
                Some(Event::Message { .. }) => break,
                Some(Event::Closed { why, .. }) => return Err(AskError::Down(why)),
                _ => {}
            }
        }
        let end = now_ticks();
        let answer = endpoint.message();
        if answer != question {
            return Err(AskError::WrongAnswer { number, bytes: answer.len() });
        }
        if number >= warm_up {
            times.saturating_record(calibration.to_ns(end - start) as u64);
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Two processes of one pid, in two containers, draw as one process does twice.
    #[test]
    fn ports_differ_within_one_pid_and_none_is_the_servers() {
        let ports: BTreeSet<u16> = (0..64).map(|_| random_port().unwrap().0).collect();
        assert!(ports.len() > 32 && !ports.contains(&0), "{ports:?}");
    }
}
