//! The `beeline` program: compare, send, nic, ping, stat, kv, sim, trace, platforms, doctor.
//!
//! It measures, shows and runs what the libraries do; it decides nothing about windows, interfaces or devices.
#![forbid(unsafe_code)]

mod args;
mod bar;
mod choices;
mod compare;
mod doctor;
mod failure;
mod figures;
mod generate;
mod kv;
mod machine;
mod nic;
mod page;
mod ping;
mod platforms;
mod progress;
mod rtl;
mod send;
mod sim;
mod stat;
mod trace;
mod wire_ping;
mod worker;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing(cli.verbose);
    let outcome = match &cli.command {
        Command::Compare(args) => compare::run(args),
        Command::Send(args) => send::run(args),
        Command::Nic(args) => nic::run(args),
        Command::Ping(args) if args.wire.is_wanted() => wire_ping::run(args),
        Command::Ping(args) => ping::run(args),
        Command::Stat(args) => stat::run(args),
        Command::Kv(args) => return kv::run(args).unwrap_or_else(|failure| fail(&failure)),
        Command::Sim(args) => sim::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Platforms(args) => platforms::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Figures(args) => figures::run(args),
        Command::Generate(args) => generate::run(&args.what),
        Command::Worker(args) => worker::run(args),
        Command::PrivateNic(args) => beeline_session::serve(args).map_err(Failure::from),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    eprintln!("beeline: {failure}");
    ExitCode::FAILURE
}

/// Events go to standard error: warnings always, more with -v, or as BEELINE_LOG says.
fn tracing(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("BEELINE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
}
