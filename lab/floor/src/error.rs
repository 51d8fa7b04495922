//! Why the floor cannot be measured, or must not be believed.

use beeline_mmio::{MapError, cpu};
use beeline_window::{ReceiveError, SendError};

/// Two sides that cannot run, or a path that is broken.
#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    /// Memory cannot be had.
    #[error(transparent)]
    Map(#[from] MapError),
    /// Two threads need two cores.
    #[error("{allowed} core(s) allowed to this process; a measurement of two sides needs 2")]
    Cores {
        /// Cores this process may run on.
        allowed: usize,
    },
    /// A thread cannot be pinned.
    #[error("cannot pin a thread to core {core}: {reason}")]
    Pin {
        core: usize,
        /// Message of the system.
        reason: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread to measure on: {0}")]
    Thread(std::io::Error),
    /// A window refused a message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A window could not be received from.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Bytes came out other than they went in: the path is broken and its figure means nothing.
    #[error("{path}: checksum {found:#x} where {expected:#x} was sent")]
    Corrupt {
        /// File of the measured memory.
        path: String,
        /// Sum of the words received.
        found: u64,
        /// Sum of the words sent.
        expected: u64,
    },
    /// A side panicked.
    #[error("the {0} side panicked")]
    Panicked(&'static str),
}

impl FloorError {
    /// What a person can do about it, if anything.
    pub fn remedy(&self) -> Option<String> {
        let FloorError::Pin { .. } = self else { return None };
        let allowed: Vec<_> = cpu::allowed_cores().iter().map(usize::to_string).collect();
        Some(format!("choose two of the cores this process may use with --cores: {}", allowed.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_cannot_be_had_says_which_can() {
        let pinned = FloorError::Pin { core: 99, reason: "no such core".to_owned() };
        assert!(pinned.remedy().is_some_and(|remedy| remedy.contains("--cores")));
        assert_eq!(FloorError::Panicked("first").remedy(), None);
    }
}
