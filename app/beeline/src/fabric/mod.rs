//! `beeline fabric`: what there is of a fabric on this machine, and what is to be done with it by hand.
//!
//! `host/fabric/process` (`Survey`) looks at nodes and asks members, `host/fabric/bar` (`BarSurvey`) at members that share a memory; here what they say
//! becomes words, tables and changes.

pub mod args;
mod changes;
mod held;
mod link;
mod ls;
mod memory;
mod nodes;
mod pci;
mod place;
mod probe;
mod rm;
mod table;
mod view;
mod watch;

use args::{FabricAction, FabricArgs};

use crate::failure::Failure;

/// Runs `beeline fabric`.
pub fn run(args: &FabricArgs) -> Result<(), Failure> {
    match &args.action {
        FabricAction::Ls(args) => ls::run(args),
        FabricAction::Watch(args) => watch::run(args),
        FabricAction::Rm(args) => rm::run(args),
        FabricAction::Link(args) => link::run(args),
        FabricAction::Probe(args) => probe::run(args),
    }
}
