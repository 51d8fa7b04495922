//! Waiting for whoever is not there yet: the option that says how long, and a word about it on standard error.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use clap::Args;

use crate::out;

/// How long a command waits before it says so.
const QUIET: Duration = Duration::from_secs(1);

/// How long a command waits for a NIC.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct WaitArgs {
    /// Milliseconds to wait for a NIC that is not there yet [default: 0]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl WaitArgs {
    /// The time given, or none.
    pub fn timeout(self) -> Duration {
        Duration::from_millis(self.timeout_ms.unwrap_or(0))
    }
}

/// A command that waits. Dropped when the wait is over.
#[must_use]
pub struct Waiting(#[expect(dead_code, reason = "its end is what the thread waits for")] Sender<()>);

/// Says what is waited for, unless what it returns is dropped within a second.
pub fn say_if_it_takes_long(what: String, limit: Duration) -> Waiting {
    let (end, ended) = channel::<()>();
    let say = move || {
        if ended.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
            out::remark(format_args!(
                "waiting for {what}, {} s at most; Ctrl-C ends it",
                limit.as_secs_f64()
            ));
        }
    };
    if limit > QUIET {
        // A command that cannot have a thread waits in silence.
        let _ = beeline_mmio::thread::start("waiting", say);
    }
    Waiting(end)
}
