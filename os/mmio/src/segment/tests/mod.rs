//! Segments: every kind of memory, every option, hostile descriptors, limits.

mod copies;
mod ends;
mod hostile;
mod kinds;
mod limits;
mod own;
mod program;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};

use super::*;
use crate::memfd::create_memfd;

const PAGE_BYTES: usize = 4096;
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

/// A memfd of some bytes, each the number of its page but for the lowest bit, with these seals.
fn memfd(bytes: usize, seals: SealFlags) -> OwnedFd {
    let fd = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
    rustix::fs::ftruncate(&fd, bytes as u64).unwrap();
    for page in 0..bytes.div_ceil(PAGE_BYTES).min(16) {
        rustix::io::pwrite(&fd, &[page as u8 * 2 + 1; 8], (page * PAGE_BYTES) as u64).unwrap();
    }
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    fd
}

/// The byte that [`memfd`] put at the start of a page.
fn first_of_page(page: usize) -> u8 {
    page as u8 * 2 + 1
}

fn options() -> SegmentOptions {
    SegmentOptions::default()
}

fn memory(fd: &OwnedFd, options: &SegmentOptions) -> MappedSegment {
    MappedSegment::memory(fd.as_fd(), options).unwrap()
}

/// Why memory is refused.
fn refusal(fd: impl AsFd, options: &SegmentOptions) -> SegmentError {
    refusal_of(fd.as_fd(), options, MappedSegment::memory)
}

fn refusal_of(
    fd: BorrowedFd<'_>,
    options: &SegmentOptions,
    map: fn(BorrowedFd<'_>, &SegmentOptions) -> Result<MappedSegment, SegmentError>,
) -> SegmentError {
    map(fd, options).unwrap_err()
}

fn byte(segment: &MappedSegment, offset_bytes: usize) -> u8 {
    let mut found = [0];
    segment.copy_out(offset_bytes, &mut found).unwrap();
    found[0]
}
