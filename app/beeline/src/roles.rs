//! Commands that this program starts itself with. They are no part of the command line that people type: no help, no
//! man page, no completion.

use std::ffi::OsStr;

use beeline_session::ServeArgs;
use clap::{CommandFactory, Parser};

use crate::worker::WorkerArgs;

/// A process that another command of this program started.
#[derive(Parser, Debug)]
#[command(name = "beeline")]
pub enum Role {
    /// One side of a check over three processes
    Worker(WorkerArgs),
    /// The NIC of another command
    PrivateNic(ServeArgs),
}

impl Role {
    /// The role that the command line of this process asks for, if it asks for one.
    pub fn asked_for() -> Option<Role> {
        let name = std::env::args_os().nth(1)?;
        Self::is_named(&name).then(Role::parse)
    }

    fn is_named(name: &OsStr) -> bool {
        Role::command().get_subcommands().any(|role| OsStr::new(role.get_name()) == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_known_by_name_and_nothing_else_is_one() {
        assert!(["worker", "private-nic"].into_iter().all(|name| Role::is_named(OsStr::new(name))));
        assert!(["help", "nic", "--help"].into_iter().all(|name| !Role::is_named(OsStr::new(name))));
    }
}
