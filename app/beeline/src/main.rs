//! The `beeline` program: compare, send, nic, ping, stat, kv, fabric, run, sockets, sim, trace, platforms, doctor.
//!
//! It measures, shows and runs what the libraries do; it decides nothing about windows, interfaces or devices.
#![forbid(unsafe_code)]

mod choices;
mod cli;
mod compare;
mod cores;
mod doctor;
mod fabric;
mod failure;
mod figures;
mod generate;
mod ip;
mod kv;
mod limits;
mod machine;
mod nic;
mod options;
mod out;
mod page;
mod ping;
mod platforms;
mod progress;
mod roles;
mod rtl;
mod run;
mod send;
mod sim;
mod sockets;
mod stat;
mod trace;
mod waiting;
mod wire_ping;
mod worker;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use failure::Failure;
use roles::Role;
use tracing_subscriber::EnvFilter;

/// Exit code of a command that failed.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    limits::bear_file_limit();
    let outcome = match Role::asked_for() {
        Some(role) => {
            tracing(0);
            play(&role)
        }
        None => match Cli::try_parse() {
            Ok(cli) => {
                tracing(cli.verbose);
                run(&cli.command)
            }
            Err(error) => explain(&error),
        },
    };
    outcome.unwrap_or_else(|failure| {
        if failure.is_quiet() {
            return ExitCode::SUCCESS;
        }
        out::remark(format_args!("beeline: {failure}"));
        ExitCode::from(FAILED)
    })
}

fn run(command: &Command) -> Result<ExitCode, Failure> {
    limits::check_address_space(command)?;
    let outcome = match command {
        Command::Compare(args) => compare::run(args),
        Command::Send(args) => send::run(args),
        Command::Nic(args) => nic::run(args),
        Command::Ping(args) if args.wire.is_wanted() => wire_ping::run(args),
        Command::Ping(args) => ping::run(args),
        Command::Stat(args) => stat::run(args),
        Command::Kv(args) => return kv::run(args),
        Command::Fabric(args) => fabric::run(args),
        Command::Ip(args) => ip::run(args),
        Command::Run(args) => return run::run(args),
        Command::Sockets(args) => sockets::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Platforms(args) => platforms::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Figures(args) => figures::run(args),
        Command::Generate(args) => generate::run(args, Cli::command()),
    };
    outcome.map(|()| ExitCode::SUCCESS)
}

fn play(role: &Role) -> Result<ExitCode, Failure> {
    match role {
        Role::Worker(args) => worker::run(args),
        Role::PrivateNic(args) => beeline_session::serve(args).map_err(Failure::from),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Prints what clap has to say instead of a command: help and version to standard output, where they must arrive.
fn explain(error: &clap::Error) -> Result<ExitCode, Failure> {
    let printed = error.print();
    if !error.use_stderr() {
        printed.and_then(|()| io::Write::flush(&mut io::stdout())).map_err(out::failed)?;
    }
    Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILED)))
}

/// Events go to standard error: warnings always, more with -v, or as BEELINE_LOG says. Colours go to terminals only.
fn tracing(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("BEELINE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !no_color)
        .log_internal_errors(false)
        .without_time()
        .init();
}
