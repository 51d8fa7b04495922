//! Why memory of the program cannot be behind a segment: the numbers and the remedy, in words.

use rustix::io::Errno;

use crate::MapError;

/// Why memory of the program cannot be behind a segment.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    #[error("memory of {bytes} bytes at {address:#x} is none")]
    Nothing { address: usize, bytes: usize },
    /// Its first byte is not that of a page.
    #[error(
        "memory at {address:#x} does not begin at a page, and others are given whole pages: allocate it with \
         `posix_memalign(&address, {page_bytes}, size)` or `mmap`"
    )]
    Address { address: usize, page_bytes: usize },
    /// Its last byte is not that of a page.
    #[error(
        "{bytes} bytes are not whole pages of {page_bytes} bytes, and others would be given what follows them: allocate and register \
         {}",
        bytes.next_multiple_of(*page_bytes)
    )]
    Bytes { bytes: usize, page_bytes: usize },
    /// Nothing is there, or something that cannot be used so.
    #[error("{bytes} bytes at {address:#x} cannot be registered: {why}")]
    NotThere { address: usize, bytes: usize, why: String },
    /// There is no memory that others could map in its place.
    #[error(transparent)]
    NoMemory(#[from] MapError),
    #[error("{bytes} bytes at {address:#x} are not {what}: {errno}")]
    Refused { address: usize, bytes: usize, what: &'static str, errno: Errno },
}
