//! One mapping: its address, its size, what it is, and its end.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use crate::pace::UNMAP_PIECE_BYTES;

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
const PAGE_BYTES: usize = 4096;

/// Bytes mapped into this process, unmapped on drop. Handles keep it alive through an `Arc`.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    backing: Backing,
    /// Bytes of one call that unmaps; at least a page.
    unmap_bytes: usize,
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
        Mapping { start, bytes, backing, unmap_bytes: usize::MAX }
    }

    /// Has it unmapped in pieces. Not for huge pages of hugetlbfs, of which no part can be unmapped.
    pub(crate) fn unmapped_in_pieces(mut self) -> Self {
        self.unmap_bytes = UNMAP_PIECE_BYTES;
        self
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
        Mapping { start, bytes, backing: Backing::Heap, unmap_bytes: usize::MAX }
    }

    fn heap_layout(bytes: usize) -> Layout {
        // Whole pages, as mmap gives them.
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES).unwrap_or(usize::MAX);
        Layout::from_size_align(bytes, PAGE_BYTES).expect("half the address space is never asked for")
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn backing(&self) -> Backing {
        self.backing
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.backing == Backing::Heap {
            // SAFETY: `on_heap` allocated this address with this layout.
            unsafe { dealloc(self.start.as_ptr(), Self::heap_layout(self.bytes)) };
            return;
        }
        let mut offset = 0;
        while offset < self.bytes {
            let piece = self.unmap_bytes.min(self.bytes - offset);
            let start = self.start.as_ptr().wrapping_add(offset).cast::<c_void>();
            // SAFETY: `from_mmap` was given the whole range as owned, no handle is left (they hold the `Arc`), and this part of
            // it was not unmapped before.
            let unmapped = unsafe { rustix::mm::munmap(start, piece) };
            debug_assert!(unmapped.is_ok(), "munmap of our own range: {unmapped:?}");
            offset += piece;
        }
    }
}
