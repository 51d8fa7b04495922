//! Memory that one segment has alone: who is connected to it asks its member, once a connection, and maps what it is passed.
//!
//! The thread that maps asks and waits, without the member's lock: another process may be stopped, and then nobody waits but who wanted its
//! memory, at most [`PATIENCE`]. Threads that ask the same member follow each other. A worker answers, from the tables.

use std::sync::Arc;

use beeline_domain::{ConnectError, Connection, Disposer};
use beeline_fabric::{Lent, Part};
use beeline_mmio::{MapError, Region, RegisteredMemory, SharedMemory};

use crate::backing::{Backing, NotBacking};
use crate::packets::{Fetch, Fetched, PacketError};
use crate::pair::PATIENCE;
use crate::terms::Terms;

/// Where a segment is that is not in the bank of its member.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) memory: Backing,
    /// Where in the memory the segment begins.
    pub(crate) offset: u64,
    /// Keeps its pages locked.
    _locked: Option<Region>,
}

impl Own {
    /// All of a memory.
    pub(crate) fn whole(memory: Arc<SharedMemory>) -> Self {
        Self::of(Backing::Memory(memory), 0)
    }

    pub(crate) fn of(memory: Backing, offset: u64) -> Self {
        Own { memory, offset, _locked: None }
    }

    /// New memory on a member's terms. What is locked is brought in now, and stays locked until the segment is removed.
    ///
    /// # Errors
    /// There is none, or the limits do not allow it.
    pub(crate) fn create(name: &str, bytes: usize, terms: &Terms) -> Result<Self, MapError> {
        let memory = SharedMemory::create(name, bytes, terms.memory())?;
        let locked = if terms.locked { Some(memory.map()?) } else { None };
        Ok(Own { memory: Backing::Memory(Arc::new(memory)), offset: 0, _locked: locked })
    }

    pub(crate) fn place(&self, part: Part) -> Place {
        Place { memory: self.memory.clone(), offset: self.offset, part }
    }
}

/// A part of a segment that begins at an offset of some memory.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) memory: Backing,
    /// Where in the memory the segment begins.
    pub(crate) offset: u64,
    pub(crate) part: Part,
}

impl Place {
    /// Where the part begins on the bus.
    pub(crate) fn bus_address(&self) -> Option<u64> {
        self.memory
            .bus_address()
            .map(|first| first.saturating_add(self.offset).saturating_add(self.part.offset))
    }
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
    Memory(#[from] NotBacking),
    #[error("a memory of {has} bytes was passed for a segment of {wanted} at {offset}")]
    TooSmall { has: u64, wanted: u64, offset: u64 },
}

/// Asks for memory, and checks what comes.
pub(crate) fn fetch(
    connection: &Connection,
    lent: Lent,
    wanted_bytes: u64,
    (terms, disposer): (&Terms, &Disposer),
) -> Result<Own, FetchError> {
    let request = Fetch(lent).to_bytes();
    let reply = connection.call_within(&request, &[], PATIENCE)?;
    let Fetched { kind, bytes, offset } = match Fetched::of(&reply.payload) {
        Ok(fetched) => fetched,
        Err(error) => {
            disposer.dispose(reply.fds);
            return Err(error.into());
        }
    };
    let memory = Backing::of(kind, reply.fds, (bytes, offset), terms, disposer)?;
    // A part of a device begins where the segment does.
    let offset = offset - memory.offset_bytes();
    if offset.checked_add(wanted_bytes).is_none_or(|end| end > bytes) {
        return Err(FetchError::TooSmall { has: bytes, wanted: wanted_bytes, offset });
    }
    Ok(Own::of(memory, offset))
}
