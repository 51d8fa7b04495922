//! What lies behind a descriptor, and whether a segment can be made of it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, SealFlags, Stat};
use rustix::io::Errno;

use super::error::SegmentError;
use super::options::{Access, HugePages, OnLoss, SegmentOptions};
use crate::huge_pages;

/// `DMA_BUF_MAGIC` and `SYSFS_MAGIC` of Linux's `magic.h`.
const DMA_BUF_MAGIC: u64 = 0x444d_4142;
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// Memory that a segment is mapped from, checked.
#[derive(Debug)]
pub(super) struct Source<'fd> {
    pub(super) object: String,
    pub(super) fd: Descriptor<'fd>,
    pub(super) bytes: u64,
    /// The least that can be mapped.
    pub(super) page_bytes: u64,
    pub(super) has_huge_pages: bool,
    pub(super) is_device: bool,
}

/// The descriptor to map.
#[derive(Debug)]
pub(super) enum Descriptor<'fd> {
    /// One that was opened for this mapping.
    Opened(OwnedFd),
    /// The caller's.
    Borrowed(BorrowedFd<'fd>),
}

impl AsFd for Descriptor<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Descriptor::Opened(fd) => fd.as_fd(),
            Descriptor::Borrowed(fd) => *fd,
        }
    }
}

pub(super) fn unexamined(object: &str) -> impl Fn(Errno) -> SegmentError + use<'_> {
    move |errno| SegmentError::Examine { object: object.to_owned(), errno }
}

fn not_a(object: &str, wanted: &'static str, why: impl Into<String>) -> SegmentError {
    SegmentError::Kind { object: object.to_owned(), wanted, why: why.into() }
}

/// Memory that cannot shrink: a memfd that is sealed.
pub(super) fn memory<'fd>(
    fd: BorrowedFd<'fd>,
    options: &SegmentOptions,
) -> Result<Source<'fd>, SegmentError> {
    const WANTED: &str = "memory that can be sealed";
    let object = format!("descriptor {}", fd.as_raw_fd());
    // Before anything else is asked: a file of another kind may belong to a program that never answers.
    let seals = rustix::fs::fcntl_get_seals(fd)
        .map_err(|errno| not_a(&object, WANTED, format!("it is no memfd ({errno}); map it as a file")))?;
    // After the seals: what is sealed keeps the size that is found from here on.
    let (opened, stat) = check_regular(&object, fd, WANTED)?;
    if !seals.contains(SealFlags::SHRINK) {
        let why = "it lacks the seal F_SEAL_SHRINK: seal it, or map it as a file";
        return Err(not_a(&object, WANTED, why));
    }
    regular(object, (fd, opened, stat), seals, options)
}

/// A regular file: on a disk, in `/dev/shm`, a memfd that is sealed or not.
pub(super) fn file<'fd>(fd: BorrowedFd<'fd>, options: &SegmentOptions) -> Result<Source<'fd>, SegmentError> {
    const WANTED: &str = "a file whose bytes can be mapped";
    let object = format!("descriptor {}", fd.as_raw_fd());
    let (opened, _) = check_regular(&object, fd, WANTED)?;
    match rustix::fs::fstatfs(fd).map_err(unexamined(&object))?.f_type as u64 {
        SYSFS_MAGIC => {
            return Err(not_a(&object, WANTED, "it is of sysfs: map a BAR with `MappedSegment::bar`"));
        }
        DMA_BUF_MAGIC => return Err(not_a(&object, WANTED, "it is a dma-buf: map it with `DmaBuf`")),
        _ => {}
    }
    // No seals at all where the file system has none.
    let seals = rustix::fs::fcntl_get_seals(fd).unwrap_or(SealFlags::empty());
    // Once more: a file that is sealed by now may have been made shorter before that.
    let stat = rustix::fs::fstat(fd).map_err(unexamined(&object))?;
    regular(object, (fd, opened, stat), seals, options)
}

/// Gives how it is open, and what it is.
fn check_regular(
    object: &str,
    fd: BorrowedFd<'_>,
    wanted: &'static str,
) -> Result<(OFlags, Stat), SegmentError> {
    let opened = rustix::fs::fcntl_getfl(fd).map_err(unexamined(object))?;
    if opened.contains(OFlags::PATH) {
        return Err(not_a(object, wanted, "it is open as a path (O_PATH)"));
    }
    let stat = rustix::fs::fstat(fd).map_err(unexamined(object))?;
    let why = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok((opened, stat)),
        FileType::Directory => "it is a directory",
        FileType::Fifo => "it is a pipe",
        FileType::Socket => "it is a socket",
        FileType::CharacterDevice => "it is a character device",
        FileType::BlockDevice => "it is a block device",
        _ => "it is something else, as an eventfd or a dma-buf",
    };
    Err(not_a(object, wanted, why))
}

fn regular<'fd>(
    object: String,
    (fd, opened, stat): (BorrowedFd<'fd>, OFlags, Stat),
    seals: SealFlags,
    options: &SegmentOptions,
) -> Result<Source<'fd>, SegmentError> {
    let has_huge_pages = huge_pages::are_behind(&fd).map_err(unexamined(&object))?;
    check_pages(&object, has_huge_pages, options.huge_pages)?;
    let is_write_sealed = seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE);
    let cannot_shrink = seals.contains(SealFlags::SHRINK);
    if options.on_loss == OnLoss::Refused {
        if !cannot_shrink {
            return Err(SegmentError::CanBeLost {
                object,
                why: "whoever may write the file can make it shorter",
                remedy: "use a memfd sealed with F_SEAL_SHRINK",
            });
        }
        if has_huge_pages && !is_write_sealed {
            return Err(SegmentError::CanBeLost {
                object,
                why: "whoever may write it can give its huge pages back, and there may be no others",
                remedy: "use ordinary pages",
            });
        }
    }
    let fd = for_access(&object, fd, opened, is_write_sealed, options.access)?;
    let page_bytes = if has_huge_pages {
        u64::try_from(stat.st_blksize).ok().filter(|bytes| bytes.is_power_of_two())
    } else {
        Some(rustix::param::page_size() as u64)
    };
    Ok(Source {
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        page_bytes: page_bytes.ok_or_else(|| unexamined(&object)(Errno::INVAL))?,
        object,
        fd,
        has_huge_pages,
        is_device: false,
    })
}

fn check_pages(object: &str, has_huge_pages: bool, asked: HugePages) -> Result<(), SegmentError> {
    let refused =
        |found, wanted, remedy| Err(SegmentError::Pages { object: object.to_owned(), found, wanted, remedy });
    match (has_huge_pages, asked) {
        (true, HugePages::No) => refused(
            "huge",
            "ordinary",
            "a peer could take them back; allow them in the options if it is trusted",
        ),
        (false, HugePages::Required) => {
            refused("ordinary", "huge", "make the memory with MFD_HUGETLB, or wish for huge pages only")
        }
        _ => Ok(()),
    }
}

/// A descriptor that gives the access and, for reading, no more: a mapping made of it never becomes writable.
fn for_access<'fd>(
    object: &str,
    fd: BorrowedFd<'fd>,
    opened: OFlags,
    is_write_sealed: bool,
    access: Access,
) -> Result<Descriptor<'fd>, SegmentError> {
    let wanted = if access == Access::ReadWrite { "reading and writing" } else { "reading" };
    let refused = |why| Err(SegmentError::Access { object: object.to_owned(), wanted, why });
    match (access, opened & OFlags::RWMODE) {
        (_, OFlags::WRONLY) => refused("it is open for writing only, and who maps it reads it"),
        (Access::ReadWrite, OFlags::RDONLY) => refused("it is open for reading only"),
        (Access::ReadWrite, _) if is_write_sealed => refused("it is sealed against writing"),
        (Access::ReadOnly, OFlags::RDWR) if !is_write_sealed => {
            // Through the descriptor's own link: the same file, whatever its name is now.
            let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let reopened = rustix::fs::open(link, flags, Mode::empty());
            let what = || format!("{object}, to be opened again for reading");
            reopened.map(Descriptor::Opened).map_err(|errno| SegmentError::Examine { object: what(), errno })
        }
        _ => Ok(Descriptor::Borrowed(fd)),
    }
}

/// Whether a descriptor is of a dma-buf, and its bytes.
pub(super) fn dma_buf_bytes(fd: BorrowedFd<'_>) -> Result<u64, SegmentError> {
    let object = format!("descriptor {}", fd.as_raw_fd());
    let found = rustix::fs::fstatfs(fd).map_err(unexamined(&object))?.f_type as u64;
    if found != DMA_BUF_MAGIC {
        return Err(not_a(
            &object,
            "a dma-buf",
            format!("its file system is {found:#x}, and {DMA_BUF_MAGIC:#x} that of dma-bufs"),
        ));
    }
    rustix::fs::seek(fd, rustix::fs::SeekFrom::End(0)).map_err(unexamined(&object))
}

/// A dma-buf, which has the bytes that [`dma_buf_bytes`] found.
pub(super) fn dma_buf<'fd>(
    fd: BorrowedFd<'fd>,
    bytes: u64,
    options: &SegmentOptions,
) -> Result<Source<'fd>, SegmentError> {
    let object = format!("the dma-buf in descriptor {}", fd.as_raw_fd());
    device(object, Descriptor::Borrowed(fd), bytes, options)
}

/// A BAR's open file.
pub(super) fn bar(
    object: String,
    fd: OwnedFd,
    bytes: u64,
    options: &SegmentOptions,
) -> Result<Source<'static>, SegmentError> {
    device(object, Descriptor::Opened(fd), bytes, options)
}

/// The file of a BAR, which is open for longer than a mapping takes.
pub(super) fn bar_file<'fd>(
    object: String,
    fd: BorrowedFd<'fd>,
    bytes: u64,
    options: &SegmentOptions,
) -> Result<Source<'fd>, SegmentError> {
    device(object, Descriptor::Borrowed(fd), bytes, options)
}

fn device<'fd>(
    object: String,
    fd: Descriptor<'fd>,
    bytes: u64,
    options: &SegmentOptions,
) -> Result<Source<'fd>, SegmentError> {
    check_pages(&object, false, options.huge_pages)?;
    if options.on_loss == OnLoss::Refused {
        return Err(SegmentError::CanBeLost {
            object,
            why: "its device can be removed",
            remedy: "map memory that is no device's",
        });
    }
    let page_bytes = rustix::param::page_size() as u64;
    Ok(Source { object, fd, bytes, page_bytes, has_huge_pages: false, is_device: true })
}
