//! A window to store into.

use beeline_contract_memory::{Line, StorePort};

use crate::arch::{ScanWay, Way, prefetch_to_write};
use crate::region::Span;
use crate::{LINE_BYTES, StoreKernel, fence};

/// The lines of a window, write-only, stored with one kernel. Not `Clone`: a window has one writer.
///
/// Line numbers are taken modulo the number of lines, so that no number reaches outside the window and none is
/// checked. Costs of one line are in `bench/`; the kernels themselves in `arch/`.
#[derive(Debug)]
pub struct StoreWindow {
    span: Span,
    mask: u32,
    way: Way,
    scan: ScanWay,
    kernel: StoreKernel,
}

impl StoreWindow {
    #[track_caller]
    pub(crate) fn new(span: Span, kernel: StoreKernel) -> Self {
        let Some(way) = crate::arch::way(kernel) else {
            let lacks = crate::arch::lacks(kernel).unwrap_or("another CPU");
            panic!("store kernel {kernel} cannot run here: it needs {lacks}");
        };
        Self::with_way(span, kernel, way)
    }

    pub(crate) fn with_way(span: Span, kernel: StoreKernel, way: Way) -> Self {
        let lines = u32::try_from(span.bytes() / LINE_BYTES).expect("made of a u32 number of lines");
        assert!(lines.is_power_of_two() && span.start().addr().is_multiple_of(LINE_BYTES));
        StoreWindow { span, mask: lines - 1, way, scan: ScanWay::best(), kernel }
    }

    /// The kernel that stores its lines.
    pub fn kernel(&self) -> StoreKernel {
        self.kernel
    }

    #[inline(always)]
    fn line(&self, line: u32) -> *mut u8 {
        self.span.start().wrapping_add((line & self.mask) as usize * LINE_BYTES)
    }
}

impl StorePort for StoreWindow {
    #[inline(always)]
    fn lines(&self) -> u32 {
        self.mask + 1
    }

    #[inline(always)]
    fn store_line(&mut self, line: u32, words: &Line) {
        // SAFETY: `line` masks into the span, which is whole aligned lines (`new`); `new` checked the CPU.
        unsafe { self.way.words(self.line(line), words) }
    }

    #[inline(always)]
    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        let place = self.line(line).wrapping_add((word & 7) as usize * 8);
        // SAFETY: inside the line, aligned because the line is; `new` checked the CPU.
        unsafe { self.way.word(place, value) }
    }

    /// Panics when `bytes` are not whole lines or reach past the end of the window.
    #[inline]
    fn store_lines(&mut self, first_line: u32, bytes: &[u8]) {
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        let first = first_line & self.mask;
        assert!(
            rest.is_empty() && lines.len() <= (self.lines() - first) as usize,
            "{} bytes from line {first} of a window of {} lines",
            bytes.len(),
            self.lines()
        );
        // SAFETY: that many lines are left in the span, as just checked; `new` checked the CPU.
        unsafe { self.way.lines(self.line(first), lines) }
    }

    #[inline(always)]
    fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) {
        // SAFETY: as for `store_line`.
        unsafe { self.way.head(self.line(line), header, payload) }
    }

    #[inline(always)]
    fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool {
        // SAFETY: as for `store_line`.
        unsafe { self.way.head_unless(self.line(line), header, payload, blank) }
    }

    #[inline(always)]
    fn store_prefixed_line_unless(
        &mut self,
        line: u32,
        header: u64,
        prefix: u64,
        payload: &[u8],
        blank: u64,
    ) -> bool {
        // SAFETY: as for `store_line`.
        unsafe { self.way.prefixed_unless(self.line(line), header, prefix, payload, blank) }
    }

    #[inline(always)]
    fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
        // SAFETY: as for `store_line`.
        unsafe { self.way.padded(self.line(line), bytes) }
    }

    #[inline(always)]
    fn has_word(&self, payload: &[u8], word: u64) -> bool {
        self.scan.has_word(payload, word)
    }

    /// Lines of a cached window lie in the receiver's cache. Stores that come with others in between, as messages do,
    /// fetch them one after the other (25 ns each in a window of 64 KiB); asked for in time, they come together (7 ns).
    /// Further ahead is better up to 32 lines, but in a small window that is where the receiver still works (a quarter of
    /// the rate with 32 lines ahead of 512).
    #[inline]
    fn prefetch_lines(&self) -> u32 {
        if self.kernel == StoreKernel::Cached { (self.lines() / 64).clamp(8, 32) } else { 0 }
    }

    #[inline(always)]
    fn prefetch(&mut self, line: u32) {
        prefetch_to_write(self.line(line));
    }

    #[inline]
    fn fence(&mut self) {
        fence::order_stores();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;

    #[test]
    fn line_numbers_wrap() {
        let region = Region::private(4096);
        let mut window = region.store_window(0, 4, StoreKernel::Cached);
        window.store_line(7, &[3; 8]);
        window.store_word(u32::MAX, 8, 9);
        assert_eq!((region.word(192).load(), region.word(200).load()), (9, 3));
    }

    #[test]
    #[should_panic(expected = "128 bytes from line 3 of a window of 4 lines")]
    fn lines_past_the_end_are_refused() {
        Region::private(4096).store_window(0, 4, StoreKernel::Cached).store_lines(3, &[0; 128]);
    }

    #[test]
    #[should_panic(expected = "the number must be a power of two")]
    fn a_window_is_a_power_of_two() {
        Region::private(4096).store_window(0, 3, StoreKernel::Cached);
    }

    #[test]
    fn a_window_outlives_its_region() {
        let region = Region::private(4096);
        let mut load = region.load_window(0, 4);
        let mut store = region.store_window(0, 4, StoreKernel::Cached);
        drop(region);
        store.store_head_line(1, 5, b"payload");
        drop(store);
        use beeline_contract_memory::LoadPort;
        assert_eq!(load.load_word(1, 0), 5);
    }
}
