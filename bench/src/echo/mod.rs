//! Round trips between two processes, each on its core, for ours and for every rival alike.
//!
//! A [`Pair`] starts both sides of a [`Launch`] and gives them jobs in the words of `beeline-bench-echo`; it does not
//! know what lies between them. [`play`] is this program as one side ([`ROLE`]): the bare copy between processes and our
//! own calls are there, other sides are programs of their own (`rivals`). Not here: which rivals there are, rows.

mod bare;
mod half;
mod launch;
mod pair;
mod rpc;
mod wire;

use std::io::{BufRead, Write, stdin, stdout};

use beeline_bench_echo::{Failure, Side, SideArgs, play_client, play_server};
use beeline_ethernet::{AfPacket, AfXdp};

use crate::kv::Store;

pub use half::ServerHalf;
pub use launch::Launch;
pub use pair::Pair;
use rpc::USUAL_LINES;
pub(crate) use rpc::{ECHO, RpcClient, answer};

/// The hidden subcommand that runs [`play`].
pub const ROLE: &str = "echo";
/// The bare copy, as [`play`] knows it.
pub const BARE_COPY: &str = "bare-copy";
/// Our calls between processes, as [`play`] knows them; with a comma and a number behind it, through windows of so many
/// lines.
pub const RPC: &str = "rpc";
/// Our calls over AF_XDP, between two ends of a [`crate::veth::Veth`], as [`play`] knows them.
pub const RPC_AF_XDP: &str = "rpc-af-xdp";
/// Our calls over AF_PACKET, likewise.
pub const RPC_AF_PACKET: &str = "rpc-af-packet";
/// Our key-value store, as [`play`] knows it: a server only, which answers so many requests and then waits for a job.
pub const KV: &str = "kv";

/// Plays one side of an echo until standard input ends.
///
/// # Errors
/// There is no such side, or it cannot go on.
pub fn play(args: &[String]) -> Result<(), Failure> {
    let side = SideArgs::from_args(args)?;
    side.start()?;
    let (input, output) = (stdin().lock(), stdout().lock());
    let (rival, lines) = split_lines(&side.rival);
    match (rival, &side.side) {
        (BARE_COPY, Side::Server) => bare::serve(input, output),
        (BARE_COPY, Side::Client { address }) => bare::ask(address, input, output),
        (RPC, Side::Server) => {
            let mut server = rpc::RpcServer::offer(lines)?;
            let address = server.address().to_owned();
            play_server(&mut server, &address, input, output)
        }
        (RPC_AF_XDP, side) => play_wire::<AfXdp>(side, input, output),
        (RPC_AF_PACKET, side) => play_wire::<AfPacket>(side, input, output),
        (KV, Side::Server) => {
            let mut store = Store::offer()?;
            let address = store.address().to_owned();
            play_server(&mut store, &address, input, output)
        }
        (RPC, Side::Client { address }) => {
            play_client(&mut rpc::RpcClient::connect(address, lines)?, input, output)
        }
        (other, _) => Err(format!("this program plays no {other}").into()),
    }
}

/// A rival, and how many lines its windows are to have: `rpc` and `rpc,64`.
fn split_lines(rival: &str) -> (&str, u32) {
    let split = rival.split_once(',').and_then(|(rival, lines)| Some((rival, lines.parse().ok()?)));
    split.unwrap_or((rival, USUAL_LINES))
}

fn play_wire<U: wire::Wire>(side: &Side, input: impl BufRead, output: impl Write) -> Result<(), Failure> {
    match side {
        Side::Server => {
            let mut server = wire::Server::<U>::open()?;
            let address = server.address();
            play_server(&mut server, &address, input, output)
        }
        Side::Client { address } => play_client(&mut wire::Client::<U>::open(address)?, input, output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_behind_a_comma() {
        assert_eq!(split_lines("rpc"), ("rpc", USUAL_LINES));
        assert_eq!(split_lines("rpc,64"), ("rpc", 64));
        assert_eq!(split_lines("rpc,many"), ("rpc,many", USUAL_LINES));
    }
}
