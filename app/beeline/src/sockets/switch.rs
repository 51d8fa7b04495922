//! `beeline sockets down` and `beeline sockets up`.

use std::path::Path;
use std::time::Duration;

use beeline_socket_engine::{Switched, switch};
use beeline_socket_rules::Windows;

use super::args::SwitchArgs;
use crate::failure::Failure;
use crate::out;

/// Orders processes of a domain what their windows are to be, and says who has done it.
pub fn run(folder: &Path, args: &SwitchArgs, to: Windows) -> Result<(), Failure> {
    let word = match to {
        Windows::Up => "up",
        Windows::Down => "down",
    };
    let within = Duration::from_millis(args.timeout_ms);
    let Switched { done, not_yet } = switch(folder, &args.pids, to, within)
        .map_err(|error| Failure::new(format!("cannot take windows {word}")).because(error))?;
    let known = |pid: &u32| done.contains(pid) || not_yet.contains(pid);
    if let Some(stranger) = args.pids.iter().find(|pid| !known(pid)) {
        return Err(Failure::new(format!("no process {stranger} has the socket library and a connection"))
            .remedy("those that `beeline sockets --all` lists"));
    }
    out::line(format_args!("windows are {word} in {} processes", done.len()))?;
    match not_yet.as_slice() {
        [] => Ok(()),
        pids => {
            let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
            Err(Failure::new(format!("no answer from {}, which do it when they run", pids.join(", "))))
        }
    }
}
