//! A window to load from and nothing else: the receiver's side of a window whose mapping may be read-only.

use beeline_contract_memory::ReadOnlyPort;

use crate::LINE_BYTES;
use crate::arch::{LoadKernel, prefetch, words};
use crate::span::Span;

/// The lines of a window that a peer stores into and this side never does: there is no method that stores, so it can be made
/// of a [`crate::ReadOnlyRegion`]. Several of them may look at the same lines.
///
/// Line numbers are taken modulo the number of lines.
#[derive(Debug)]
pub struct ReadWindow {
    span: Span,
    mask: u32,
    kernel: LoadKernel,
}

impl ReadWindow {
    pub(crate) fn new(span: Span) -> Self {
        Self::with_kernel(span, LoadKernel::best())
    }

    fn with_kernel(span: Span, kernel: LoadKernel) -> Self {
        let lines = u32::try_from(span.bytes() / LINE_BYTES).expect("made of a u32 number of lines");
        assert!(lines.is_power_of_two() && span.start().addr().is_multiple_of(LINE_BYTES));
        ReadWindow { span, mask: lines - 1, kernel }
    }

    #[inline(always)]
    fn line(&self, line: u32) -> *const u8 {
        self.span.start().wrapping_add((line & self.mask) as usize * LINE_BYTES)
    }
}

impl ReadOnlyPort for ReadWindow {
    #[inline(always)]
    fn lines(&self) -> u32 {
        self.mask + 1
    }

    #[inline(always)]
    fn load_word(&self, line: u32, word: u32) -> u64 {
        let place = self.line(line).wrapping_add((word & 7) as usize * 8);
        // SAFETY: inside the line, aligned because the line is (`with_kernel`).
        unsafe { words::load_word(place) }
    }

    #[inline(always)]
    fn load_tops(&mut self, line: u32) -> (u8, u64) {
        // SAFETY: `line` masks into the span, which is whole aligned lines (`with_kernel`).
        unsafe { self.kernel.tops(self.line(line)) }
    }

    #[inline(always)]
    fn prefetch(&mut self, line: u32) {
        prefetch(self.line(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;

    /// Every load kernel agrees with the words in memory, for every pattern of top bits.
    #[test]
    fn tops_are_bit_63_of_each_word_and_no_other_bit() {
        let region = Region::private(4096);
        for kernel in LoadKernel::all() {
            let mut window = ReadWindow::with_kernel(region.span(0, 256, 64), kernel);
            // Miri is thousands of times slower: there, some of the patterns.
            for pattern in (0..=255u8).step_by(if cfg!(miri) { 51 } else { 1 }) {
                // Words whose other bits say the opposite, down to the top bits of their halves and bytes.
                let word = |i: u32| {
                    let top = u64::from(pattern >> i & 1) << 63;
                    let low = [0, u64::MAX, 0x8080_8080, 1 << 62][((i + u32::from(pattern)) % 4) as usize];
                    low & !(1 << 63) | top
                };
                (0..8).for_each(|i| region.word(64 + i as usize * 8).store(word(i)));
                assert_eq!(window.load_tops(5), (pattern, word(0)), "{kernel:?}");
                window.prefetch(5);
                (0..8).for_each(|i| assert_eq!(window.load_word(1, i + 8), word(i)));
            }
        }
    }

    #[test]
    #[should_panic(expected = "reach outside")]
    fn window_past_the_end_is_refused() {
        Region::private(4096).read_window(64, 64);
    }
}
