//! Why a bench cannot run, or must not be believed.

use beeline_floor::FloorError;
use beeline_mmio::MapError;
use beeline_session::NicError;
use beeline_window::{ReceiveError, SendError};

/// A bench that gives no figures.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Memory cannot be had.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A window refused a message.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A byte stream refused bytes.
    #[error(transparent)]
    Stream(#[from] beeline_window::ByteWriteError),
    /// A lap window refused a message.
    #[error(transparent)]
    SendToAll(#[from] beeline_window::lap::LapSendError),
    /// A window could not be received from.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Two sides cannot run, or a path is broken.
    #[error(transparent)]
    Floor(#[from] FloorError),
    /// A NIC cannot be had, or a way through it must not be believed.
    #[error(transparent)]
    Nic(#[from] NicError),
    /// A process that is to be killed, or the domain it is to be missed in, cannot be had.
    #[error("a process of this program cannot be used")]
    Role(#[from] std::io::Error),
    /// A process that is to be missed cannot be met.
    #[error("cannot meet the process that is to be killed: {0}")]
    Meet(String),
    /// Two processes that are to connect, send and close do not.
    #[error("two processes cannot connect: {0}")]
    Connect(String),
    /// A member of a fabric cannot do what is to be measured.
    #[error("the fabric: {0}")]
    Fabric(String),
    /// A dead peer was not seen as what it is.
    #[error("process {pid} was killed, and its peer saw {seen}")]
    Missed {
        /// The process.
        pid: u32,
        seen: String,
    },
    /// A rival that is installed cannot be used; none that is missing gives this.
    #[error("{rival}: {what}")]
    Rival {
        rival: String,
        /// What the peer did or failed to do.
        what: String,
    },
    /// A simulated machine cannot be, or did not send its frames.
    #[error("the simulated machine: {0}")]
    Simulation(String),
    /// No bench of this name.
    #[error("no bench `{0}`; `beeline-bench list` shows what there is")]
    Unknown(String),
    /// Benches by name that ended in an error, which the report has; what the others measured stands.
    #[error("these benches failed, and the others did not: {0}")]
    Failed(String),
    /// A file cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: std::path::PathBuf,
        error: std::io::Error,
    },
}

impl BenchError {
    /// What a person can do about it, if anything.
    pub fn remedy(&self) -> Option<String> {
        match self {
            BenchError::Nic(error) => error.remedy(),
            BenchError::Floor(error) => error.remedy(),
            _ => None,
        }
    }
}
