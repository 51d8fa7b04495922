//! Memory that one process writes and the others only read.
//!
//! Its maker has the only mapping that can be written, ever: the seal on later writable mappings is put on once that one is
//! made. So a peer that holds the descriptor can neither write, nor punch holes, nor make its own mapping writable, and what
//! one reader sees no other reader can change.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::{MemoryOptions, SEALS, SharedMemory, check_sealed};
use crate::mapping::{Backing, Mapping};
use crate::memfd::{create_memfd, set_size};
use crate::{MapError, ReadWindow, ReadWords, Region, Unpaced, populate};

/// A memfd that can be mapped for reading and not for writing, whose size can no longer change.
#[derive(Debug)]
pub struct ReadOnlyMemory {
    fd: OwnedFd,
    bytes: usize,
}

impl ReadOnlyMemory {
    /// Creates zeroed memory, and the one mapping of it that can be written. `name` is for people only.
    ///
    /// # Errors
    /// [`MapError`]; also where the kernel does not know the seal (before Linux 5.1).
    pub fn create(name: &str, bytes: usize) -> Result<(Region, Self), MapError> {
        Self::create_mapped(name, bytes, SharedMemory::map)
    }

    /// As [`ReadOnlyMemory::create`], without bringing pages in: each comes with the first access to it, by whomever, or in a part
    /// with [`Region::populate`]. For memory that is much larger than what is used of it. An access that finds the system without
    /// memory ends the process.
    ///
    /// # Errors
    /// As [`ReadOnlyMemory::create`].
    pub fn create_sparse(name: &str, bytes: usize) -> Result<(Region, Self), MapError> {
        Self::create_mapped(name, bytes, SharedMemory::map_sparse)
    }

    fn create_mapped(
        name: &str,
        bytes: usize,
        map: impl FnOnce(&SharedMemory) -> Result<Region, MapError>,
    ) -> Result<(Region, Self), MapError> {
        let failed = |errno| MapError::Create { name: name.to_owned(), bytes, errno };
        if bytes == 0 || bytes > isize::MAX as usize / 2 {
            return Err(MapError::Size { bytes });
        }
        let fd = create_memfd(name, MemfdFlags::empty()).map_err(failed)?;
        set_size(&fd, name, bytes)?;
        let memory = SharedMemory { fd, bytes, options: MemoryOptions::default() };
        let region = map(&memory)?;
        rustix::fs::fcntl_add_seals(&memory.fd, SEALS | SealFlags::FUTURE_WRITE).map_err(failed)?;
        Ok((region, ReadOnlyMemory { fd: memory.fd, bytes }))
    }

    /// Takes over memory passed by a peer, after checking that it is a memfd of ordinary pages and that its size is sealed and
    /// exactly `expected_bytes`. That others cannot write it is the peer's affair and not checked: this side does not.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn from_fd(fd: OwnedFd, expected_bytes: usize) -> Result<Self, MapError> {
        check_sealed(&fd, expected_bytes, false)?;
        Ok(ReadOnlyMemory { fd, bytes: expected_bytes })
    }

    /// The descriptor, to be passed to a peer.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns the size of the memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Maps it for reading, every page present, so that no access on a hot path takes a page fault. A store into the mapping
    /// would end the process; nothing that is made of it has one.
    ///
    /// # Errors
    /// [`MapError::Map`].
    pub fn map(&self) -> Result<ReadOnlyRegion, MapError> {
        let mapping = self.map_addresses();
        let present = mapping.and_then(|mapping| populate::to_read(&mapping, &Unpaced).map(|()| mapping));
        present.map(Self::region).map_err(|errno| self.not_mapped(errno))
    }

    /// As [`ReadOnlyMemory::map`], without bringing pages in. The first load of a page takes a page fault, and where its maker has
    /// stored nothing there yet a zeroed page comes, which counts as memory of who loads.
    ///
    /// # Errors
    /// [`MapError::Map`].
    pub fn map_sparse(&self) -> Result<ReadOnlyRegion, MapError> {
        self.map_addresses().map(Self::region).map_err(|errno| self.not_mapped(errno))
    }

    fn region(mapping: Mapping) -> ReadOnlyRegion {
        ReadOnlyRegion(Region::new(mapping))
    }

    fn not_mapped(&self, errno: Errno) -> MapError {
        MapError::Map {
            object: format!("the shared memory in descriptor {} for reading", self.fd.as_raw_fd()),
            bytes: self.bytes,
            errno,
            remedy: "free memory, or raise the limits on it (`ulimit -v`, the cgroup's memory.max)",
        }
    }

    fn map_addresses(&self) -> Result<Mapping, Errno> {
        // SAFETY: a fresh address range chosen by the kernel; nothing of this process is replaced.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), self.bytes, ProtFlags::READ, MapFlags::SHARED, &self.fd, 0)
        }?;
        let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never gives address 0");
        // SAFETY: the range was just mapped, nobody else knows it, and `region` makes a `ReadOnlyRegion` of it.
        Ok(unsafe { Mapping::from_mmap(start, self.bytes, Backing::Shared) }.unmapped_in_pieces())
    }
}

/// Memory mapped for reading. It gives out windows to load from and nothing that stores; clones share the mapping. So a
/// receiver that re-blanks the lines it frees cannot be made of it:
///
/// ```
/// # use beeline_mmio::{ReadOnlyRegion, Region};
/// fn windows(ours: Region, theirs: ReadOnlyRegion) {
///     let (_reads, _blanks) = (ours.read_window(0, 1), ours.load_window(0, 1));
///     let _reads = theirs.read_window(0, 1);
/// }
/// ```
/// ```compile_fail,E0599
/// # use beeline_mmio::ReadOnlyRegion;
/// fn window(theirs: ReadOnlyRegion) {
///     let _blanks = theirs.load_window(0, 1);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ReadOnlyRegion(Region);

/// A mapping for reading becomes this and no other handle.
pub(crate) fn read_only(mapping: Arc<Mapping>) -> ReadOnlyRegion {
    ReadOnlyRegion(Region::of(mapping))
}

impl ReadOnlyRegion {
    /// Has children that this process forks from now on begin without the mapping, as [`Region::dont_fork`] does.
    ///
    /// # Errors
    /// There are clones or handles of it already (`EBUSY`); the kernel cannot.
    pub fn dont_fork(self) -> Result<Self, Errno> {
        self.0.dont_fork().map(ReadOnlyRegion)
    }

    /// Returns the size of the mapped memory.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// A window of `lines` lines (a power of two) to load from.
    #[track_caller]
    pub fn read_window(&self, offset_bytes: usize, lines: u32) -> ReadWindow {
        self.0.read_window(offset_bytes, lines)
    }

    /// A table of `words` aligned words from this offset on, a power of two of them.
    #[track_caller]
    pub fn read_words(&self, offset_bytes: usize, words: usize) -> ReadWords {
        self.0.read_words(offset_bytes, words)
    }

    /// Copies bytes out of the region from any offset. Aligned words are loaded whole, in no defined order.
    #[track_caller]
    pub fn copy_out(&self, offset_bytes: usize, bytes: &mut [u8]) {
        self.0.copy_out(offset_bytes, bytes);
    }
}

#[cfg(test)]
#[path = "read_only_tests.rs"]
mod tests;
