//! Why a member does not join, and why a part of a segment is not mapped.

use std::io;
use std::path::PathBuf;

use beeline_fabric::Refusal;
use beeline_mmio::SegmentError;

use crate::layout::Layout;

/// Why a process is a member no more. What it has mapped stays mapped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    #[error(
        "another process has taken this one's slot of the memory, because this one was silent for too long"
    )]
    Displaced,
    #[error("the memory is gone: its file was cut, or its device was removed or reset")]
    NoMemory,
    #[error("the memory was made one of other members or bytes while it was used")]
    Remade,
    #[error("{} was deleted or replaced while it was used: whoever opens it now uses another file", path.display())]
    NoFile { path: PathBuf },
}

/// Why a process does not become a member.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is not there, or may not be opened.
    #[error("cannot open {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// The file is not there, and cannot be made.
    #[error("cannot make {} of {bytes} bytes: {error}", path.display())]
    NotMade { path: PathBuf, bytes: u64, error: io::Error },
    /// It cannot be mapped.
    #[error(transparent)]
    Memory(#[from] SegmentError),
    /// The memory has no room for so many members.
    #[error(
        "a memory of {bytes} bytes is too small for {members} members, who need {needed} bytes: make it larger, or take fewer members"
    )]
    TooSmall { bytes: u64, members: usize, needed: u64 },
    #[error("a memory has 2 to 16 members, and not {members}")]
    Members { members: usize },
    /// The file system has no room for a file of this size.
    #[error(
        "cannot make {} of {bytes} bytes: its file system has {free} bytes free, and {members} members need {needed} at least", path.display()
    )]
    NoRoom { path: PathBuf, bytes: u64, free: u64, members: usize, needed: u64 },
    /// The file is on a disk, or on another file system that is no memory.
    #[error(
        "{} is on a file system of type {found:#x}, which is neither tmpfs nor hugetlbfs: take a file in /dev/shm", path.display()
    )]
    NoMemory { path: PathBuf, found: u64 },
    /// The file has no byte: it was made without a size, or cut.
    #[error(
        "{} is empty, so nobody can be a member: delete it when no process uses it any more, and have it made with a size (`bytes`, or `truncate -s`)", path.display()
    )]
    Empty { path: PathBuf },
    /// The memory was used for something else, or by another version.
    #[error(
        "the memory has something else in it: its first word is {found:#x}; fill it with zeros if nobody uses it"
    )]
    NotOurs { found: u64 },
    /// The header was made for another memory, or the file was made shorter since.
    #[error("the memory has {found} bytes, and its header says {said}: the file was cut, or copied in part")]
    Cut { found: u64, said: u64 },
    /// The header says what cannot be.
    #[error("the header of the memory makes no sense: {members} members, boards of {entries} entries")]
    Unsound { members: u64, entries: u64 },
    /// Two processes were the first at the same time, with different numbers of members or bytes.
    #[error("another process made the memory one of other members or bytes at the same time; open it again")]
    Remade,
    /// Another member has the slot, or the memory has no such slot.
    #[error("slot {slot} of the memory is another member's, or the memory has none of that number")]
    SlotTaken { slot: usize },
    /// Every slot has a member that lives, or memory that somebody who lives has mapped.
    #[error("all {slots} slots of the memory are taken")]
    Full { slots: usize },
    /// The process was a member, and is none any more.
    #[error(transparent)]
    Lost(Lost),
    /// The kernel gives no random numbers.
    #[error("no random number: {0}")]
    Random(getrandom::Error),
    /// The process is out of threads.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl OpenError {
    /// Of a memory that has no layout for so many members.
    pub(crate) fn too_small(bytes: u64, members: usize) -> Self {
        match Layout::least_bytes(members) {
            Some(needed) => OpenError::TooSmall { bytes, members, needed },
            None => OpenError::Members { members },
        }
    }
}

/// Why a part of a segment is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum NotMapped {
    /// The segment does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its member says that it lies outside of what that member has.
    #[error("the segment lies outside of its member's area")]
    Outside,
    /// It cannot be mapped for loads alone, or at the address that was asked for.
    #[error(transparent)]
    Memory(#[from] SegmentError),
    /// The kernel does not say what the memory is made of.
    #[error("the kernel does not say what the memory is made of: {0}")]
    Unexamined(io::Error),
    /// Maps of this memory go through the caches, or combine stores.
    #[error(
        "the memory has no maps that are uncached: one of a device has, by the path of its BAR without `_wc`"
    )]
    Cached,
}
