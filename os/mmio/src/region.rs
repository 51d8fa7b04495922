//! A mapped region and the handles that are cut out of it.
//!
//! Bounds and alignment are checked here, once, when a handle is made; the handles then need at most a mask.

use core::ptr::NonNull;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mm::Advice;

use crate::arch::words;
use crate::mapping::{Backing, Mapping, PAGE_BYTES};
use crate::pace::in_pieces;
use crate::span::{Span, reaches_outside};
use crate::{
    DmaRegion, Flag, LINE_BYTES, LoadWindow, MapError, Pace, ReadWindow, ReadWords, StoreKernel, StoreWindow,
    WORD_BYTES, Word, Words, copy, populate,
};

/// Mapped memory, for reading and writing. Clones share the mapping; it is unmapped when the last clone and the last
/// handle are gone.
///
/// An offset outside the region, or not aligned, is a programmer's error and panics with the numbers.
#[derive(Clone, Debug)]
pub struct Region {
    mapping: Arc<Mapping>,
}

impl Region {
    pub(crate) fn new(mapping: Mapping) -> Self {
        Region::of(Arc::new(mapping))
    }

    /// A mapping that others have a share of.
    pub(crate) fn of(mapping: Arc<Mapping>) -> Self {
        Region { mapping }
    }

    /// Zeroed memory of this process only: for windows between threads, for timing, and for Miri.
    pub fn private(bytes: usize) -> Self {
        Region::new(Mapping::on_heap(bytes))
    }

    /// Has children that this process forks from now on begin without the mapping (`MADV_DONTFORK`): a child cannot store into
    /// what is this process's alone to write. There an access ends the child (SIGSEGV), and dropping a handle does nothing. One
    /// system call. What [`Region::private`] gives stays as it is: a child has a copy.
    ///
    /// # Errors
    /// There are clones or handles of it already, or it is a part of another one (`EBUSY`); the kernel cannot.
    pub fn dont_fork(mut self) -> Result<Self, Errno> {
        Arc::get_mut(&mut self.mapping).ok_or(Errno::BUSY)?.dont_fork()?;
        Ok(self)
    }

    /// Returns the size of the mapped memory.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// Whether it is a device's, not memory.
    pub fn is_device(&self) -> bool {
        self.mapping.backing() == Backing::Device
    }

    /// The aligned 64-bit word at this offset.
    #[track_caller]
    pub fn word(&self, offset_bytes: usize) -> Word {
        Word::new(self.span(offset_bytes, WORD_BYTES, WORD_BYTES))
    }

    /// A table of `words` aligned words from this offset on, a power of two of them.
    #[track_caller]
    pub fn words(&self, offset_bytes: usize, words: usize) -> Words {
        Words::new(self.span(offset_bytes, words * WORD_BYTES, WORD_BYTES))
    }

    /// A table of `words` aligned words from this offset on, a power of two of them, to load from and nothing else.
    #[track_caller]
    pub fn read_words(&self, offset_bytes: usize, words: usize) -> ReadWords {
        ReadWords::new(self.span(offset_bytes, words * WORD_BYTES, WORD_BYTES))
    }

    /// The aligned 32-bit futex word at this offset.
    #[track_caller]
    pub fn flag(&self, offset_bytes: usize) -> Flag {
        Flag::new(self.span(offset_bytes, 4, 4))
    }

    /// A window of `lines` lines (a power of two) to store into with `kernel`, which must be one that this CPU has
    /// and, for [`StoreKernel::St64b`], the region a device's.
    #[track_caller]
    pub fn store_window(&self, offset_bytes: usize, lines: u32, kernel: StoreKernel) -> StoreWindow {
        assert!(
            kernel != StoreKernel::St64b || self.is_device(),
            "st64b stores to device memory only, not to pages"
        );
        StoreWindow::new(self.lines(offset_bytes, lines), kernel)
    }

    /// A window of `lines` lines (a power of two) to load from.
    #[track_caller]
    pub fn load_window(&self, offset_bytes: usize, lines: u32) -> LoadWindow {
        LoadWindow::new(self.lines(offset_bytes, lines))
    }

    /// A window of `lines` lines (a power of two) to load from and nothing else.
    #[track_caller]
    pub fn read_window(&self, offset_bytes: usize, lines: u32) -> ReadWindow {
        ReadWindow::new(self.lines(offset_bytes, lines))
    }

    /// Memory that a device reads and writes at `bus_address` (a multiple of 64).
    #[track_caller]
    pub fn dma_memory(&self, offset_bytes: usize, bytes: usize, bus_address: u64) -> DmaRegion {
        assert!(bus_address.is_multiple_of(64), "bus address {bus_address:#x} is not a multiple of 64");
        DmaRegion::new(self.span(offset_bytes, bytes, LINE_BYTES), bus_address)
    }

    /// A part of it as a region of its own. Its handles keep `kept` as well as the memory: it is dropped when the last of them
    /// is gone.
    #[track_caller]
    pub fn part(&self, offset_bytes: usize, bytes: usize, kept: impl Send + Sync + 'static) -> Region {
        let start = self.span(offset_bytes, bytes, LINE_BYTES).start();
        let start = NonNull::new(start).expect("inside a mapping, which is not at 0");
        let whole = Arc::clone(&self.mapping);
        // SAFETY: `span` checked that the bytes lie in `whole`, which the new mapping keeps.
        Region::new(unsafe { Mapping::part_of(whole, start, bytes, Box::new(kept)) })
    }

    /// Brings the pages of a part in, for writing, so that no later access to it takes a page fault or finds the system without
    /// memory; `pace` decides when each piece comes. The offset is a multiple of 4096.
    ///
    /// # Errors
    /// [`MapError::Map`] if there are no pages.
    #[track_caller]
    pub fn populate(&self, offset_bytes: usize, bytes: usize, pace: &dyn Pace) -> Result<(), MapError> {
        let start = self.span(offset_bytes, bytes, PAGE_BYTES).start();
        let whole_offset = start.addr() - self.mapping.start().addr().get();
        populate::part_to_write(&self.mapping, whole_offset, bytes, pace).map_err(|errno| MapError::Map {
            object: "a part of shared memory".to_owned(),
            bytes,
            errno,
            remedy: "free memory, or raise the limits on it (`ulimit -v`, the cgroup's memory.max)",
        })
    }

    /// Gives the pages of a part back to the system, for every process that has it mapped; until somebody writes there again
    /// its bytes are zero. `pace` decides when each piece goes. The offset is a multiple of 4096.
    ///
    /// # Errors
    /// The kernel cannot; the memory is not shared pages.
    #[track_caller]
    pub fn remove_pages(&self, offset_bytes: usize, bytes: usize, pace: &dyn Pace) -> Result<(), Errno> {
        let start = self.span(offset_bytes, bytes, PAGE_BYTES).start();
        if self.mapping.backing() == Backing::Heap {
            self.fill_paced(offset_bytes, bytes, 0, pace);
            return Ok(());
        }
        in_pieces(bytes, pace, |offset, piece| {
            // SAFETY: a part of our own range. The bytes of a shared mapping change, as a peer may change them at any time.
            unsafe { rustix::mm::madvise(start.wrapping_add(offset).cast(), piece, Advice::LinuxRemove) }
        })
    }

    /// Copies bytes into the region at any offset. Aligned words are stored whole, in no defined order.
    #[track_caller]
    #[inline]
    pub fn copy_in(&self, offset_bytes: usize, bytes: &[u8]) {
        let to = self.at(offset_bytes, bytes.len());
        // SAFETY: `at` checked that these bytes are mapped.
        unsafe { copy::copy_in(to, bytes) }
    }

    /// Copies bytes out of the region from any offset. Aligned words are loaded whole, in no defined order.
    #[track_caller]
    #[inline]
    pub fn copy_out(&self, offset_bytes: usize, bytes: &mut [u8]) {
        let from = self.at(offset_bytes, bytes.len());
        // SAFETY: `at` checked that these bytes are mapped.
        unsafe { copy::copy_out(from, bytes) }
    }

    /// Stores `word` into every word of a range; offset and size are multiples of 8. In no defined order.
    #[track_caller]
    pub fn fill(&self, offset_bytes: usize, bytes: usize, word: u64) {
        assert!(
            offset_bytes.is_multiple_of(WORD_BYTES) && bytes.is_multiple_of(WORD_BYTES),
            "{bytes} bytes at offset {offset_bytes} are not whole words"
        );
        let start = self.at(offset_bytes, bytes);
        check_start(start, WORD_BYTES);
        for offset in (0..bytes).step_by(WORD_BYTES) {
            // SAFETY: inside the range that `at` checked, and aligned, as `check_start` has found.
            unsafe { words::store_word(start.wrapping_add(offset), word) }
        }
    }

    /// As [`Region::fill`]; `pace` decides when each piece is filled.
    #[track_caller]
    pub fn fill_paced(&self, offset_bytes: usize, bytes: usize, word: u64, pace: &dyn Pace) {
        let filled: Result<(), core::convert::Infallible> = in_pieces(bytes, pace, |offset, piece| {
            self.fill(offset_bytes + offset, piece, word);
            Ok(())
        });
        filled.unwrap_or_else(|never| match never {});
    }

    #[track_caller]
    fn lines(&self, offset_bytes: usize, lines: u32) -> Span {
        assert!(lines.is_power_of_two(), "a window of {lines} lines: the number must be a power of two");
        self.span(offset_bytes, lines as usize * LINE_BYTES, LINE_BYTES)
    }

    #[track_caller]
    pub(crate) fn span(&self, offset_bytes: usize, bytes: usize, alignment: usize) -> Span {
        assert!(
            offset_bytes.is_multiple_of(alignment),
            "offset {offset_bytes} is not a multiple of {alignment}"
        );
        let start = self.at(offset_bytes, bytes);
        // What needs pages asks the kernel, which checks them.
        check_start(start, alignment.min(LINE_BYTES));
        let start = NonNull::new(start).expect("inside a mapping, which is not at 0");
        Span::new(start, bytes, Arc::clone(&self.mapping))
    }

    /// The address of `bytes` bytes at an offset.
    #[track_caller]
    #[inline(always)]
    fn at(&self, offset_bytes: usize, bytes: usize) -> *mut u8 {
        let whole = self.mapping.bytes();
        if offset_bytes > whole || bytes > whole - offset_bytes {
            reaches_outside(bytes, offset_bytes, whole);
        }
        self.mapping.start().as_ptr().wrapping_add(offset_bytes)
    }
}

/// Memory of the program, which a segment has as it is, begins at any address.
#[track_caller]
fn check_start(start: *mut u8, alignment: usize) {
    assert!(
        start.addr().is_multiple_of(alignment),
        "memory at {start:p} does not begin at a multiple of {alignment}: of such memory there are copies only"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zeroed_and_filled_in_words() {
        let region = Region::private(100);
        assert_eq!((region.bytes(), region.word(88).load()), (100, 0));
        region.fill(8, 16, 7);
        let words: Vec<u64> = (0..4).map(|i| region.word(i * 8).load()).collect();
        assert_eq!(words, [0, 7, 7, 0]);
    }

    #[test]
    #[should_panic(expected = "1 bytes at offset 100 reach outside a region of 100 bytes")]
    fn a_copy_past_the_end_is_refused() {
        Region::private(100).copy_in(100, &[1]);
    }

    #[test]
    #[should_panic(expected = "reach outside")]
    fn an_offset_that_overflows_is_refused() {
        Region::private(100).copy_out(usize::MAX, &mut [0; 2]);
    }

    #[test]
    #[should_panic(expected = "offset 32 is not a multiple of 64")]
    fn a_window_starts_on_a_line() {
        Region::private(4096).load_window(32, 1);
    }

    #[test]
    #[should_panic(expected = "reach outside")]
    fn a_window_past_the_end_is_refused() {
        Region::private(4096).load_window(64, 64);
    }

    #[test]
    #[should_panic(expected = "st64b stores to device memory only")]
    fn st64b_is_for_devices() {
        Region::private(4096).store_window(0, 1, StoreKernel::St64b);
    }
}
