//! The rivals of a round trip that bring many crates with them: iceoryx2 and gRPC, each as one side of an echo.
//!
//! Started by `beeline-bench` as `beeline-bench-rivals RIVAL server|client …` (the words are those of
//! `beeline-bench-echo`); requests come from and go to that crate's loop. Not here: rivals in C (`c/`), and rivals that
//! need nothing but the standard library (`bench/src/echo/`). No paper is behind this.
#![forbid(unsafe_code)]

mod grpc;
mod iceoryx;

use std::io::{stdin, stdout};
use std::process::ExitCode;

use beeline_bench_echo::{Failure, Side, SideArgs, play_client, play_server};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match play(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("beeline-bench-rivals {}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn play(args: &[String]) -> Result<(), Failure> {
    let side = SideArgs::from_args(args)?;
    side.start()?;
    let (input, output) = (stdin().lock(), stdout().lock());
    match (side.rival.as_str(), side.side) {
        ("iceoryx2", Side::Server) => {
            let mut server = iceoryx::Server::new()?;
            let address = server.address();
            play_server(&mut server, &address, input, output)
        }
        ("iceoryx2", Side::Client { address }) => {
            play_client(&mut iceoryx::Client::new(&address)?, input, output)
        }
        ("grpc", Side::Server) => {
            let mut server = grpc::Server::start()?;
            let address = server.address();
            play_server(&mut server, &address, input, output)
        }
        ("grpc", Side::Client { address }) => {
            play_client(&mut grpc::Client::connect(&address)?, input, output)
        }
        (other, _) => Err(format!("no rival {other}: iceoryx2, grpc").into()),
    }
}
