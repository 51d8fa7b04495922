//! `beeline sockets`: the connections of programs that have the socket library, while they run.
//!
//! Each process counts on a board of its own (`host/sockets/rules`); here boards become a table, JSON or what Prometheus reads.

pub mod args;
pub mod program_name;
mod prometheus;
mod switch;
mod table;
mod view;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use args::{GroundArgs, LookArgs, SocketsAction, SocketsArgs};
use beeline_domain::DomainPlace;
use beeline_socket_rules::{BoardView, Windows, boards, windows_of};
use view::Look;

use crate::failure::Failure;
use crate::out;

/// Moves to the top left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Runs `beeline sockets`.
pub fn run(args: &SocketsArgs) -> Result<(), Failure> {
    match &args.action {
        Some(SocketsAction::Down(args)) => switch::run(&folder(&args.ground)?, args, Windows::Down),
        Some(SocketsAction::Up(args)) => switch::run(&folder(&args.ground)?, args, Windows::Up),
        None => list(&folder(&args.look.ground)?, &args.look),
    }
}

/// The folder of the domain that is meant.
fn folder(args: &GroundArgs) -> Result<PathBuf, Failure> {
    let config = args.config()?;
    match config.place() {
        DomainPlace::Folder(root) => Ok(root.join(&config.name)),
        _ => Err(Failure::new("connections are counted in files of a domain's folder, and @net has none")
            .remedy("a folder: --root DIR")),
    }
}

fn list(folder: &Path, args: &LookArgs) -> Result<(), Failure> {
    let mut before = None;
    for look in 0.. {
        if args.count == Some(look) {
            break;
        }
        if look > 0 {
            std::thread::sleep(Duration::from_millis(args.interval_ms));
        }
        let now = take(folder, args, before.as_ref())?;
        show(args, &now)?;
        if !args.watch {
            break;
        }
        before = Some(now);
    }
    Ok(())
}

fn take(folder: &Path, args: &LookArgs, before: Option<&Look>) -> Result<Look, Failure> {
    let cannot = |error| Failure::new("cannot look at the connections").because(error);
    let mut found = Vec::new();
    for board in boards(folder).map_err(cannot)? {
        match board {
            Ok(board) => found.push(board),
            // One may be in the making, and one that is odd hides no other.
            Err(error) => tracing::info!(%error, "a board is left out"),
        }
    }
    let is_wanted = |board: &BoardView| args.pids.is_empty() || args.pids.contains(&board.pid());
    found.retain(is_wanted);
    let are_down = windows_of(folder) == Windows::Down;
    Ok(Look::new(Instant::now(), found, before, are_down))
}

fn show(args: &LookArgs, look: &Look) -> Result<(), Failure> {
    if args.prometheus {
        return out::text(prometheus::text(look));
    }
    if args.json && args.watch {
        let line = serde_json::to_string(&look.processes);
        return out::line(line.map_err(|e| Failure::new("cannot write JSON").because(e))?);
    }
    if args.json {
        return out::json(&look.processes);
    }
    let text = table::text(look, args.watch, args.all);
    match args.watch && io::stdout().is_terminal() {
        true => out::text(format_args!("{CLEAR}{text}\n")),
        false => out::line(text),
    }
}
