//! Why a segment cannot be mapped, accessed or unmapped: the object, the numbers, and the remedy, in words.

use rustix::io::Errno;

use crate::MapError;

/// Why a segment cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// A place is no multiple of the page.
    #[error("the {what} {value:#x} is not a multiple of the page, {page_bytes} bytes: round it down to {:#x}", value - value % page_bytes)]
    Unaligned {
        /// `offset` or `address`.
        what: &'static str,
        /// The place.
        value: u64,
        /// Bytes of a page of the memory.
        page_bytes: u64,
    },
    /// The memory has too few bytes.
    #[error(
        "a segment of {bytes} bytes at offset {offset_bytes} is not inside {object}, which has {found} bytes"
    )]
    Outside {
        object: String,
        bytes: u64,
        /// Where it begins.
        offset_bytes: u64,
        /// Bytes that there are.
        found: u64,
    },
    #[error(
        "{bytes} bytes is not a size of a segment: it must be at least 1 and less than half the address space"
    )]
    Size {
        /// Bytes asked for.
        bytes: u64,
    },
    /// The descriptor is of something else.
    #[error("{object} is not {wanted}: {why}")]
    Kind {
        object: String,
        /// What it should be.
        wanted: &'static str,
        why: String,
    },
    /// The descriptor does not give the access that is asked for.
    #[error("{object} cannot be mapped for {wanted}: {why}")]
    Access {
        object: String,
        /// `reading` or `reading and writing`.
        wanted: &'static str,
        /// The seal or open mode that forbids it.
        why: &'static str,
    },
    /// The memory can go away under the mapping.
    #[error(
        "{object} can go away under its mapping ({why}), and an access would then end this process: {remedy}, or allow it in \
         the options (`on_loss`), guarded or at the risk"
    )]
    CanBeLost { object: String, why: &'static str, remedy: &'static str },
    /// The pages are not of the size that is asked for.
    #[error("{object} is made of {found} pages, and {wanted} are asked for: {remedy}")]
    Pages {
        object: String,
        /// `huge` or `ordinary`.
        found: &'static str,
        wanted: &'static str,
        remedy: &'static str,
    },
    /// Another mapping is where the segment should be.
    #[error("a segment of {bytes} bytes cannot begin at {address:#x}: {by} is there")]
    Taken {
        /// The address asked for.
        address: usize,
        bytes: usize,
        /// The line of `/proc/self/maps`.
        by: String,
    },
    /// The process has as many mappings as the kernel lets it have.
    #[error(
        "this process has {maps} mappings, and may have {limit}: unmap some, map fewer and larger segments, or raise the limit \
         with `sysctl -w vm.max_map_count=<count>`"
    )]
    TooMany {
        /// Mappings that there are.
        maps: usize,
        /// `vm.max_map_count`.
        limit: usize,
    },
    /// A descriptor cannot be examined.
    #[error("cannot examine {object}: {errno}")]
    Examine { object: String, errno: Errno },
    /// The kernel refused the mapping.
    #[error("cannot map {bytes} bytes of {object}: {errno}; {remedy}")]
    Map {
        object: String,
        /// Bytes to be mapped.
        bytes: usize,
        errno: Errno,
        remedy: &'static str,
    },
    /// Memory of the caller that no other process can be given.
    #[error("{bytes} bytes at {address:#x} cannot be shared: {why}")]
    Unshareable { address: usize, bytes: usize, why: String },
    /// A BAR's file cannot be used.
    #[error(transparent)]
    Bar(#[from] MapError),
    #[error(transparent)]
    Guard(#[from] GuardError),
}

/// Why bus errors are not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// The kernel refused the handler.
    #[error("cannot handle SIGBUS: {errno}")]
    Refused { errno: Errno },
    /// Somebody has put another handler in the place of the guard's.
    #[error(
        "SIGBUS has another handler now than the guard's, which was installed before it: install the guard after every other \
         handler of SIGBUS"
    )]
    Replaced,
}

/// Why bytes were not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The bytes are not all in the segment; none was copied.
    #[error("{bytes} bytes at offset {offset_bytes} reach outside a segment of {whole} bytes")]
    Outside { bytes: usize, offset_bytes: usize, whole: usize },
    /// The segment is mapped for reading; none was copied.
    #[error("the segment is mapped for reading only")]
    ReadOnly,
    /// Memory of the segment is gone: what was copied is worth nothing.
    #[error("memory of the segment is gone (its file has shrunk or its device was removed): unmap it")]
    Lost,
}
