//! Why a function cannot be served.

use std::path::PathBuf;

use beeline_link_shm::ControlError;
use beeline_mmio::MapError;
use rustix::io::Errno;

/// Why a function cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// The socket cannot be made.
    #[error("cannot listen at {path}: {why}; {remedy}")]
    Socket {
        /// Where the socket was to be.
        path: PathBuf,
        why: String,
        remedy: &'static str,
    },
    /// The device is not one that can stand behind memory.
    #[error(transparent)]
    Device(#[from] ControlError),
    /// The memory of the windows cannot be had.
    #[error("cannot have the windows of a PCI function")]
    Memory(#[from] MapError),
    /// The device has more than fits the BARs of a function.
    #[error("{what} of a PCI function would be {bytes} bytes; choose fewer queues or smaller windows")]
    TooLarge {
        /// What does not fit.
        what: &'static str,
        bytes: u64,
    },
    /// The system refuses what a server needs.
    #[error("cannot {what}: {errno}")]
    System { what: &'static str, errno: Errno },
    /// No random blank is to be had.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}
