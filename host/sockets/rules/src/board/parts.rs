//! The mapped parts of a board's file: the header with the first rows, and more rows as they are needed.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use beeline_mmio::{MappedSegment, OnLoss, Region, SegmentError, SegmentOptions, Words};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::layout::{HEADER_BYTES, PARTS, ROW_BYTES, ROW_WORDS, ROWS, header};

const FIRST_BYTES: usize = HEADER_BYTES + PART_BYTES;
const PART_BYTES: usize = ROWS * ROW_BYTES;
/// Words of the header that are loaded and stored: its first half. Behind them is text.
const HEADER_WORDS: usize = 256;

/// Why a part is not mapped.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartError {
    #[error(transparent)]
    System(#[from] Errno),
    #[error(transparent)]
    Map(#[from] SegmentError),
}

/// The file, mapped as far as it is used. No descriptor of it is kept.
#[derive(Debug)]
pub(super) struct Parts {
    path: PathBuf,
    /// What tells the file from another at its path.
    device_and_inode: (u64, u64),
    first: Region,
    /// In their order; `None` for one that could not be had.
    more: [OnceLock<Option<Region>>; PARTS - 1],
}

impl Parts {
    /// Gives a file that is new its first part.
    pub(super) fn of_new(file: impl AsFd, path: &Path) -> Result<Self, PartError> {
        let stat = rustix::fs::fstat(&file)?;
        let first = map(file, 0, FIRST_BYTES)?;
        let device_and_inode = (stat.st_dev, stat.st_ino);
        Ok(Parts { path: path.to_owned(), device_and_inode, first, more: Default::default() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn header(&self) -> Words {
        self.first.words(0, HEADER_WORDS)
    }

    /// Stores text behind the words of the header.
    pub(super) fn store_text(&self, offset_bytes: usize, text: &[u8]) {
        self.first.copy_in(offset_bytes, text);
    }

    /// How many rows there are by now.
    pub(super) fn rows(&self) -> usize {
        let more = self.more.iter().take_while(|part| matches!(part.get(), Some(Some(_)))).count();
        (1 + more) * ROWS
    }

    /// The mapping that a row lies in, and where; `None` behind the last.
    pub(super) fn place(&self, row: usize) -> Option<(&Region, usize)> {
        let (part, offset) = (row / ROWS, row % ROWS * ROW_BYTES);
        match part.checked_sub(1) {
            None => Some((&self.first, HEADER_BYTES + offset)),
            Some(part) => Some((self.more.get(part)?.get()?.as_ref()?, offset)),
        }
    }

    pub(super) fn row(&self, row: usize) -> Option<Words> {
        let (region, offset) = self.place(row)?;
        Some(region.words(offset, ROW_WORDS))
    }

    /// Adds rows; `false` where there can be no more.
    pub(super) fn grow(&self) -> bool {
        let next = self.rows() / ROWS;
        let Some(part) = self.more.get(next - 1) else { return false };
        let is_there = part.get_or_init(|| self.map_more(next).ok()).is_some();
        if is_there {
            // Release: a reader that finds so many finds them made.
            self.header().store_release(header::ROWS, self.rows() as u64);
        }
        is_there
    }

    fn map_more(&self, part: usize) -> Result<Region, PartError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if (stat.st_dev, stat.st_ino) != self.device_and_inode {
            return Err(Errno::STALE.into());
        }
        map(&file, FIRST_BYTES + (part - 1) * PART_BYTES, PART_BYTES)
    }
}

/// Maps bytes of a file that has none there yet.
fn map(file: impl AsFd, offset_bytes: usize, bytes: usize) -> Result<Region, PartError> {
    make_room(&file, offset_bytes as u64, bytes)?;
    let options = SegmentOptions {
        offset_bytes: offset_bytes as u64,
        bytes: Some(bytes),
        // Only this user may cut it, and whoever does has ended its own program.
        on_loss: OnLoss::Fatal,
        ..SegmentOptions::default()
    };
    let segment = MappedSegment::file(file.as_fd(), &options)?;
    Ok(segment.region().ok_or(Errno::ACCESS)?)
}

/// Gives a file bytes and their pages: a store into a hole that no page is left for would end the program.
fn make_room(file: impl AsFd, offset_bytes: u64, bytes: usize) -> Result<(), Errno> {
    let end = offset_bytes + bytes as u64;
    // The kernel would send a signal.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < end) {
        return Err(Errno::FBIG);
    }
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), offset_bytes, bytes as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = vec![0; bytes];
            let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(&file, &zeros, offset_bytes))?;
            if written == zeros.len() { Ok(()) } else { Err(Errno::NOSPC) }
        }
        made => made,
    }
}
