//! The command line of `beeline sockets`.

use beeline_domain::DomainConfig;
use beeline_socket_rules::Rules;
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::options::RootArgs;

/// Options of `sockets`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline sockets                         connections of programs that `beeline run` started
  beeline sockets --watch                 the same over and over, with rates
  beeline sockets --pid 4711 --all        one process, and why the kernel carries what it carries
  beeline sockets --json | jq '.[].connections[] | select(.by_window == 0)'
  beeline sockets --prometheus > /var/lib/node_exporter/beeline.prom
  beeline sockets down                    all connections by the kernel's sockets, from now on
  beeline sockets up                      and back to windows

A path is what carries bytes now, sent and received ones: window, or the kernel's socket. Bytes and
messages are of both directions. A fail-over is a change from a window back to the socket; spins are
waits that ended before a sleep. Bytes are never read, only counted.")]
#[command(args_conflicts_with_subcommands = true)]
pub struct SocketsArgs {
    /// What to do with them
    #[command(subcommand)]
    pub action: Option<SocketsAction>,
    #[command(flatten)]
    pub look: LookArgs,
}

/// What can be done with connections.
#[derive(Subcommand, Debug, Clone)]
pub enum SocketsAction {
    /// Take connections off their windows while their programs run: the kernel's sockets carry them
    Down(SwitchArgs),
    /// Let connections go back to windows
    Up(SwitchArgs),
}

/// Options of `sockets down` and `sockets up`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline sockets down                    each connection of the domain goes on by the kernel's socket
  beeline sockets up                      and back by its window, with its next bytes
  beeline sockets down --pid 4711         only the connections of one process, both ways

Programs notice nothing but the time that it takes. Down holds for processes that begin later, too, until
`up`; with --pid it does not, and an order to all takes its place. The exit code is 1 if a process has not
answered, as one that is stopped: it does it when it runs.")]
pub struct SwitchArgs {
    #[command(flatten)]
    pub ground: GroundArgs,
    /// Only these processes, and both directions of their connections
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,
    /// Milliseconds that processes may take to answer
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub timeout_ms: u64,
}

/// The domain whose connections are meant.
#[derive(Args, Debug, Clone)]
pub struct GroundArgs {
    /// Domain: the group of processes that can find each other [default: that of the rules, else default]
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    #[command(flatten)]
    pub root: RootArgs,
}

/// How connections are listed.
#[derive(Args, Debug, Clone)]
pub struct LookArgs {
    #[command(flatten)]
    pub ground: GroundArgs,
    /// Only these processes
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<u32>,
    /// Also processes without connections, connections that have ended, and why the kernel carries what it carries
    #[arg(long)]
    pub all: bool,
    /// Look over and over
    #[arg(long)]
    pub watch: bool,
    /// With --watch: milliseconds between looks
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub interval_ms: u64,
    /// With --watch: looks, until Ctrl-C without it
    #[arg(long, value_name = "N", requires = "watch")]
    pub count: Option<u64>,
    /// Print JSON; with --watch, one line a look
    #[arg(long, conflicts_with = "prometheus")]
    pub json: bool,
    /// Print the text format of Prometheus
    #[arg(long)]
    pub prometheus: bool,
}

impl GroundArgs {
    /// The domain that is meant.
    ///
    /// # Errors
    /// The command line does not say, and the rules mean nothing.
    pub fn config(&self) -> Result<DomainConfig, Failure> {
        let name = match &self.domain {
            Some(name) => name.clone(),
            None => {
                Rules::read()
                    .map_err(|error| {
                        Failure::new(error.to_string()).remedy("--domain NAME, for which no rules are read")
                    })?
                    .domain
            }
        };
        Ok(DomainConfig { root: self.root.root.clone(), name })
    }
}
