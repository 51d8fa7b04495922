//! Bringing pages in before somebody accesses them.

use rustix::io::Errno;
use rustix::mm::Advice;

use crate::arch::words;
use crate::mapping::{Backing, Mapping};
use crate::pace::{Pace, in_pieces};
use crate::sync::{AtomicU64, Ordering};

/// Makes every page present and writable.
pub(crate) fn to_write(mapping: &Mapping, pace: &dyn Pace) -> Result<(), Errno> {
    part_to_write(mapping, 0, mapping.bytes(), pace)
}

/// Makes every page of a part present and writable.
pub(crate) fn part_to_write(
    mapping: &Mapping,
    from: usize,
    bytes: usize,
    pace: &dyn Pace,
) -> Result<(), Errno> {
    // Pages of the heap are there from the start.
    if mapping.backing() == Backing::Heap {
        return Ok(());
    }
    let start = mapping.start().as_ptr().wrapping_add(from);
    let by_hand = |offset, bytes| touch(mapping, from + offset, bytes);
    // SAFETY: a part of our own range; the advice changes no bytes.
    unsafe { bring_in(start, bytes, pace, Advice::LinuxPopulateWrite, by_hand) }
}

/// Makes every page present.
pub(crate) fn to_read(mapping: &Mapping, pace: &dyn Pace) -> Result<(), Errno> {
    let (start, bytes) = (mapping.start().as_ptr(), mapping.bytes());
    let by_hand = |offset, bytes| look(mapping, offset, bytes);
    // SAFETY: our own range; the advice changes no bytes.
    unsafe { bring_in(start, bytes, pace, Advice::LinuxPopulateRead, by_hand) }
}

/// Brings pages in by advice, one piece after the other. `by_hand` is given offset and size of each piece where the kernel does not
/// know the advice.
///
/// # Safety
/// The advice changes nothing in `bytes` bytes from `start` on but whether their pages are present.
pub(crate) unsafe fn bring_in(
    start: *mut u8,
    bytes: usize,
    pace: &dyn Pace,
    advice: Advice,
    mut by_hand: impl FnMut(usize, usize),
) -> Result<(), Errno> {
    in_pieces(bytes, pace, |offset, bytes| {
        // SAFETY: the caller's promise, for a part of the range.
        match unsafe { rustix::mm::madvise(start.wrapping_add(offset).cast(), bytes, advice) } {
            // Before Linux 5.14 the kernel does not know the advice.
            Err(Errno::INVAL) => {
                by_hand(offset, bytes);
                Ok(())
            }
            result => result,
        }
    })
}

/// Asks for huge pages in the place of ordinary ones, and says whether the kernel takes note of it.
pub(crate) fn wish_for_huge_pages(mapping: &Mapping) -> bool {
    let (start, bytes) = (mapping.start().as_ptr(), mapping.bytes());
    // SAFETY: advice about our own range; it changes no bytes.
    unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::LinuxHugepage) }.is_ok()
}

/// Writes to every page of a piece without changing it, whoever else writes.
pub(crate) fn touch(mapping: &Mapping, from: usize, bytes: usize) {
    for offset in (from..(from + bytes) / 8 * 8).step_by(4096) {
        let word = mapping.start().as_ptr().wrapping_add(offset);
        // SAFETY: a whole word inside the mapping, aligned because mappings start on pages.
        let word = unsafe { AtomicU64::from_ptr(word.cast()) };
        // Relaxed: only the page fault matters.
        word.fetch_add(0, Ordering::Relaxed);
    }
}

/// Reads a byte of every page of a piece.
fn look(mapping: &Mapping, from: usize, bytes: usize) {
    for offset in (from..from + bytes).step_by(4096) {
        // SAFETY: a byte inside the mapping.
        core::hint::black_box(unsafe { words::load_byte(mapping.start().as_ptr().wrapping_add(offset)) });
    }
}
