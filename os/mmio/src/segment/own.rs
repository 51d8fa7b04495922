//! Memory that the program has already: which of it others can be given.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::error::SegmentError;
use super::process_maps::{self, Entry};
use super::source::unexamined;

/// Bytes of the caller's own memory that other processes can map: by the descriptor, from the offset on.
///
/// A mapping can be shared if a file is behind it, a memfd or one in `/dev/shm` too, it is `MAP_SHARED`, and the caller has the
/// descriptor. All else is refused, because nothing that the kernel offers makes it shared in place: pages of private memory are
/// this process's alone. `udmabuf` makes a dma-buf of a memfd, never of other pages; `process_vm_readv` copies, needs the right to
/// trace this process, and gives no pointer.
#[derive(Debug)]
pub struct OwnMemory {
    fd: OwnedFd,
    offset_bytes: u64,
    address: usize,
    bytes: usize,
}

impl OwnMemory {
    /// Finds out where in the file of `fd` the bytes at `address` are. It borrows nothing: the caller keeps them mapped as long
    /// as it uses them, and what others are given stays theirs after that.
    ///
    /// # Errors
    /// [`SegmentError::Unshareable`] with the reason, [`SegmentError::Examine`], [`SegmentError::Size`].
    pub fn find(address: usize, bytes: usize, fd: BorrowedFd<'_>) -> Result<Self, SegmentError> {
        let refused = |why: String| SegmentError::Unshareable { address, bytes, why };
        let Some(end) = address.checked_add(bytes).filter(|_| bytes > 0) else {
            return Err(SegmentError::Size { bytes: bytes as u64 });
        };
        let object = format!("descriptor {}", fd.as_raw_fd());
        let stat = rustix::fs::fstat(fd).map_err(unexamined(&object))?;
        let file = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev), stat.st_ino);
        let entries = process_maps::inside(address, bytes)
            .map_err(|error| refused(format!("/proc/self/maps cannot be read: {error}")))?;
        let first = entries.first().ok_or_else(|| refused("nothing is mapped there".to_owned()))?;
        let offset_bytes = first.offset_bytes.wrapping_add(address.saturating_sub(first.start) as u64);
        let mut next = address;
        for entry in &entries {
            if entry.start > next {
                return Err(refused(format!("nothing is mapped at {next:#x}")));
            }
            // The first byte of the caller's that is in this mapping.
            let at = entry.start.max(address);
            check(entry, file).map_err(|why| refused(format!("at {at:#x} {why}")))?;
            let expected = offset_bytes + (at - address) as u64;
            if entry.offset_bytes + (at - entry.start) as u64 != expected {
                return Err(refused(format!("at {at:#x} another part of the file follows")));
            }
            next = entry.end;
        }
        if next < end {
            return Err(refused(format!("nothing is mapped at {next:#x}")));
        }
        let fd = rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(unexamined(&object))?;
        Ok(OwnMemory { fd, offset_bytes, address, bytes })
    }

    /// The descriptor, to be passed to a peer. It gives the peer all of the file, not these bytes alone.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Where in the file the memory begins. A peer maps from a multiple of its page on.
    pub fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Where the memory is in this process.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Returns the size of the memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Why a mapping cannot be shared by a descriptor of this file.
fn check(entry: &Entry, (major, minor, inode): (u32, u32, u64)) -> Result<(), String> {
    let name = entry.name();
    if !entry.is_shared {
        let why = if entry.inode == 0 {
            "is private memory of this process (an allocation, a stack, MAP_PRIVATE): allocate it from a memfd"
        } else {
            "is a private mapping of a file: map it with MAP_SHARED"
        };
        return Err(format!("{why} ({name})"));
    }
    if entry.device != (major, minor) || entry.inode != inode {
        return Err(format!("is {name}, which the descriptor is not of"));
    }
    Ok(())
}
