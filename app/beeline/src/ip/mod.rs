//! `beeline ip`: a network device for the nodes of a fabric.

pub mod args;
mod told;
mod up;

use args::{IpAction, IpArgs};

use crate::failure::Failure;

/// Runs `beeline ip`.
pub fn run(args: &IpArgs) -> Result<(), Failure> {
    match &args.action {
        IpAction::Up(args) => up::run(args),
    }
}
