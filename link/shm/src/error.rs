//! Why a port cannot be had, or is over.

use beeline_domain::{Absence, MayArrive};
use beeline_mmio::MapError;
use rustix::io::Errno;

/// Why a host cannot open a port.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The rendezvous failed or the NIC process refused.
    #[error("cannot open a port of NIC `{service}`")]
    Rendezvous {
        /// Name the NIC process offers.
        service: String,
        source: beeline_domain::ConnectError,
    },
    /// Memory could not be made or mapped.
    #[error("cannot have the memory of a port")]
    Memory(#[from] MapError),
    /// The NIC process answered something else than was asked.
    #[error("the NIC process answered {found} where {expected} was asked; is it another version of Beeline?")]
    Answer { expected: &'static str, found: String },
}

impl MayArrive for ConnectError {
    fn absence(&self) -> Option<Absence> {
        if let ConnectError::Rendezvous { source, .. } = self { source.absence() } else { None }
    }
}

/// Why a NIC process refuses what a host asks. The text goes to the host.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The message is none of the protocol.
    #[error("not a request of this protocol: {0}")]
    Garbage(String),
    /// The host speaks another version.
    #[error(
        "the host speaks version {found} of the port protocol, this NIC process {expected}; use one release"
    )]
    Version {
        /// The host's version.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// The request makes no sense at this point.
    #[error("{0} was asked at the wrong time")]
    Order(&'static str),
    /// A request came with the wrong number of descriptors.
    #[error("{found} descriptors came with a request that takes {expected}")]
    Descriptors { found: usize, expected: usize },
    /// There is no such queue.
    #[error("queue {queue} of a port that has {queues}")]
    Queue {
        /// The queue asked for.
        queue: u32,
        queues: u32,
    },
    /// There is no such doorbell.
    #[error("{offset_bytes:#x} is not the offset of a doorbell of this port")]
    Doorbell {
        /// The offset asked for.
        offset_bytes: u32,
    },
    /// There is no such region.
    #[error("memory region {region} is not registered")]
    Region { region: u32 },
    /// More memory than the NIC process lends to a port.
    #[error(
        "{asked} more bytes of memory: the port has {used} of {limit}, its windows and {regions} regions"
    )]
    TooMuchMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes in use.
        used: u64,
        /// Bytes allowed.
        limit: u64,
        /// Regions in use.
        regions: usize,
    },
    /// The host opens and closes faster than the NIC's loop takes over.
    #[error(
        "the NIC's loop has not yet taken over the {updates} things that this port opened or closed last; try again, \
         and see that the NIC process has a core to run on"
    )]
    Behind {
        /// Updates of the queue that wait already.
        updates: usize,
    },
    /// Memory could not be made, or what was passed cannot be trusted.
    #[error(transparent)]
    Memory(#[from] MapError),
    /// A descriptor could not be made or copied.
    #[error("cannot {what}: {errno}; raise the limit of open files (`ulimit -n`)")]
    Descriptor {
        /// What was tried.
        what: &'static str,
        errno: Errno,
    },
    /// No random blank is to be had.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// The device is not one that can stand behind shared memory.
    #[error("the device {0}; a device on shared memory needs blank windows and a capability list")]
    Device(String),
    /// The port is over.
    #[error("the port is closed: {0}")]
    Closed(String),
}

/// Why a port is over. Other ports go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The host wrote something to the register channel that is no register access.
    #[error("word {word:#018x} at access {access} of the register channel is no register access")]
    BadRequest {
        /// Accesses before it.
        access: u64,
        /// The page's first word.
        word: u64,
    },
    /// A register access has bits set that must be clear.
    #[error("register access {access} carries {word:#018x} where half a value belongs")]
    BadValue {
        /// Accesses before it.
        access: u64,
        word: u64,
    },
}
