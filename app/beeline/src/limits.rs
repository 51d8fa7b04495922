//! Limits of the process (`ulimit`) that would otherwise end it without a word.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytesize::ByteSize;
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGXFSZ;

use crate::cli::Command;
use crate::failure::Failure;
use crate::kv::args::{KvAction, KvArgs};

/// Address space that every command gets along with, and the few large ones besides those of [`needed_bytes`] nearly always.
const NEEDED_BYTES: u64 = 128 << 20;
/// What all machines and sizes of the published figures take in virtual time, at once.
const NEEDED_BY_FIGURES_BYTES: u64 = 1 << 30;

/// Has a write past the limit on the size of a file fail, as one to a full disk does. By default a signal ends the process.
pub fn bear_file_limit() {
    // That it was caught is all that the handler is for. Without it the program works, but for its last words there.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Refuses a command whose memory the limit on the address space does not allow: an allocation that fails ends the process
/// where it happens. Below some 25 MiB the system does not come as far as this.
///
/// # Errors
/// The limit is too low.
pub fn check_address_space(command: &Command) -> Result<(), Failure> {
    check(getrlimit(Resource::As).current, needed_bytes(command))
}

fn check(limit_bytes: Option<u64>, needed_bytes: u64) -> Result<(), Failure> {
    let Some(limit_bytes) = limit_bytes.filter(|&limit| limit < needed_bytes) else { return Ok(()) };
    let [limit, needed] = [limit_bytes, needed_bytes].map(|bytes| ByteSize(bytes).display().iec());
    Err(Failure::new(format!(
        "this process may have {limit} of address space (RLIMIT_AS); this command needs {needed} at least"
    ))
    .remedy(format!("ulimit -v {} in the shell that starts it, or ulimit -v unlimited", needed_bytes >> 10)))
}

fn needed_bytes(command: &Command) -> u64 {
    match command {
        Command::Figures(_) => NEEDED_BY_FIGURES_BYTES,
        Command::Kv(KvArgs { action: KvAction::Serve(args) }) => {
            NEEDED_BYTES.saturating_add(args.max_memory.as_u64())
        }
        _ => NEEDED_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn needed_by(args: &str) -> u64 {
        needed_bytes(&Cli::try_parse_from(args.split(' ')).unwrap().command)
    }

    #[test]
    fn limit_below_what_a_command_needs_is_refused_with_both_and_what_to_type() {
        assert!(check(None, NEEDED_BYTES).is_ok() && check(Some(NEEDED_BYTES), NEEDED_BYTES).is_ok());
        let text = check(Some(30 << 20), NEEDED_BYTES).unwrap_err().to_string();
        assert!(text.contains("may have 30.0 MiB") && text.contains("needs 128.0 MiB"), "{text}");
        assert!(text.contains("ulimit -v 131072"), "{text}");
    }

    #[test]
    fn store_needs_its_memory_too() {
        assert_eq!(needed_by("beeline kv serve --max-memory 1GiB"), NEEDED_BYTES + (1 << 30));
        assert_eq!(needed_by("beeline kv serve --max-memory 16EiB"), u64::MAX);
        assert_eq!((needed_by("beeline stat"), needed_by("beeline figures")), (NEEDED_BYTES, 1 << 30));
    }
}
