//! Memory mapped for pointers that others use: segments.
//!
//! A [`crate::Region`] has no pointer by design. Programs that were written for mapped segments want one: a part of some memory,
//! perhaps for reading only, at an address that they name, many gigabytes of which few are touched. This is that edge: what can be
//! mapped is checked here ([`MappedSegment::memory`] and the others), and the pointer is handed out raw.
//!
//! What goes away under a mapping ends the process that accesses it. So memory that can go away is refused unless the options say
//! what shall happen ([`OnLoss`]): sealed memfds cannot; files that others may write, devices and huge pages can.
//!
//! Not here: who may connect to a segment, under which name, and when it is removed (the edge above); loads and stores through the
//! pointers, which this crate does not see.

mod dma_buf;
mod error;
mod options;
mod own;
mod place;
mod process_maps;
mod program;
mod source;

use core::ptr::NonNull;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

use crate::mapping::Mapping;
use crate::{BarKind, PciAddress, ReadOnlyRegion, Region, bar, copy, memory};
use source::Source;

pub use dma_buf::DmaBuf;
pub use error::{CopyError, GuardError, SegmentError};
pub use options::{Access, HugePages, OnLoss, Pages, SegmentOptions};
pub use own::OwnMemory;
#[cfg(fuzzing)]
pub use process_maps::fuzzed as process_maps_fuzzed;
pub use program::{RegisterError, RegisterOptions, RegisteredMemory};

/// Memory mapped into this process, whose address is known.
///
/// It is unmapped by [`MappedSegment::unmap`], or when it and all that was made of it (pointers that are counted, regions and their
/// handles) are gone.
#[derive(Debug)]
pub struct MappedSegment {
    mapping: Arc<Mapping>,
    access: Access,
    has_huge_pages: bool,
}

impl MappedSegment {
    /// Maps memory that is passed by descriptor and cannot shrink: a memfd sealed with `F_SEAL_SHRINK`.
    ///
    /// # Errors
    /// [`SegmentError`], for a part that is not there, a descriptor of something else, an access that it does not give.
    pub fn memory(fd: BorrowedFd<'_>, options: &SegmentOptions) -> Result<Self, SegmentError> {
        Self::of(&source::memory(fd, options)?, options)
    }

    /// Maps a regular file: on a disk, in `/dev/shm`, or any memfd. One that can be made shorter needs an [`OnLoss`] that allows
    /// it.
    ///
    /// # Errors
    /// As for [`MappedSegment::memory`].
    pub fn file(fd: BorrowedFd<'_>, options: &SegmentOptions) -> Result<Self, SegmentError> {
        Self::of(&source::file(fd, options)?, options)
    }

    /// Maps a part of BAR `index` (0 to 5) of a PCI function. A device can be removed, which needs an [`OnLoss`] that allows it;
    /// one that answers no more without having been removed reads as ones and is no loss that anybody is told of.
    ///
    /// # Errors
    /// As for [`MappedSegment::memory`]; [`SegmentError::Bar`] if the BAR is not there or may not be opened.
    pub fn bar(
        address: PciAddress,
        index: u8,
        kind: BarKind,
        options: &SegmentOptions,
    ) -> Result<Self, SegmentError> {
        Self::bar_under(Path::new("/sys"), address, index, kind, options)
    }

    /// As [`MappedSegment::bar`], with another root than `/sys`: for tests.
    ///
    /// # Errors
    /// As for [`MappedSegment::bar`].
    pub fn bar_under(
        sysfs: &Path,
        address: PciAddress,
        index: u8,
        kind: BarKind,
        options: &SegmentOptions,
    ) -> Result<Self, SegmentError> {
        let file = bar::open(sysfs, address, index, kind, options.access == Access::ReadWrite)?;
        let object = file.path.display().to_string();
        Self::of(&source::bar(object, file.fd, file.bytes as u64, options)?, options)
    }

    /// Maps a part of a BAR whose file is open, up to `end_bytes` of it.
    pub(crate) fn bar_file(
        (path, fd): (&Path, BorrowedFd<'_>),
        end_bytes: u64,
        options: &SegmentOptions,
    ) -> Result<Self, SegmentError> {
        Self::of(&source::bar_file(path.display().to_string(), fd, end_bytes, options)?, options)
    }

    fn of(source: &Source<'_>, options: &SegmentOptions) -> Result<Self, SegmentError> {
        let (mapping, has_huge_pages) = place::map(source, options)?;
        Ok(MappedSegment { mapping: Arc::new(mapping), access: options.access, has_huge_pages })
    }

    /// Returns the bytes of the segment: what was asked for, not rounded to pages.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// Returns what the segment is mapped for.
    #[inline]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Whether the memory is made of huge pages, or the kernel took note of the wish for them.
    pub fn has_huge_pages(&self) -> bool {
        self.has_huge_pages
    }

    /// The first byte, for [`MappedSegment::bytes`]. Valid until the segment is unmapped or dropped, and not counted: whoever
    /// gives it away sees to it that it is not used afterwards.
    ///
    /// Others write this memory at any time: make no reference (`&`, slices) of it, and access it by volatile or atomic
    /// accesses. Stores through the pointer of a segment that is [`Access::ReadOnly`] end the process.
    #[inline]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.mapping.start()
    }

    /// A pointer that is counted: as long as it, or a clone, exists, the memory stays mapped and [`MappedSegment::unmap`] fails.
    /// `None` if the bytes are not in the segment.
    pub fn pointer(&self, offset_bytes: usize, bytes: usize) -> Option<MappedPointer> {
        let end = offset_bytes.checked_add(bytes)?;
        if end > self.bytes() {
            return None;
        }
        let start = NonNull::new(self.as_ptr().as_ptr().wrapping_add(offset_bytes))?;
        Some(MappedPointer { start, bytes, access: self.access, mapping: Arc::clone(&self.mapping) })
    }

    /// The segment as a region, for words, windows and copies; `None` if it is mapped for reading. It counts as a pointer does.
    /// One of memory that the program has at an odd address ([`RegisteredMemory::as_it_is`]) is for copies: what needs an alignment that
    /// the address has not panics.
    pub fn region(&self) -> Option<Region> {
        (self.access == Access::ReadWrite).then(|| Region::of(Arc::clone(&self.mapping)))
    }

    /// The segment as a region to load from, as [`MappedSegment::region`]. It counts as a pointer does.
    pub fn read_only_region(&self) -> ReadOnlyRegion {
        memory::read_only(Arc::clone(&self.mapping))
    }

    /// Copies bytes into the segment, as [`Region::copy_in`] does, and looks whether it is intact.
    ///
    /// # Errors
    /// [`CopyError`], if the bytes reach outside the segment, it is mapped for reading only, or memory of it is gone.
    pub fn copy_in(&self, offset_bytes: usize, bytes: &[u8]) -> Result<(), CopyError> {
        let to = self.writable_at(offset_bytes, bytes.len())?;
        // SAFETY: `writable_at` checked that these bytes are mapped, for writing too.
        unsafe { copy::copy_in(to, bytes) };
        self.intact()
    }

    /// Copies bytes out of the segment, as [`Region::copy_out`] does, and looks whether it is intact.
    ///
    /// # Errors
    /// [`CopyError`], if the bytes reach outside the segment or memory of it is gone.
    pub fn copy_out(&self, offset_bytes: usize, bytes: &mut [u8]) -> Result<(), CopyError> {
        let from = self.at(offset_bytes, bytes.len())?;
        // SAFETY: `at` checked that these bytes are mapped.
        unsafe { copy::copy_out(from, bytes) };
        self.intact()
    }

    /// Copies bytes of another segment, or of this one, into the segment. Stores are as those of [`MappedSegment::copy_in`]. Where the
    /// bytes that are copied overlap those that they are copied to, these become some mix of what was there.
    ///
    /// # Errors
    /// [`CopyError`], if the bytes reach outside either segment, this one is mapped for reading only, or memory of one is gone.
    pub fn copy_from(
        &self,
        offset_bytes: usize,
        from: &MappedSegment,
        from_offset_bytes: usize,
        bytes: usize,
    ) -> Result<(), CopyError> {
        let (to, source) = (self.writable_at(offset_bytes, bytes)?, from.at(from_offset_bytes, bytes)?);
        // SAFETY: these checked that the bytes of both are mapped, those of this one for writing too.
        unsafe { copy::copy_over(to, source, bytes) };
        from.intact()?;
        self.intact()
    }

    #[inline]
    pub(crate) fn writable_at(&self, offset_bytes: usize, bytes: usize) -> Result<*mut u8, CopyError> {
        let start = self.at(offset_bytes, bytes)?;
        if self.access == Access::ReadOnly { Err(CopyError::ReadOnly) } else { Ok(start) }
    }

    #[inline]
    pub(crate) fn at(&self, offset_bytes: usize, bytes: usize) -> Result<*mut u8, CopyError> {
        let whole = self.bytes();
        if offset_bytes > whole || bytes > whole - offset_bytes {
            return Err(CopyError::Outside { bytes, offset_bytes, whole });
        }
        Ok(self.as_ptr().as_ptr().wrapping_add(offset_bytes))
    }

    pub(crate) fn intact(&self) -> Result<(), CopyError> {
        if self.is_intact() { Ok(()) } else { Err(CopyError::Lost) }
    }

    /// Whether no access has met memory that was gone. Once `false`, it stays so: what is gone does not come back here, even if
    /// the file grows again. Only guarded segments can say so ([`OnLoss::Guarded`]), and only of what was accessed: ask after the
    /// accesses, before what they gave is believed.
    pub fn is_intact(&self) -> bool {
        !self.mapping.is_lost()
    }

    /// Unmaps the segment.
    ///
    /// # Errors
    /// [`StillMapped`], with the segment, while pointers that are counted, or handles of its regions, exist.
    pub fn unmap(self) -> Result<(), StillMapped> {
        let MappedSegment { mapping, access, has_huge_pages } = self;
        let again = |mapping| MappedSegment { mapping, access, has_huge_pages };
        let mapping = Arc::try_unwrap(mapping).map_err(|mapping| {
            let uses = Arc::strong_count(&mapping) - 1;
            StillMapped { segment: again(mapping), reason: InUse::Handles(uses) }
        })?;
        mapping.unmap().map_err(|(mapping, errno)| StillMapped {
            segment: again(Arc::new(mapping)),
            reason: InUse::Refused(errno),
        })
    }
}

/// A pointer into a segment that keeps it mapped.
#[derive(Clone, Debug)]
pub struct MappedPointer {
    start: NonNull<u8>,
    bytes: usize,
    access: Access,
    mapping: Arc<Mapping>,
}

// SAFETY: an address inside a `Mapping`, which is `Send` and `Sync` and which the pointer keeps alive.
unsafe impl Send for MappedPointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for MappedPointer {}

impl MappedPointer {
    /// The first byte; valid as long as this pointer or a clone of it exists. What may be done with it is said at
    /// [`MappedSegment::as_ptr`].
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns how many bytes may be accessed.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns what they may be accessed for.
    pub fn access(&self) -> Access {
        self.access
    }

    /// As [`MappedSegment::is_intact`], of the whole segment.
    pub fn is_intact(&self) -> bool {
        !self.mapping.is_lost()
    }
}

/// A segment that was not unmapped.
#[derive(Debug, thiserror::Error)]
#[error("the segment stays mapped: {reason}")]
pub struct StillMapped {
    pub segment: MappedSegment,
    pub reason: InUse,
}

/// Why a segment stays mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InUse {
    /// Pointers, regions or handles of regions exist.
    #[error("{0} pointers or handles into it exist")]
    Handles(usize),
    /// The kernel would have to divide a mapping, and the process has as many as it may have.
    #[error("the kernel refused ({0}): unmap another segment first")]
    Refused(Errno),
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests;
