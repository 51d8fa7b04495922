//! Why a bench cannot run, or must not be believed.

use std::error::Error;

use beeline_mmio::{MapError, cpu};
use beeline_window::{ReceiveError, SendError};

use crate::nic::NicError;

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
    /// A NIC cannot be had, or a way through it must not be believed.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// A process that is to be killed, or the domain it is to be missed in, cannot be had.
    #[error("a process of this program cannot be used")]
    Role(#[from] std::io::Error),
    /// A process that is to be missed cannot be met.
    #[error("cannot meet the process that is to be killed: {0}")]
    Meet(String),
    /// A dead peer was not seen as what it is.
    #[error("process {pid} was killed, and its peer saw {seen}")]
    Missed {
        /// The process.
        pid: u32,
        /// What the peer saw.
        seen: String,
    },
    /// A rival that is installed cannot be used; none that is missing gives this.
    #[error("{rival}: {what}")]
    Rival {
        /// Which one.
        rival: String,
        /// What it did, or did not.
        what: String,
    },
    /// A simulated machine cannot be, or did not send its frames.
    #[error("the simulated machine: {0}")]
    Simulation(String),
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

impl BenchError {
    /// What a person can do about it, if anything.
    pub fn remedy(&self) -> Option<String> {
        match self {
            BenchError::Nic(error) => error.remedy(),
            BenchError::Pin { .. } => {
                let allowed: Vec<_> = cpu::allowed_cores().iter().map(usize::to_string).collect();
                Some(format!(
                    "choose two of the cores this process may use with --cores: {}",
                    allowed.join(", ")
                ))
            }
            _ => None,
        }
    }
}

/// An error with its causes, those left out that it names itself.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let io = std::io::Error::other("no more processes");
        let error = BenchError::from(NicError::Start { program: "/x".into(), source: io });
        assert_eq!(with_causes(&error), "cannot start a NIC process from /x: no more processes");
        let waited = BenchError::from(NicError::Patience { seconds: 10, what: "a frame".to_owned() });
        assert_eq!(with_causes(&waited), "waited 10 s for a frame");
        assert!(waited.remedy().is_some());
        let pinned = BenchError::Pin { core: 99, reason: "no such core".to_owned() };
        assert!(pinned.remedy().is_some_and(|remedy| remedy.contains("--cores")));
    }
}
