//! `beeline kv`: a key-value store as a service, and one call at a time to it.
//!
//! The store is `host/rpc/kv`; here are names, cores, signals, text. A program that makes more than one call uses the
//! library: starting this one takes a hundred thousand times longer than a GET.

pub mod args;
mod calls;
mod serve;

use std::process::ExitCode;

use args::{KvAction, KvArgs};

use crate::failure::Failure;

/// Runs `beeline kv`.
pub fn run(args: &KvArgs) -> Result<ExitCode, Failure> {
    match &args.action {
        KvAction::Serve(args) => serve::run(args).map(|()| ExitCode::SUCCESS),
        KvAction::Get(args) => calls::get(args),
        KvAction::Set(args) => calls::set(args).map(|()| ExitCode::SUCCESS),
        KvAction::Delete(args) => calls::delete(args),
        KvAction::Stats(args) => calls::stats(args).map(|()| ExitCode::SUCCESS),
    }
}
