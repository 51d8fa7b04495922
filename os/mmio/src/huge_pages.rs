//! Huge pages that the administrator has reserved: how large they are, how many are left, and what to do without.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;

use crate::MapError;
use crate::memfd::create_memfd;

/// `HUGETLBFS_MAGIC` of Linux's `magic.h`.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// A memfd made of huge pages of the default size; it has no pages yet.
pub(crate) fn create(name: &str, bytes: usize) -> Result<OwnedFd, MapError> {
    create_memfd(name, MemfdFlags::HUGETLB).map_err(|errno| match errno {
        Errno::MFILE | Errno::NFILE => MapError::Create { name: name.to_owned(), bytes, errno },
        // Without hugetlbfs the kernel knows neither the flag nor a page size.
        _ => MapError::HugePages {
            name: name.to_owned(),
            needed: bytes.div_ceil(2 << 20),
            page_bytes: 0,
            free: 0,
            errno,
        },
    })
}

/// Bytes of a page of a memfd of huge pages: hugetlbfs gives it as the block size.
pub(crate) fn page_bytes(fd: &OwnedFd) -> Result<usize, MapError> {
    let examine = |errno| MapError::Examine { object: "a memfd of huge pages".to_owned(), errno };
    let stat = rustix::fs::fstat(fd).map_err(examine)?;
    usize::try_from(stat.st_blksize).ok().filter(|bytes| bytes.is_power_of_two()).ok_or(examine(Errno::INVAL))
}

/// Whether memory is made of huge pages.
pub(crate) fn are_behind(fd: &impl AsFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatfs(fd)?.f_type as u64 == HUGETLBFS_MAGIC)
}

/// The error for memory that could not be made of huge pages.
pub(crate) fn refused(name: &str, bytes: usize, fd: &OwnedFd, errno: Errno) -> MapError {
    let page_bytes = page_bytes(fd).unwrap_or(0);
    let needed = bytes.checked_div(page_bytes).unwrap_or(0);
    MapError::HugePages { name: name.to_owned(), needed, page_bytes, free: free(page_bytes), errno }
}

/// Huge pages of this size that are free and not promised to anybody.
fn free(page_bytes: usize) -> usize {
    let folder = format!("/sys/kernel/mm/hugepages/hugepages-{}kB", page_bytes >> 10);
    let count = |file: &str| -> usize {
        let text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    count("free_hugepages").saturating_sub(count("resv_hugepages"))
}
