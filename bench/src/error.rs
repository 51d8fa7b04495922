//! Why a bench cannot run, or must not be believed.

use beeline_mmio::MapError;
use beeline_window::{ReceiveError, SendError};

/// A bench that gives no figures.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Memory cannot be had.
    #[error(transparent)]
    Map(#[from] MapError),
    /// Two threads need two cores.
    #[error("{allowed} core(s) allowed to this process; a bench of two sides needs 2")]
    Cores {
        /// Cores this process may run on.
        allowed: usize,
    },
    /// A thread cannot be pinned.
    #[error("cannot pin a thread to core {core}: {reason}")]
    Pin {
        /// The core.
        core: usize,
        /// What the system said.
        reason: String,
    },
    /// A window refused a message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A window could not be received from.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Bytes came out other than they went in: the path is broken and its figure means nothing.
    #[error("{path}: checksum {found:#x} where {expected:#x} was sent")]
    Corrupt {
        /// What was measured.
        path: String,
        /// Sum of the words received.
        found: u64,
        /// Sum of the words sent.
        expected: u64,
    },
    /// No bench of this name.
    #[error("no bench `{0}`; `beeline-bench list` shows what there is")]
    Unknown(String),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A side panicked.
    #[error("the {0} side panicked")]
    Panicked(&'static str),
}
