//! One mapping: its address, its size, what it is, and its end.

use core::any::Any;
use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;
use rustix::mm::Advice;

use crate::ThisProcess;
use crate::guard::Watched;
use crate::pace::{UNMAP_PIECE_BYTES, UNMAP_SPARSE_BYTES, UNMAP_SPARSE_TIME};

/// What lies behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// The allocator's memory, of this process only.
    Heap,
    /// Pages that other processes may map.
    Shared,
    /// Registers or memory of a device.
    Device,
}

/// Alignment of every mapping; the smallest page of the CPUs we run on.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes mapped into this process, unmapped on drop. Handles keep it alive through an `Arc`.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// What is still to be given back: the bytes, or whole pages that begin with them.
    mapped_bytes: usize,
    backing: Backing,
    /// Bytes of one call that unmaps, and of one behind calls that took no time; at least a page.
    unmap_bytes: RangeInclusive<usize>,
    /// For memory that can go away; ends before the mapping does.
    watched: Option<Watched>,
    /// The only process that has it, of one that children of fork do not get.
    only_in: Option<ThisProcess>,
    /// Of a part: what has the memory mapped, and what is kept as long as there are handles of the part.
    _part: Option<(Box<dyn Any + Send + Sync>, Arc<Mapping>)>,
}

// SAFETY: a mapping is memory that others write concurrently anyway; every access to it is atomic, or asm, through raw
// pointers, never through references to its bytes, and it is unmapped once, when the last handle drops.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`; there is no state besides the mapped bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Takes over `bytes` mapped at `start`.
    ///
    /// # Safety
    /// The range is what one mmap call gave, and nobody else unmaps it. It is mapped for reading, and for writing too unless it
    /// becomes nothing but a [`crate::ReadOnlyRegion`].
    pub(crate) unsafe fn from_mmap(start: NonNull<u8>, bytes: usize, backing: Backing) -> Self {
        debug_assert!(backing != Backing::Heap && start.addr().get().is_multiple_of(PAGE_BYTES));
        Mapping {
            start,
            bytes,
            mapped_bytes: bytes,
            backing,
            unmap_bytes: usize::MAX..=usize::MAX,
            watched: None,
            only_in: None,
            _part: None,
        }
    }

    /// Memory that the program has mapped, and unmaps itself. At any address.
    ///
    /// # Safety
    /// The range stays mapped for loads as long as this or a part of it exists; for stores too where they are made.
    pub(crate) unsafe fn of_program(start: NonNull<u8>, bytes: usize) -> Self {
        Mapping {
            start,
            bytes,
            mapped_bytes: 0,
            backing: Backing::Shared,
            unmap_bytes: usize::MAX..=usize::MAX,
            watched: None,
            only_in: None,
            _part: None,
        }
    }

    /// A part of another mapping, which it keeps, and `kept` with it. It unmaps nothing itself.
    ///
    /// # Safety
    /// The `bytes` bytes from `start` on lie in `whole`.
    pub(crate) unsafe fn part_of(
        whole: Arc<Mapping>,
        start: NonNull<u8>,
        bytes: usize,
        kept: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let backing = whole.backing;
        let _part = Some((kept, whole));
        Mapping {
            start,
            bytes,
            mapped_bytes: 0,
            backing,
            unmap_bytes: usize::MAX..=usize::MAX,
            watched: None,
            only_in: None,
            _part,
        }
    }

    /// Has it unmapped in pieces. Not for huge pages of hugetlbfs, of which no part can be unmapped.
    pub(crate) fn unmapped_in_pieces(mut self) -> Self {
        self.unmap_bytes = UNMAP_PIECE_BYTES..=UNMAP_SPARSE_BYTES;
        self
    }

    /// As [`Mapping::from_mmap`], of `mapped_bytes` in whole pages. What can go away is watched.
    ///
    /// # Safety
    /// As for [`Mapping::from_mmap`], for `mapped_bytes`, of which `bytes` are handed out.
    pub(crate) unsafe fn of_pages(
        start: NonNull<u8>,
        bytes: usize,
        mapped_bytes: usize,
        backing: Backing,
        watched: Option<Watched>,
    ) -> Self {
        debug_assert!(bytes <= mapped_bytes);
        // SAFETY: the caller's promise, for fewer bytes.
        let mut mapping = unsafe { Mapping::from_mmap(start, bytes, backing) };
        mapping.mapped_bytes = mapped_bytes;
        mapping.watched = watched;
        mapping
    }

    /// Zeroed memory of this process only, aligned to a page, every page present.
    pub(crate) fn on_heap(bytes: usize) -> Self {
        let layout = Self::heap_layout(bytes);
        // SAFETY: the layout has at least one byte.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        for offset in (0..bytes).step_by(PAGE_BYTES) {
            // SAFETY: inside the allocation.
            let page = unsafe { start.add(offset) };
            // SAFETY: just allocated and not shared yet; volatile, so that the page is touched although it is zero.
            unsafe { page.write_volatile(0) };
        }
        Mapping {
            start,
            bytes,
            mapped_bytes: layout.size(),
            backing: Backing::Heap,
            unmap_bytes: usize::MAX..=usize::MAX,
            watched: None,
            only_in: None,
            _part: None,
        }
    }

    fn heap_layout(bytes: usize) -> Layout {
        // Whole pages, as mmap gives them.
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES).unwrap_or(usize::MAX);
        Layout::from_size_align(bytes, PAGE_BYTES).expect("half the address space is never asked for")
    }

    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn backing(&self) -> Backing {
        self.backing
    }

    /// Whether memory of it was found to be gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.watched.as_ref().is_some_and(Watched::is_lost)
    }

    /// Unmaps it, once. The kernel refuses to cut a piece out of what it keeps as one mapping when the process has as many
    /// mappings as it may have; then the pages stay, without those at the end that are already unmapped.
    pub(crate) fn unmap(mut self) -> Result<(), (Self, Errno)> {
        // Before the mapping ends: its addresses may be somebody else's at once.
        let watched = self.watched.take().map(|watched| watched.again());
        match self.end() {
            Ok(()) => Ok(()),
            Err(errno) => {
                self.watched = watched.map(|again| again(self.mapped_bytes));
                Err((self, errno))
            }
        }
    }

    /// Has children that this process forks from now on begin without it. Memory of the allocator is theirs as a copy anyway.
    pub(crate) fn dont_fork(&mut self) -> Result<(), Errno> {
        if self._part.is_some() {
            return Err(Errno::BUSY);
        }
        if self.backing == Backing::Heap {
            return Ok(());
        }
        let start = self.start.as_ptr().cast();
        // SAFETY: all of our own mapping, in which the advice changes nothing for this process.
        unsafe { rustix::mm::madvise(start, self.mapped_bytes, Advice::LinuxDontFork) }?;
        self.only_in = Some(ThisProcess::get());
        Ok(())
    }

    fn end(&mut self) -> Result<(), Errno> {
        if self.only_in.is_some_and(|process| !process.is_this()) {
            // In a child its addresses are free, or another mapping's.
            self.mapped_bytes = 0;
            return Ok(());
        }
        if self.backing == Backing::Heap {
            if std::mem::take(&mut self.mapped_bytes) > 0 {
                // SAFETY: `on_heap` allocated this address with this layout, and by `mapped_bytes` this happens once.
                unsafe { dealloc(self.start.as_ptr(), Self::heap_layout(self.bytes)) };
            }
            return Ok(());
        }
        let (least, most) = (*self.unmap_bytes.start(), *self.unmap_bytes.end());
        let mut piece_bytes = least;
        // From the end on, so that what is left still begins at the start.
        while self.mapped_bytes > 0 {
            let last = (self.mapped_bytes - 1) / piece_bytes * piece_bytes;
            let begun = Instant::now();
            let start = self.start.as_ptr().wrapping_add(last).cast::<c_void>();
            // SAFETY: `from_mmap` was given the whole range as owned, no handle is left (they hold the `Arc`), and this part of
            // it, the last, was not unmapped before.
            unsafe { rustix::mm::munmap(start, self.mapped_bytes - last) }?;
            // If a later part cannot be unmapped, the segment that stays must not reach what is gone: those addresses may be
            // another mapping's already.
            (self.mapped_bytes, self.bytes) = (last, self.bytes.min(last));
            // Memory of gigabytes of which little is used would take thousands of calls.
            piece_bytes = match begun.elapsed() < UNMAP_SPARSE_TIME {
                true => piece_bytes.saturating_mul(2).min(most),
                false => least,
            };
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Before the mapping ends, as in `unmap`.
        self.watched = None;
        if let Err(errno) = self.end() {
            tracing::error!(bytes = self.mapped_bytes, %errno, "memory stays mapped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_this_process_is_given_back_once_even_if_none_was_asked_for() {
        for bytes in [0, 1, PAGE_BYTES + 1] {
            let mut mapping = Mapping::on_heap(bytes);
            assert_eq!((mapping.bytes(), mapping.mapped_bytes > 0), (bytes, true));
            // Miri finds what is given back twice, here and by the drop, or never.
            mapping.end().unwrap();
        }
    }

    /// Pages of a mapping whose second part the kernel refuses to unmap, because it begins at no page.
    #[cfg(not(miri))]
    #[test]
    fn mapping_that_is_unmapped_in_part_keeps_what_is_still_there() {
        use rustix::mm::{MapFlags, ProtFlags};
        const PAGES: usize = 4;
        let (bytes, is_writable) = (PAGES * PAGE_BYTES, true);
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh range chosen by the kernel; nothing of this process is replaced.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, both, MapFlags::PRIVATE) };
        let start = NonNull::new(start.unwrap().cast::<u8>()).unwrap();
        let range =
            crate::guard::Range { start: start.addr().get(), bytes, page_bytes: PAGE_BYTES, is_writable };
        let watched = Some(Watched::new(range));
        // SAFETY: the range was just mapped for reading and writing, and nobody else knows it.
        let mut mapping = unsafe { Mapping::of_pages(start, bytes - 10, bytes, Backing::Shared, watched) };
        mapping.unmap_bytes = PAGE_BYTES * 3 / 2..=PAGE_BYTES * 3 / 2;
        let (mut mapping, errno) = mapping.unmap().unwrap_err();
        assert_eq!((errno, mapping.bytes()), (Errno::INVAL, 3 * PAGE_BYTES));
        let watched = |page: usize| crate::guard::is_watched(start.addr().get() + page * PAGE_BYTES);
        assert!(watched(2) && !watched(3));
        mapping.unmap_bytes = PAGE_BYTES..=PAGE_BYTES;
        mapping.unmap().unwrap();
        assert!(!watched(2));
    }
}
