//! Round trips between two processes, each on its core, for ours and for every rival alike.
//!
//! A [`Pair`] starts both sides of a [`Launch`] and gives them jobs in the words of `beeline-bench-echo`; it does not
//! know what lies between them. [`play`] is this program as one side ([`ROLE`]): the bare copy between processes and our
//! own calls are there, other sides are programs of their own (`rivals`). Not here: which rivals there are, rows.

mod bare;
mod half;
mod launch;
mod pair;
mod roles;
mod rpc;
mod wire;

use std::io::{BufRead, Write, stdin, stdout};

use beeline_bench_echo::{Failure, Side, SideArgs, play_client, play_server};
use beeline_ethernet::{AfPacket, AfXdp};

use crate::kv::Store;
use crate::wake_up;

pub use half::ServerHalf;
pub use launch::Launch;
pub use pair::Pair;
pub use roles::{BARE_COPY, KV, KV_PREALLOCATED, ROLE, RPC, RPC_AF_PACKET, RPC_AF_XDP};
use rpc::USUAL_LINES;
pub(crate) use rpc::{ECHO, RpcClient, answer};

/// Plays one side of an echo until standard input ends.
///
/// # Errors
/// There is no such side, or it cannot go on.
pub fn play(args: &[String]) -> Result<(), Failure> {
    let side = SideArgs::from_args(args)?;
    side.start()?;
    let (input, output) = (stdin().lock(), stdout().lock());
    let (rival, number) = split_number(&side.rival);
    let lines = number.unwrap_or(USUAL_LINES);
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
        (KV | KV_PREALLOCATED, Side::Server) => {
            let mut store = Store::offer(number, rival == KV_PREALLOCATED)?;
            let address = store.address().to_owned();
            play_server(&mut store, &address, input, output)
        }
        (RPC, Side::Client { address }) => {
            play_client(&mut rpc::RpcClient::connect(address, lines)?, input, output)
        }
        (other, Side::Server) => {
            let role = wake_up::Role::of_word(other);
            let role = role.ok_or_else(|| format!("this program plays no {other}"))?;
            let mut server = wake_up::Answering::offer(role)?;
            let address = server.address().to_owned();
            play_server(&mut server, &address, input, output)
        }
        (other, Side::Client { .. }) => Err(format!("this program plays no client of {other}").into()),
    }
}

/// A rival, and a number behind it: how many lines its windows are to have, or how many MiB its store (`rpc` and `rpc,64`).
fn split_number(rival: &str) -> (&str, Option<u32>) {
    let split = rival.split_once(',').and_then(|(rival, number)| Some((rival, number.parse().ok()?)));
    split.map_or((rival, None), |(rival, number)| (rival, Some(number)))
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
    fn a_number_stands_behind_a_comma() {
        assert_eq!(split_number("rpc"), ("rpc", None));
        assert_eq!(split_number("rpc,64"), ("rpc", Some(64)));
        assert_eq!(split_number("rpc,many"), ("rpc,many", None));
    }
}
