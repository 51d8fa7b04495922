//! The side that answers: every message goes back as it came, from the handler, while it lies in the receive buffer.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_datagram::{Adversary, Config, ConnectionId, Endpoint, EndpointError, Event, Sent};
use beeline_ethernet::Uplink;
use beeline_session::end_with_stdin;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::WireArgs;
use super::socket::Socket;
use crate::failure::Failure;

/// Polls between two looks at the flag that ends the server.
const POLLS_A_LOOK: u32 = 1024;

/// Answers until it is told to end.
pub fn run(args: &WireArgs) -> Result<(), Failure> {
    let [wire] = args.uplink.as_slice() else {
        return Err(Failure::new("a server has one up-link").remedy("start a server for each --uplink"));
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::new("cannot catch the signals that end a server").because(e))?;
    }
    if args.until_stdin_closes {
        end_with_stdin(&stop)?;
    }
    let socket = Socket::open(wire).map_err(|e| Failure::new("cannot answer over this wire").because(e))?;
    let (name, config) = (socket.name().to_owned(), Config::server(socket.station()));
    // Programs read this line to learn where to ask.
    crate::out::line(format_args!("{} answers over {name}", config.local))?;
    std::io::stdout().flush().map_err(|e| Failure::new("cannot say the station address").because(e))?;
    let ended = match args.chances() {
        Some(chances) => serve(Adversary::new(socket, chances, args.seed), config, &stop),
        None => serve(socket, config, &stop),
    };
    ended.map_err(|e| Failure::new(format!("{name} stopped working")).because(e))
}

/// An answer that found no room.
type Waiting = (ConnectionId, Vec<u8>);

fn serve<U: Uplink>(uplink: U, config: Config, stop: &AtomicBool) -> Result<(), EndpointError> {
    let mut endpoint = Endpoint::new(uplink, config)?;
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let mut scratch = Vec::with_capacity(endpoint.max_message_bytes());
    // Relaxed: the loop only has to see it some time, and no other memory goes with it.
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..POLLS_A_LOOK {
            match endpoint.poll()? {
                Some(Event::Message { id, .. }) => answer(&mut endpoint, id, &mut scratch, &mut waiting),
                Some(Event::Opened { remote, .. }) => tracing::info!("{remote} asks"),
                Some(Event::Closed { id, why, .. }) => {
                    waiting.retain(|(of, _)| *of != id);
                    tracing::info!("{id} ended: {why}");
                }
                None if waiting.is_empty() => {}
                None => answer_waiting(&mut endpoint, &mut waiting),
            }
        }
    }
    Ok(())
}

/// Sends a message back. What finds no room waits, and its connection is not listened to until it left.
fn answer<U: Uplink>(
    endpoint: &mut Endpoint<U>,
    id: ConnectionId,
    scratch: &mut Vec<u8>,
    waiting: &mut VecDeque<Waiting>,
) {
    // The bytes are copied, because the endpoint that shows them is the one that sends them.
    scratch.clear();
    scratch.extend_from_slice(endpoint.message());
    match endpoint.try_send(id, scratch, &[]) {
        Ok(Sent::Sent) => {}
        Ok(Sent::Full) => {
            waiting.push_back((id, scratch.clone()));
            endpoint.pause(id);
        }
        // The connection's end is reported by the next poll.
        Err(error) => tracing::debug!("{error}"),
    }
}

fn answer_waiting<U: Uplink>(endpoint: &mut Endpoint<U>, waiting: &mut VecDeque<Waiting>) {
    if let Some((id, message)) = waiting.pop_front() {
        match endpoint.try_send(id, &message, &[]) {
            Ok(Sent::Full) => waiting.push_back((id, message)),
            Ok(Sent::Sent) | Err(_) if waiting.iter().any(|(of, _)| *of == id) => {}
            Ok(Sent::Sent) | Err(_) => endpoint.resume(id),
        }
    }
}
