//! What lies behind a segment that has memory of its own, and how it is passed and mapped: memory of the host, or a part of a BAR.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use beeline_domain::Disposer;
use beeline_mmio::{
    BarKind, BarPart, BarPartError, HugePages, MapError, MappedSegment, MemoryOptions, OnLoss,
    SegmentOptions, SharedMemory, page_bytes,
};

use crate::error::NotMapped;
use crate::packets::Kind;
use crate::pair::{NotMemories, memories};
use crate::terms::Terms;

/// Memory that others can be passed.
#[derive(Clone, Debug)]
pub(crate) enum Backing {
    Memory(Arc<SharedMemory>),
    Device(Arc<BarPart>),
}

/// Why what another member has passed is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotBacking {
    #[error(transparent)]
    Descriptors(#[from] NotMemories),
    #[error(transparent)]
    Memory(#[from] MapError),
    #[error(transparent)]
    Device(#[from] BarPartError),
}

impl Backing {
    /// Takes what another member has passed, of so many bytes. Of a device, the segment begins at `offset` of the BAR.
    pub(crate) fn of(
        kind: Kind,
        fds: Vec<OwnedFd>,
        (bytes, offset): (u64, u64),
        terms: &Terms,
        disposer: &Disposer,
    ) -> Result<Self, NotBacking> {
        match kind {
            Kind::Memory => {
                let [memory] = memories(fds, "a memory", disposer)?;
                let options = MemoryOptions { huge_pages: terms.huge_pages, locked: false };
                let bytes = usize::try_from(bytes).unwrap_or(0);
                Ok(Backing::Memory(Arc::new(SharedMemory::from_fd_with(memory, bytes, options)?)))
            }
            Kind::Device => {
                let borrowed: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
                let part = BarPart::from_fds(&terms.sysfs, &borrowed, offset, bytes);
                // Closing what is no BAR may take as long as its sender likes.
                disposer.dispose(fds);
                Ok(Backing::Device(Arc::new(part?)))
            }
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Backing::Memory(_) => Kind::Memory,
            Backing::Device(_) => Kind::Device,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Backing::Memory(memory) => memory.bytes() as u64,
            Backing::Device(part) => part.bytes(),
        }
    }

    /// Where in what is passed the first byte is.
    pub(crate) fn offset_bytes(&self) -> u64 {
        match self {
            Backing::Memory(_) => 0,
            Backing::Device(part) => part.offset_bytes(),
        }
    }

    /// Where the first byte is on the bus. Memory of the host has no address there that a program may know.
    pub(crate) fn bus_address(&self) -> Option<u64> {
        match self {
            Backing::Memory(_) => None,
            Backing::Device(part) => Some(part.bus_address()),
        }
    }

    /// The descriptors that are passed to a member which maps the segment.
    pub(crate) fn fds(&self) -> std::io::Result<Vec<OwnedFd>> {
        match self {
            Backing::Memory(memory) => Ok(vec![memory.fd().try_clone_to_owned()?]),
            Backing::Device(part) => part.fds().map(|fd| fd.try_clone_to_owned()).collect(),
        }
    }

    /// What a part of it that is mapped has to begin at a multiple of.
    pub(crate) fn page_bytes(&self) -> Result<u64, MapError> {
        match self {
            Backing::Memory(memory) => memory.page_bytes().map(|bytes| bytes as u64),
            Backing::Device(_) => Ok(page_bytes() as u64),
        }
    }

    /// Maps a part. `options` count from the beginning of what is passed.
    pub(crate) fn map(&self, is_uncached: bool, options: SegmentOptions) -> Result<MappedSegment, NotMapped> {
        match self {
            Backing::Memory(_) if is_uncached => Err(NotMapped::Cached),
            Backing::Memory(memory) if memory.has_huge_pages() => {
                // Whoever has such memory said that it trusts its peers not to give pages back.
                let options =
                    SegmentOptions { huge_pages: HugePages::Wished, on_loss: OnLoss::Fatal, ..options };
                Ok(MappedSegment::memory(memory.fd(), &options)?)
            }
            Backing::Memory(memory) => Ok(MappedSegment::memory(memory.fd(), &options)?),
            Backing::Device(part) => {
                let kind = if is_uncached { BarKind::Uncached } else { BarKind::WriteCombining };
                // Record 0053: a device that is taken away ends who uses it.
                Ok(part.map(kind, &SegmentOptions { on_loss: OnLoss::Fatal, ..options })?)
            }
        }
    }
}

/// A part of a BAR that is found by its address on the bus.
pub(crate) fn find(sysfs: &Path, bus_address: u64, bytes: u64) -> Result<Backing, BarPartError> {
    BarPart::find(sysfs, bus_address, bytes).map(|part| Backing::Device(Arc::new(part)))
}
