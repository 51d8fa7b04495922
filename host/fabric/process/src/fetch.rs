//! Memory that one segment has alone: who is connected to it asks its member, once a connection, and maps what it is passed.
//!
//! The thread that maps asks and waits, without the member's lock: another process may be stopped, and then nobody waits but who wanted its
//! memory, at most [`PATIENCE`]. Threads that ask the same member follow each other. A worker answers, from the tables.

use std::sync::Arc;

use beeline_domain::{ConnectError, Connection, Disposer};
use beeline_fabric::{Lent, Part};
use beeline_mmio::{MapError, RegisteredMemory, SharedMemory};

use crate::packets::{Fetch, Fetched, PacketError};
use crate::pair::{NotMemories, PATIENCE, memories};

/// Where a segment is that is not in the bank of its member.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) memory: Arc<SharedMemory>,
    /// Where in the memory the segment begins.
    pub(crate) offset: u64,
}

impl Own {
    /// All of a memory.
    pub(crate) fn whole(memory: Arc<SharedMemory>) -> Self {
        Own { memory, offset: 0 }
    }

    pub(crate) fn place(&self, part: Part) -> Place {
        Place { memory: Arc::clone(&self.memory), offset: self.offset, part }
    }
}

/// A part of a segment that begins at an offset of some memory.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) memory: Arc<SharedMemory>,
    /// Where in the memory the segment begins.
    pub(crate) offset: u64,
    pub(crate) part: Part,
}

/// Where the memory of a part is.
pub(crate) enum Found {
    Here(Place),
    /// With the other member.
    There(Wanted),
    /// Memory of the program, at its own addresses.
    Program(Arc<RegisteredMemory>),
    /// This process does not know it.
    Nowhere,
}

/// What is to be asked for.
pub(crate) struct Wanted {
    pub(crate) connection: Arc<Connection>,
    pub(crate) lent: Lent,
    /// Of the segment, as its entry says.
    pub(crate) bytes: u64,
}

/// Why memory was not passed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error(transparent)]
    Descriptors(#[from] NotMemories),
    #[error(transparent)]
    Memory(#[from] MapError),
    #[error("a memory of {has} bytes was passed for a segment of {wanted} at {offset}")]
    TooSmall { has: u64, wanted: u64, offset: u64 },
}

/// Asks for memory, and checks what comes.
pub(crate) fn fetch(
    connection: &Connection,
    lent: Lent,
    wanted_bytes: u64,
    disposer: &Disposer,
) -> Result<Own, FetchError> {
    let request = Fetch(lent).to_bytes();
    let reply = connection.call_within(&request, &[], PATIENCE)?;
    let [memory] = memories(reply.fds, "a memory", disposer)?;
    let Fetched { bytes, offset } = Fetched::of(&reply.payload)?;
    if offset.checked_add(wanted_bytes).is_none_or(|end| end > bytes) {
        return Err(FetchError::TooSmall { has: bytes, wanted: wanted_bytes, offset });
    }
    let memory = SharedMemory::from_fd(memory, usize::try_from(bytes).unwrap_or(0))?;
    Ok(Own { memory: Arc::new(memory), offset })
}
