//! A window to load from: the receiver's side of a window in memory.

use beeline_contract_memory::{GROUP_LINES, Groups, HeaderPort, Line, LoadPort, SplitHeaders};

use crate::arch::{LoadKernel, prefetch, prefetch_to_write, words};
use crate::span::Span;
use crate::{LINE_BYTES, StoreKernel, WindowGroup, WindowGroups};

/// The lines of a window that a peer stores into. Not `Clone`: a window has one receiver.
///
/// Line numbers are taken modulo the number of lines. Re-blanking uses cached stores: they are ordered after this
/// side's loads and before the credit by the release store alone. A non-temporal one could land after the credit, and
/// then on the next message.
#[derive(Debug)]
pub struct LoadWindow {
    span: Span,
    mask: u32,
    kernel: LoadKernel,
    /// Whether prefetched lines are fetched for writing too.
    exclusive: bool,
}

impl LoadWindow {
    pub(crate) fn new(span: Span) -> Self {
        Self::with_kernel(span, LoadKernel::best())
    }

    pub(crate) fn with_kernel(span: Span, kernel: LoadKernel) -> Self {
        let lines = u32::try_from(span.bytes() / LINE_BYTES).expect("made of a u32 number of lines");
        assert!(lines.is_power_of_two() && span.start().addr().is_multiple_of(LINE_BYTES));
        LoadWindow { span, mask: lines - 1, kernel, exclusive: false }
    }

    /// Says how the sender stores, which decides what [`LoadPort::prefetch`] does. Lines of a cached sender lie in
    /// its cache: they are fetched for writing at once, because re-blanking writes them (25 % more lines a second in a
    /// window of 64 KiB). Non-temporal stores would then have to throw them out of this cache (half as many). Without
    /// being told it fetches for reading only.
    #[must_use]
    pub fn for_sender(mut self, kernel: StoreKernel) -> Self {
        self.exclusive = kernel == StoreKernel::Cached;
        self
    }

    /// As [`LoadWindow::for_sender`], for who knows what is better here: whether prefetched lines are fetched for writing.
    #[must_use]
    pub fn prefetching_to_write(mut self, to_write: bool) -> Self {
        self.set_prefetching_to_write(to_write);
        self
    }

    /// As [`LoadWindow::prefetching_to_write`], for a window in use.
    pub fn set_prefetching_to_write(&mut self, to_write: bool) {
        self.exclusive = to_write;
    }

    #[inline(always)]
    fn line(&self, line: u32) -> *mut u8 {
        self.span.start().wrapping_add((line & self.mask) as usize * LINE_BYTES)
    }

    /// Where a group of lines starts, unless it reaches past the end of the window.
    #[inline(always)]
    fn place_of_group(&self, first_line: u32) -> Option<*mut u8> {
        let fits =
            (first_line & self.mask).checked_add(GROUP_LINES - 1).is_some_and(|last| last <= self.mask);
        fits.then(|| self.line(first_line))
    }
}

impl Groups<LoadWindow> for WindowGroups<'_> {
    #[inline(always)]
    fn arrived(&mut self, group: u32, blank: u64) -> bool {
        // SAFETY: `place` gives the start of whole lines that the window has mapped, aligned (`LoadWindow::groups`).
        unsafe { self.kernel.arrived_group(self.place(group), blank) }
    }

    #[inline(always)]
    fn group<'g>(&'g self, group: u32) -> WindowGroup<'g>
    where
        LoadWindow: 'g,
    {
        WindowGroup::new(self.place(group))
    }

    #[inline(always)]
    fn prefetch(&mut self, group: u32) {
        let place = self.place(group);
        for ahead in 0..GROUP_LINES as usize {
            let line = place.wrapping_add(ahead * LINE_BYTES);
            if self.exclusive { prefetch_to_write(line) } else { prefetch(line) }
        }
    }

    #[inline(always)]
    fn blank_line(&mut self, group: u32, ahead: u32, blank: u64) {
        let line = self.place(group).wrapping_add((ahead % GROUP_LINES) as usize * LINE_BYTES);
        // SAFETY: as for `arrived`, of which it is one line; the mapping is writable.
        unsafe { self.kernel.fill(line, blank) }
    }

    #[inline(always)]
    fn blank(&mut self, group: u32, blank: u64) {
        // SAFETY: as for `arrived`; the mapping is writable.
        unsafe { self.kernel.fill_group(self.place(group), blank) }
    }
}

impl LoadPort for LoadWindow {
    type Group<'w> = WindowGroup<'w>;

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
    fn load_line(&mut self, line: u32) -> Line {
        // SAFETY: `line` masks into the span, which is whole aligned lines (`with_kernel`).
        unsafe { self.kernel.line(self.line(line)) }
    }

    #[inline(always)]
    fn arrived(&mut self, line: u32, blank: u64) -> (u8, Line) {
        // SAFETY: as for `load_line`.
        unsafe { self.kernel.arrived(self.line(line), blank) }
    }

    #[inline(always)]
    fn arrived_into(&mut self, line: u32, blank: u64, words: &mut Line) -> u8 {
        // SAFETY: as for `load_line`.
        unsafe { self.kernel.arrived_into(self.line(line), blank, words) }
    }

    #[inline(always)]
    fn arrived_head(&mut self, line: u32, blank: u64) -> (u8, u64) {
        // SAFETY: as for `load_line`.
        unsafe { self.kernel.arrived_head(self.line(line), blank) }
    }

    #[inline(always)]
    fn arrived_words(&mut self, line: u32, blank: u64) -> u8 {
        // SAFETY: as for `load_line`.
        unsafe { self.kernel.arrived_words(self.line(line), blank) }
    }

    /// Panics when `bytes` are not whole lines or reach past the end of the window.
    #[inline]
    fn load_lines(&mut self, first_line: u32, bytes: &mut [u8]) {
        let first = first_line & self.mask;
        let length = bytes.len();
        let (lines, rest) = bytes.as_chunks_mut::<LINE_BYTES>();
        assert!(
            rest.is_empty() && lines.len() <= (self.lines() - first) as usize,
            "{length} bytes from line {first} of a window of {} lines",
            self.lines()
        );
        let start = self.line(first);
        // SAFETY: that many lines are left in the span, as just checked; `lines` is as many of our own.
        unsafe { self.kernel.copy_lines(start, lines) }
    }

    #[inline(always)]
    fn arrived_group(&mut self, first_line: u32, blank: u64) -> bool {
        match self.place_of_group(first_line) {
            // SAFETY: the span is whole aligned lines (`with_kernel`), of which a group starts here (`place_of_group`).
            Some(group) => unsafe { self.kernel.arrived_group(group, blank) },
            None => (0..GROUP_LINES)
                .rev()
                .all(|ahead| self.arrived_words(first_line.wrapping_add(ahead), blank) == 0xff),
        }
    }

    #[inline(always)]
    fn group(&self, first_line: u32) -> WindowGroup<'_> {
        let Some(start) = self.place_of_group(first_line) else {
            panic!("no group of lines from line {first_line} of a window of {} on", self.lines())
        };
        WindowGroup::new(start)
    }

    type Groups<'w> = WindowGroups<'w>;

    #[inline(always)]
    fn groups(&mut self, first_line: u32, groups: u32) -> WindowGroups<'_> {
        let left = (self.lines() - (first_line & self.mask)) / GROUP_LINES;
        assert!(groups <= left, "{groups} groups of lines from line {first_line} of {}", self.lines());
        WindowGroups::new(self.line(first_line), groups, self.kernel, self.exclusive)
    }

    #[inline(always)]
    fn blank_line(&mut self, line: u32, blank: u64) {
        // SAFETY: as for `load_line`; the mapping is writable.
        unsafe { self.kernel.fill(self.line(line), blank) }
    }

    #[inline(always)]
    fn blank_group(&mut self, first_line: u32, blank: u64) {
        match self.place_of_group(first_line) {
            // SAFETY: as for `arrived_group`; the mapping is writable.
            Some(group) => unsafe { self.kernel.fill_group(group, blank) },
            None => (0..GROUP_LINES).for_each(|ahead| self.blank_line(first_line.wrapping_add(ahead), blank)),
        }
    }

    #[inline(always)]
    fn prefetch(&mut self, line: u32) {
        // One branch, the same for a window's whole life.
        if self.exclusive { prefetch_to_write(self.line(line)) } else { prefetch(self.line(line)) }
    }
}

/// The first words of a window's lines. It keeps the mapping.
#[derive(Debug)]
pub struct WindowHeaders {
    span: Span,
    mask: u32,
}

impl HeaderPort for WindowHeaders {
    #[inline(always)]
    fn load_header(&self, line: u32) -> u64 {
        let place = self.span.start().wrapping_add((line & self.mask) as usize * LINE_BYTES);
        // SAFETY: `line` masks into the span, which is whole aligned lines (`LoadWindow::with_kernel`).
        unsafe { words::load_word(place) }
    }
}

impl SplitHeaders for LoadWindow {
    type Headers = WindowHeaders;

    fn headers(&self) -> WindowHeaders {
        WindowHeaders { span: self.span.clone(), mask: self.mask }
    }
}

#[cfg(test)]
mod tests {
    use beeline_contract_memory::Group as _;

    use super::*;
    use crate::Region;

    /// Every load kernel agrees with the words in memory, for every pattern of arrived words.
    #[test]
    fn arrived_is_exactly_the_words_that_are_not_blank() {
        let region = Region::private(4096);
        let blank = 0x8123_4567_89ab_cdef;
        for kernel in LoadKernel::all() {
            let mut window = LoadWindow::with_kernel(region.span(0, 256, 64), kernel);
            // Miri is thousands of times slower: there, some of the patterns.
            for pattern in (0..=255u8).step_by(if cfg!(miri) { 51 } else { 1 }) {
                // Words next to the blank, so that a comparison of half a word would be caught.
                let near = [blank + 1, blank ^ 1 << 63, blank - (1 << 32), 0];
                let expected: Line = core::array::from_fn(|i| {
                    if pattern >> i & 1 == 1 { near[(i + pattern as usize) % 4] } else { blank }
                });
                for (i, word) in expected.iter().enumerate() {
                    region.word(64 + i * 8).store(*word);
                }
                assert_eq!(window.arrived(5, blank), (pattern, expected), "{kernel:?}");
                let mut line = [0; 8];
                assert_eq!(
                    (window.arrived_into(5, blank, &mut line), line),
                    (pattern, expected),
                    "{kernel:?}"
                );
                assert_eq!(window.arrived_head(5, blank), (pattern, expected[0]), "{kernel:?}");
                assert_eq!(window.arrived_words(5, blank), pattern, "{kernel:?}");
                assert_eq!(window.load_line(1), expected, "{kernel:?}");
                let words: Line = core::array::from_fn(|i| window.load_word(1, i as u32));
                assert_eq!(words, expected);
            }
        }
    }

    /// One word that is blank, wherever it stands, keeps a group from having arrived; its neighbours do not matter.
    #[test]
    fn group_has_arrived_when_none_of_its_words_is_blank() {
        let region = Region::private(1024);
        let blank = 0x8123_4567_89ab_cdef;
        for kernel in LoadKernel::all() {
            let mut window = LoadWindow::with_kernel(region.span(0, 1024, 64), kernel);
            region.fill(0, 1024, blank);
            // Words next to the blank, so that a comparison of half a word would be caught.
            for word in 3 * 8..11 * 8 {
                let near = [blank + 1, blank ^ 1 << 63, blank - (1 << 32), 0];
                region.word(word * 8).store(near[word % 4]);
            }
            assert!(window.arrived_group(3, blank) && window.arrived_group(3 + 16, blank), "{kernel:?}");
            assert!(!window.arrived_group(2, blank) && !window.arrived_group(4, blank), "{kernel:?}");
            for (line, word) in (0..8).flat_map(|line| (0..8).map(move |word| (line, word))) {
                let expected = region.word((3 + line as usize) * 64 + word as usize * 8).load();
                let group = window.group(3 + 16);
                let found = (group.word(line, word), group.word(line + 8, word + 8));
                assert_eq!(found, (expected, expected), "{kernel:?}, line {line}, word {word}");
            }
            let sums = core::array::from_fn(|line| {
                (0..8).fold(0, |all, word| all ^ region.word((3 + line) * 64 + word * 8).load())
            });
            assert_eq!(window.groups(3, 1).sums(0, blank), Some(sums), "{kernel:?}");
            for word in (3 * 8..11 * 8).step_by(if cfg!(miri) { 9 } else { 1 }) {
                let kept = region.word(word * 8).load();
                region.word(word * 8).store(blank);
                assert!(!window.arrived_group(3, blank), "{kernel:?}, word {word}");
                assert_eq!(window.groups(3, 1).sums(0, blank), None, "{kernel:?}, word {word}");
                region.word(word * 8).store(kept);
            }
        }
    }

    #[test]
    fn group_is_blanked_and_wraps_as_line_numbers_do() {
        let region = Region::private(1024);
        for kernel in LoadKernel::all() {
            let mut window = LoadWindow::with_kernel(region.span(0, 1024, 64), kernel);
            for first in [4, 11] {
                region.fill(0, 1024, 1);
                window.blank_group(first, 9);
                for line in 0..16 {
                    let expected = if (line + 16 - first) % 16 < GROUP_LINES { 9 } else { 1 };
                    let found = window.load_line(line);
                    assert_eq!(found, [expected; 8], "{kernel:?}, line {line} of a group at {first}");
                }
                assert!(window.arrived_group(first, 1) && !window.arrived_group(first, 9), "{kernel:?}");
                assert!(!window.arrived_group(first + 1, 1), "{kernel:?}, group at {first}");
            }
        }
    }

    #[test]
    fn headers_are_the_first_words_and_outlive_the_port() {
        let region = Region::private(512);
        (0..64).for_each(|word| region.word(word * 8).store(word as u64));
        let headers = region.load_window(0, 8).headers();
        let copied = region.clone();
        drop(region);
        for line in 0..20 {
            assert_eq!(headers.load_header(line), u64::from(line % 8 * 8), "line {line}");
        }
        copied.word(3 * 64).store(u64::MAX);
        assert_eq!(headers.load_header(3), u64::MAX);
        drop(copied);
        assert_eq!(headers.load_header(4), 32, "it keeps the mapping");
    }

    #[test]
    fn lines_are_copied_to_any_alignment() {
        let region = Region::private(256);
        let bytes: Vec<u8> = (0..=255).collect();
        region.copy_in(0, &bytes);
        for kernel in LoadKernel::all() {
            let mut window = LoadWindow::with_kernel(region.span(0, 256, 64), kernel);
            for skip in 0..9 {
                let mut out = vec![0xee; 128 + 2 * skip];
                window.load_lines(1, &mut out[skip..skip + 128]);
                assert_eq!(&out[skip..skip + 128], &bytes[64..192], "{kernel:?}");
                assert!(out[..skip].iter().chain(&out[skip + 128..]).all(|byte| *byte == 0xee), "{kernel:?}");
            }
        }
    }

    #[test]
    fn blanking_fills_one_line() {
        let region = Region::private(256);
        for kernel in LoadKernel::all() {
            region.fill(0, 256, 1);
            let mut window = LoadWindow::with_kernel(region.span(0, 256, 64), kernel);
            window.blank_line(6, u64::MAX - 3);
            window.prefetch(7);
            let mut window = window.for_sender(StoreKernel::Cached);
            window.prefetch(6);
            for word in 0..32 {
                let expected = if word / 8 == 2 { u64::MAX - 3 } else { 1 };
                assert_eq!(region.word(word * 8).load(), expected, "{kernel:?}, word {word}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "no group of lines from line 9 of a window of 16 on")]
    fn group_past_the_end_is_refused() {
        let _ = Region::private(1024).load_window(0, 16).group(9);
    }

    #[test]
    #[should_panic(expected = "65 bytes from line 2 of a window of 4 lines")]
    fn part_of_a_line_is_refused() {
        Region::private(256).load_window(0, 4).load_lines(2, &mut [0; 65]);
    }
}
