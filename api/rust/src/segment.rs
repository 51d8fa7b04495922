//! Segments: memory that several programs have mapped, with pointers into it.
//!
//! One program makes memory ([`create`]) or has it already ([`OwnMemory`], a file, a dma-buf, a BAR), and hands its descriptor to
//! the others, as in an answer or a notification ([`crate::Answer`], [`crate::Subscriber::notify`]) or over any unix socket. Each
//! maps what it wants of it ([`MappedSegment`]): a part, for reading only, at a fixed address, many gigabytes lazily, huge pages.
//!
//! Memory that can go away (a file that somebody makes shorter, a device) is refused unless the options say what shall happen
//! ([`OnLoss`]): the process ends, or [`FaultGuard`] handles the bus error and the segment says that it is not intact.
//!
//! [`MappedSegment::copy_in`] and [`MappedSegment::copy_out`] copy as fast as `memcpy` at every size, and each mapped byte is
//! accessed once. Whoever takes a raw pointer accesses it by volatile or atomic accesses, since others write the memory at any
//! time.
//!
//! ```
//! use std::os::fd::AsFd;
//! use beeline::segment::{self, Access, MappedSegment, SegmentOptions};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let memory = segment::create("table", 1 << 20)?;
//! let whole = MappedSegment::memory(memory.as_fd(), &SegmentOptions::default())?;
//! whole.copy_in(8192, b"hello")?;
//! // The other program, which got the descriptor, reads a part of it.
//! let part = SegmentOptions { offset_bytes: 8192, bytes: Some(5), access: Access::ReadOnly, ..SegmentOptions::default() };
//! let part = MappedSegment::memory(memory.as_fd(), &part)?;
//! let mut found = [0; 5];
//! part.copy_out(0, &mut found)?;
//! assert_eq!(&found, b"hello");
//! # Ok(())
//! # }
//! ```

use std::os::fd::OwnedFd;

use beeline_mmio::{MemoryOptions, SharedMemory};

pub use beeline_mmio::{
    Access, BarKind, CopyError, DmaBuf, FaultGuard, GuardError, HugePages, InUse, MapError, MappedPointer,
    MappedSegment, NotPciAddress, OnLoss, OwnMemory, Pages, PciAddress, SegmentError, SegmentOptions,
    StillMapped,
};

/// Makes zeroed memory of so many bytes, whose size nobody can change any more, of ordinary pages. Nothing of it is in use until
/// it is accessed. `name` is for people only (`/proc/<pid>/fd`).
///
/// Whoever has the descriptor may map it for reading and writing, whatever it was told.
///
/// # Errors
/// 0 bytes; or the process or the machine has no memory or descriptor left.
pub fn create(name: &str, bytes: usize) -> Result<OwnedFd, MapError> {
    Ok(SharedMemory::create(name, bytes, MemoryOptions::default())?.into_fd())
}

/// As [`create`], of huge pages that the administrator has reserved, as many as hold `bytes`; they are taken at once. Who maps it
/// must accept them ([`HugePages`]).
///
/// # Errors
/// As [`create`]; there are not enough huge pages.
pub fn create_huge(name: &str, bytes: usize) -> Result<OwnedFd, MapError> {
    let options = MemoryOptions { huge_pages: true, ..MemoryOptions::default() };
    Ok(SharedMemory::create(name, bytes, options)?.into_fd())
}
