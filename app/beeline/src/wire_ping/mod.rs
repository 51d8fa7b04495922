//! `beeline ping --server` and `--client`: there and back over a wire, past the kernel's network.
//!
//! The table of the RAMCloud and HiStar notes: round trips with 10 and 100 bytes over datagrams on raw Ethernet
//! (`host/datagram`), and how long 1, 2 and 10 frames in a row take from being handed over to being done. The up-link
//! runs in the polling thread of either side, so two threads are busy and nothing else is in between but the kernel's
//! part of AF_XDP or AF_PACKET. `server.rs` answers; `client.rs` asks and times; `transmit.rs` times sending alone; `show.rs` prints.

pub mod args;
mod client;
mod published;
mod server;
mod show;
mod socket;
mod transmit;

use beeline_floor::pin;

use crate::cores;
use crate::failure::Failure;
use crate::ping::args::PingArgs;

/// Runs the side that was asked for.
pub fn run(args: &PingArgs) -> Result<(), Failure> {
    let wire = &args.wire;
    if let Some(core) = wire.core {
        cores::check("--core", [core])?;
        pin(core)?;
    }
    match wire.client {
        Some(server) => client::run(args, server),
        None => server::run(wire),
    }
}
