//! Sealed memory that is passed to another process by descriptor.
//!
//! The seals forbid every change of the size, so that no peer can truncate the memory under a process that has it
//! mapped (docs/design.md, decision 6). What a peer can still do is write any bytes at any time; the handles of
//! [`crate::Region`] are made for that.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{FallocateFlags, FileType, MemfdFlags, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::{Backing, Mapping};
use crate::memfd::{create_memfd, set_size};
use crate::pace::in_pieces;
use crate::{MapError, Pace, Region, Unpaced, huge_pages, populate};

mod read_only;

pub(crate) use read_only::read_only;
pub use read_only::{ReadOnlyMemory, ReadOnlyRegion};

/// How memory is backed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Back it with huge pages that the administrator has reserved; the size is rounded up to whole ones. When off,
    /// transparent huge pages are asked for where the system grants them, which is never an error.
    pub huge_pages: bool,
    /// Lock it into RAM. It is enough when one of the processes that share it does.
    pub locked: bool,
}

/// The size of a huge page on x86-64 and, where pages have 4 KiB, on aarch64.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// What `fstat` counts a file's pages in.
const STAT_BLOCK_BYTES: u64 = 512;

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A memfd whose size can no longer change. Close-on-exec; the descriptor is what gives access.
#[derive(Debug)]
pub struct SharedMemory {
    fd: OwnedFd,
    bytes: usize,
    options: MemoryOptions,
}

impl SharedMemory {
    /// Creates zeroed memory and seals its size. `name` is for people only (`/proc/<pid>/fd`).
    ///
    /// Huge pages are taken at once: a later access cannot find that there are none left.
    pub fn create(name: &str, bytes: usize, options: MemoryOptions) -> Result<Self, MapError> {
        let failed = |errno| MapError::Create { name: name.to_owned(), bytes, errno };
        if bytes == 0 || bytes > isize::MAX as usize / 2 {
            return Err(MapError::Size { bytes });
        }
        let fd = if options.huge_pages {
            huge_pages::create(name, bytes)?
        } else {
            create_memfd(name, MemfdFlags::empty()).map_err(failed)?
        };
        let bytes =
            if options.huge_pages { bytes.next_multiple_of(huge_pages::page_bytes(&fd)?) } else { bytes };
        set_size(&fd, name, bytes)?;
        rustix::fs::fcntl_add_seals(&fd, SEALS).map_err(failed)?;
        let memory = SharedMemory { fd, bytes, options };
        if options.huge_pages {
            memory
                .map_pages(&Unpaced)
                .map_err(|errno| huge_pages::refused(name, bytes, &memory.fd, errno))?;
        }
        Ok(memory)
    }

    /// Takes over memory passed by a peer, after checking that it is a memfd of ordinary pages, that its size is
    /// sealed and exactly `expected_bytes`, and that it may be written.
    pub fn from_fd(fd: OwnedFd, expected_bytes: usize) -> Result<Self, MapError> {
        Self::from_fd_with(fd, expected_bytes, MemoryOptions::default())
    }

    /// As [`SharedMemory::from_fd`]; `options` say whether huge pages are accepted and whether mappings are locked.
    ///
    /// Accept huge pages from a trusted peer only: a peer may give pages back (`fallocate`), and where no huge page is
    /// left to replace one, the next access ends this process. Ordinary pages are replaced by zeroed ones.
    pub fn from_fd_with(
        fd: OwnedFd,
        expected_bytes: usize,
        options: MemoryOptions,
    ) -> Result<Self, MapError> {
        let number = fd.as_raw_fd();
        let seals = check_sealed(&fd, expected_bytes, options.huge_pages)?;
        if seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE) {
            return Err(MapError::ReadOnly { fd: number, why: "it is sealed against writing" });
        }
        if rustix::fs::fcntl_getfl(&fd).map_err(unexamined(number))? & OFlags::RWMODE != OFlags::RDWR {
            return Err(MapError::ReadOnly { fd: number, why: "it is not open for both" });
        }
        Ok(SharedMemory { fd, bytes: expected_bytes, options })
    }

    /// The descriptor, to be passed to a peer.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The descriptor alone; what is mapped stays mapped.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Bytes of the memory: what was asked for, rounded up to whole huge pages if it is made of them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is made of huge pages that were reserved.
    pub fn has_huge_pages(&self) -> bool {
        self.options.huge_pages && huge_pages::are_behind(&self.fd).unwrap_or(false)
    }

    /// Returns what a part that is mapped has to begin at a multiple of.
    ///
    /// # Errors
    /// The kernel does not say how large its huge pages are.
    pub fn page_bytes(&self) -> Result<usize, MapError> {
        if self.options.huge_pages {
            huge_pages::page_bytes(&self.fd)
        } else {
            Ok(rustix::param::page_size())
        }
    }

    /// Gives the pages of a part back to the system, for every process that has it mapped; until somebody writes there again its
    /// bytes are zero. As [`Region::remove_pages`], without a mapping. Of pages that lie in the part partly, that part is zeroed.
    ///
    /// # Errors
    /// The part reaches outside, or the kernel cannot.
    pub fn give_back(&self, offset_bytes: usize, bytes: usize) -> Result<(), Errno> {
        if offset_bytes.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Errno::INVAL);
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.fd, hole, offset_bytes as u64, bytes as u64)
    }

    /// Maps it for reading and writing, every page present, so that no access on a hot path takes a page fault.
    pub fn map(&self) -> Result<Region, MapError> {
        self.map_paced(&Unpaced)
    }

    /// As [`SharedMemory::map`]; `pace` decides when each piece of the pages is brought in.
    ///
    /// # Errors
    /// [`MapError::Map`] and [`MapError::Lock`].
    pub fn map_paced(&self, pace: &dyn Pace) -> Result<Region, MapError> {
        let mapping = self.map_pages(pace).map_err(|errno| self.not_mapped(errno))?;
        if self.options.locked {
            lock(&mapping, pace)?;
        }
        Ok(Region::new(mapping))
    }

    /// Maps it for reading and writing without bringing pages in: each comes with the first access to it, or in a part with
    /// [`Region::populate`]. For memory that is much larger than what is used of it. Nothing is locked, and no huge pages are
    /// asked for, which would bring in more than was asked for.
    ///
    /// # Errors
    /// [`MapError::Map`].
    pub fn map_sparse(&self) -> Result<Region, MapError> {
        self.map_addresses().map(Region::new).map_err(|errno| self.not_mapped(errno))
    }

    fn not_mapped(&self, errno: Errno) -> MapError {
        MapError::Map {
            object: format!("the shared memory in descriptor {}", self.fd.as_raw_fd()),
            bytes: self.bytes,
            errno,
            remedy: "free memory, or raise the limits on it (`ulimit -v`, the cgroup's memory.max)",
        }
    }

    fn map_addresses(&self) -> Result<Mapping, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh address range chosen by the kernel; nothing of this process is replaced.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), self.bytes, protection, MapFlags::SHARED, &self.fd, 0)
        }?;
        let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never gives address 0");
        // SAFETY: the range was just mapped for reading and writing, and nobody else knows it.
        let mapping = unsafe { Mapping::from_mmap(start, self.bytes, Backing::Shared) };
        Ok(if self.options.huge_pages { mapping } else { mapping.unmapped_in_pieces() })
    }

    fn map_pages(&self, pace: &dyn Pace) -> Result<Mapping, Errno> {
        let mapping = self.map_addresses()?;
        // Huge pages are a wish, so that their lack is no error. Memory smaller than one must not get one: it would take all of it.
        if self.bytes >= HUGE_PAGE_BYTES {
            populate::wish_for_huge_pages(&mapping);
        }
        populate::to_write(&mapping, pace)?;
        Ok(mapping)
    }
}

/// Whether a descriptor, of whomever, is that of sealed memory of at most so many bytes with no more pages than those: to map it
/// and to close it takes no longer than they take. Two system calls that never wait.
pub fn is_small_memory(fd: BorrowedFd<'_>, most_bytes: usize) -> bool {
    // Before anything else is asked: a file of another kind may belong to a program that never answers.
    if !rustix::fs::fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SEALS)) {
        return false;
    }
    // Pages behind the end (`FALLOC_FL_KEEP_SIZE`) were there before the seals, and go with the memory.
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        let (size, blocks) = (u64::try_from(stat.st_size), u64::try_from(stat.st_blocks));
        let most_bytes = most_bytes.next_multiple_of(rustix::param::page_size()) as u64;
        size.is_ok_and(|bytes| bytes <= most_bytes)
            && blocks.is_ok_and(|blocks| blocks * STAT_BLOCK_BYTES <= most_bytes)
    })
}

/// The error of a descriptor that cannot be examined.
fn unexamined(number: i32) -> impl Fn(Errno) -> MapError {
    move |errno| MapError::Examine { object: format!("descriptor {number}"), errno }
}

/// Checks that a descriptor from a peer is a memfd whose size is sealed and as agreed, of ordinary pages unless huge ones are
/// allowed, and returns its seals.
fn check_sealed(fd: &OwnedFd, expected_bytes: usize, allow_huge_pages: bool) -> Result<SealFlags, MapError> {
    let number = fd.as_raw_fd();
    // Before anything else is asked: a file of another kind may belong to a program that never answers.
    let seals = rustix::fs::fcntl_get_seals(fd).map_err(|errno| MapError::NotMemfd { fd: number, errno })?;
    let stat = rustix::fs::fstat(fd).map_err(unexamined(number))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(MapError::NotMemfd { fd: number, errno: Errno::INVAL });
    }
    if !seals.contains(SEALS) {
        return Err(MapError::Unsealed { fd: number, missing: names(SEALS.difference(seals)) });
    }
    if !allow_huge_pages && huge_pages::are_behind(fd).map_err(unexamined(number))? {
        return Err(MapError::UnaskedHugePages { fd: number });
    }
    let found = u64::try_from(stat.st_size).unwrap_or(0);
    if found != expected_bytes as u64 {
        return Err(MapError::WrongSize { fd: number, found, expected: expected_bytes });
    }
    if expected_bytes == 0 {
        return Err(MapError::Size { bytes: 0 });
    }
    Ok(seals)
}

fn lock(mapping: &Mapping, pace: &dyn Pace) -> Result<(), MapError> {
    let (start, whole) = (mapping.start().as_ptr(), mapping.bytes());
    in_pieces(whole, pace, |offset, bytes| {
        // SAFETY: locking a part of our own range into RAM changes no bytes.
        unsafe { rustix::mm::mlock(start.wrapping_add(offset).cast(), bytes) }
    })
    .map_err(|errno| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        MapError::Lock { bytes: whole, limit_bytes: limit.unwrap_or(u64::MAX), errno }
    })
}

fn names(seals: SealFlags) -> String {
    let names = [
        (SealFlags::SHRINK, "F_SEAL_SHRINK"),
        (SealFlags::GROW, "F_SEAL_GROW"),
        (SealFlags::SEAL, "F_SEAL_SEAL"),
    ];
    let names: Vec<&str> =
        names.into_iter().filter(|(seal, _)| seals.contains(*seal)).map(|(_, name)| name).collect();
    names.join(", ")
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
