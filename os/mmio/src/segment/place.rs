//! The mapping itself: which part of the memory, at which address, and what the kernel's refusal means.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::error::{GuardError, SegmentError};
use super::options::{Access, HugePages, OnLoss, Pages, SegmentOptions};
use super::process_maps;
use super::source::Source;
use crate::guard::{Range, Watched};
use crate::mapping::{Backing, Mapping};
use crate::{Unpaced, populate};

/// The part of the memory that becomes the segment.
#[derive(Clone, Copy, Debug)]
struct Part {
    offset_bytes: u64,
    /// What is handed out.
    bytes: usize,
    /// The bytes, rounded up to whole pages.
    mapped_bytes: usize,
}

/// Maps what the options ask for, and says whether the kernel took note of a wish for huge pages.
pub(super) fn map(source: &Source<'_>, options: &SegmentOptions) -> Result<(Mapping, bool), SegmentError> {
    let part = part(source, options)?;
    if let OnLoss::Guarded(guard) = options.on_loss
        && !guard.is_first()
    {
        return Err(GuardError::Replaced.into());
    }
    let start = place(source, part, options)?;
    let range = Range {
        start: start.addr().get(),
        bytes: part.mapped_bytes,
        page_bytes: source.page_bytes as usize,
        is_writable: options.access == Access::ReadWrite,
    };
    let watched = matches!(options.on_loss, OnLoss::Guarded(_)).then(|| Watched::new(range));
    let backing = if source.is_device { Backing::Device } else { Backing::Shared };
    // SAFETY: `place` has just mapped these whole pages, for the access asked for; nobody else knows them. A segment for reading
    // gives out nothing that stores but a pointer, whose user it tells.
    let mapping = unsafe { Mapping::of_pages(start, part.bytes, part.mapped_bytes, backing, watched) };
    let mapping = if source.has_huge_pages { mapping } else { mapping.unmapped_in_pieces() };
    let has_huge_pages = source.has_huge_pages
        || options.huge_pages == HugePages::Wished
            && !source.is_device
            && populate::wish_for_huge_pages(&mapping);
    if options.pages == Pages::Present && !source.is_device {
        let present = match options.access {
            Access::ReadWrite => populate::to_write(&mapping, &Unpaced),
            Access::ReadOnly => populate::to_read(&mapping, &Unpaced),
        };
        present.map_err(|errno| refused(source, part, errno))?;
    }
    Ok((mapping, has_huge_pages))
}

fn part(source: &Source<'_>, options: &SegmentOptions) -> Result<Part, SegmentError> {
    let (offset_bytes, page_bytes) = (options.offset_bytes, source.page_bytes);
    let unaligned = |what, value| Err(SegmentError::Unaligned { what, value, page_bytes });
    if !offset_bytes.is_multiple_of(page_bytes) {
        return unaligned("offset", offset_bytes);
    }
    if let Some(address) = options.address
        && !(address as u64).is_multiple_of(page_bytes)
    {
        return unaligned("address", address as u64);
    }
    let left = source.bytes.saturating_sub(offset_bytes);
    let bytes = options.bytes.map_or(left, |bytes| bytes as u64);
    if bytes > left || options.bytes.is_none() && left == 0 {
        let (object, found) = (source.object.clone(), source.bytes);
        return Err(SegmentError::Outside { object, bytes, offset_bytes, found });
    }
    let size = SegmentError::Size { bytes };
    let Ok(bytes) = usize::try_from(bytes) else { return Err(size) };
    if bytes == 0 || bytes > isize::MAX as usize / 2 {
        return Err(size);
    }
    Ok(Part { offset_bytes, bytes, mapped_bytes: bytes.next_multiple_of(page_bytes as usize) })
}

fn place(source: &Source<'_>, part: Part, options: &SegmentOptions) -> Result<NonNull<u8>, SegmentError> {
    let bytes = part.mapped_bytes;
    if options.address == Some(0) {
        // The kernel would let root have it.
        return Err(SegmentError::Taken { address: 0, bytes, by: "the page of the null pointer".to_owned() });
    }
    let mut protection = ProtFlags::READ;
    protection.set(ProtFlags::WRITE, options.access == Access::ReadWrite);
    let mut flags = MapFlags::SHARED;
    let wanted = options.address.map_or(ptr::null_mut(), ptr::without_provenance_mut::<c_void>);
    // Never in the place of another mapping; before Linux 4.17, where this is a wish, the answer below is compared.
    flags.set(MapFlags::FIXED_NOREPLACE, options.address.is_some());
    // SAFETY: the kernel chooses a fresh address range, or takes the wanted one only if nothing is there; nothing of this process
    // is replaced.
    let mapped = unsafe { rustix::mm::mmap(wanted, bytes, protection, flags, &source.fd, part.offset_bytes) };
    let start = mapped.map_err(|errno| match options.address {
        Some(address) if errno == Errno::EXIST => taken(address, bytes),
        _ => refused(source, part, errno),
    })?;
    if let Some(address) = options.address
        && start.addr() != address
    {
        // SAFETY: the range was just mapped, and nobody knows it.
        let _ = unsafe { rustix::mm::munmap(start, bytes) };
        return Err(taken(address, bytes));
    }
    Ok(NonNull::new(start.cast())
        .expect("mmap gives address 0 only where it is asked for, and 0 is no address"))
}

fn taken(address: usize, bytes: usize) -> SegmentError {
    let by = process_maps::inside(address, bytes).ok().and_then(|found| found.into_iter().next());
    let by = by.map_or_else(
        || "another mapping".to_owned(),
        |entry| format!("{:#x}-{:#x} {}", entry.start, entry.end, entry.name()),
    );
    SegmentError::Taken { address, bytes, by }
}

fn refused(source: &Source<'_>, part: Part, errno: Errno) -> SegmentError {
    if errno == Errno::NOMEM
        && let Some((maps, limit)) = process_maps::count()
        // The last few are hidden, or the kernel's own.
        && maps + 8 >= limit
    {
        return SegmentError::TooMany { maps, limit };
    }
    let remedy = match errno {
        Errno::NOMEM if source.has_huge_pages => {
            "reserve more huge pages with `sysctl -w vm.nr_hugepages=<count>`"
        }
        Errno::NOMEM => {
            "the address or the memory is not to be had: raise the limits (`ulimit -v`, the cgroup's memory.max)"
        }
        Errno::NODEV => "its file system, or its driver, gives nothing to be mapped",
        Errno::ACCESS | Errno::PERM => {
            "open it for the access that is asked for; the lowest addresses are for root only"
        }
        Errno::INVAL => "its driver refuses this part; name another one",
        Errno::OVERFLOW => "name a part that ends before the largest offset of a file",
        _ => "see the kernel's documentation of mmap",
    };
    SegmentError::Map { object: source.object.clone(), bytes: part.mapped_bytes, errno, remedy }
}
