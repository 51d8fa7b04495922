//! `beeline-bench`: lists and runs the benches, prints figures and checks, keeps the raw data.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use beeline_bench::attack::{self, AttackArgs};
use beeline_bench::connect::{self, AcceptorArgs};
use beeline_bench::echo;
use beeline_bench::peer_death::{self, VictimArgs};
use beeline_bench::segment::{self, ProviderArgs};
use beeline_bench::sisci;
use beeline_bench::sockets_programs::{self, ClientArgs};
use beeline_bench::{BENCHES, Bench, BenchError, Report, Settings};
use beeline_bench::{find, run_all, to_table, write_csv};
use beeline_floor::Cores;
use beeline_floor::rounds::Keep;
use beeline_session::{ServeArgs, with_causes};
use clap::{Args, Parser, Subcommand};

/// Measured comparisons of Beeline and its rivals on this machine.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Examples:\n  beeline-bench list\n  beeline-bench run --csv out/\n  \
    beeline-bench run window-stream --quick --json -"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what there is to run.
    List,
    /// Run benches, all of them when none is named.
    Run(Run),
    /// Be a NIC of another process.
    #[command(hide = true)]
    PrivateNic(ServeArgs),
    /// Be a process that is killed.
    #[command(hide = true)]
    Victim(VictimArgs),
    /// Be a process that keeps others busy.
    #[command(hide = true)]
    Attacker(AttackArgs),
    /// Be a process that others connect to.
    #[command(hide = true)]
    Acceptor(AcceptorArgs),
    /// Be a member of a fabric whose segments others use.
    #[command(hide = true)]
    Provider(ProviderArgs),
    /// Be an end of connections, as any other program.
    #[command(hide = true)]
    SocketsClient(ClientArgs),
    /// Be one side of an echo.
    #[command(hide = true)]
    Echo {
        /// Rival, side, core, address.
        args: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct Run {
    /// Names of benches.
    names: Vec<String>,
    /// A short look instead of reportable figures.
    #[arg(long)]
    quick: bool,
    /// Rounds of each path.
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Items with which `kv-fill` fills its store, in millions.
    #[arg(long, value_name = "MILLIONS")]
    items: Option<u32>,
    /// Cases of `sockets-programs` that have this in their names, no others.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Count rounds in which the cores moved, and those on one core: to try the program, not for figures.
    #[arg(long)]
    any_placement: bool,
    /// The two cores to use.
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"])]
    cores: Option<Vec<usize>>,
    /// Write the report as JSON into a file, `-` for standard output (instead of the table).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write summary and raw samples as CSV into a folder.
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Draw what `sisci` measured into a page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::List => {
            for bench in BENCHES {
                println!("{:20} {}", bench.name, bench.about);
            }
            Ok(true)
        }
        Command::Run(run) => run.execute(),
        Command::PrivateNic(args) => beeline_session::serve(&args).map(|()| true).map_err(BenchError::from),
        Command::Victim(args) => peer_death::be_victim(&args).map(|()| true),
        Command::Attacker(args) => attack::be_attacker(&args).map(|()| true),
        Command::Acceptor(args) => connect::be_acceptor(&args).map(|()| true),
        Command::Provider(args) => segment::be_provider(&args).map(|()| true),
        Command::SocketsClient(args) => sockets_programs::be_client(&args).map(|()| true),
        Command::Echo { args } => return play(&args),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        // A missed target is a result, not a failure of the program; scripts can still tell.
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("beeline-bench: {}", with_causes(&error));
            if let Some(remedy) = error.remedy() {
                eprintln!("  try: {remedy}");
            }
            ExitCode::FAILURE
        }
    }
}

fn play(args: &[String]) -> ExitCode {
    match echo::play(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("beeline-bench echo {}: {}", args.join(" "), with_causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

impl Run {
    fn settings(&self) -> Result<Settings, BenchError> {
        let mut settings = if self.quick { Settings::quick()? } else { Settings::full()? };
        if let Some(&[first, second]) = self.cores.as_deref() {
            settings.cores = Cores { first, second };
        }
        if self.any_placement {
            settings.keep = Keep::All;
        }
        if let Some(millions) = self.items {
            settings.fill_thousands = millions.clamp(1, 1000) * 1000;
        }
        settings.only.clone_from(&self.only);
        settings.rounds = self.rounds.unwrap_or(settings.rounds).max(1);
        Ok(settings)
    }

    /// Runs and writes; whether every target was met.
    fn execute(&self) -> Result<bool, BenchError> {
        let settings = self.settings()?;
        let benches: Vec<&Bench> = match self.names.as_slice() {
            [] => BENCHES.iter().collect(),
            names => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
        };
        let report =
            run_all(&benches, &settings, |bench| eprintln!("running {}: {}", bench.name, bench.about));
        if let Some(folder) = &self.csv {
            for file in write_csv(&report, folder)? {
                eprintln!("wrote {}", file.display());
            }
        }
        if let Some(path) = &self.html {
            let command = std::env::args().collect::<Vec<_>>().join(" ");
            write(path, &sisci::render(&report, &command))?;
        }
        match &self.json {
            Some(path) => self.write_json(&report, path)?,
            None => print!("{}", to_table(&report)),
        }
        let failed: Vec<String> = report.failed.into_iter().map(|failed| failed.bench).collect();
        if failed.is_empty() {
            return Ok(report.checks.iter().all(|check| check.pass));
        }
        Err(BenchError::Failed(failed.join(", ")))
    }

    fn write_json(&self, report: &Report, path: &std::path::Path) -> Result<(), BenchError> {
        let json = serde_json::to_string_pretty(report).expect("a report has no maps with odd keys");
        if path.as_os_str() == "-" {
            println!("{json}");
            return Ok(());
        }
        write(path, &json)
    }
}

fn write(path: &std::path::Path, text: &str) -> Result<(), BenchError> {
    let failed = |error| BenchError::Write { path: path.to_owned(), error };
    std::fs::write(path, text).map_err(failed)
}
