//! Groups of lines of a window, whose place is worked out once: for a receiver in bulk.

use core::marker::PhantomData;

use beeline_contract_memory::{GROUP_LINES, Group};

use crate::LINE_BYTES;
use crate::arch::{LoadKernel, words};

/// Groups of lines that follow each other in a window, none of which is past its end.
#[derive(Debug)]
pub struct WindowGroups<'w> {
    start: *mut u8,
    groups: u32,
    pub(crate) kernel: LoadKernel,
    /// Whether prefetched lines are fetched for writing too.
    pub(crate) exclusive: bool,
    window: PhantomData<&'w mut [u64]>,
}

// SAFETY: it loads and stores words of a window as `LoadWindow`, which is `Send`, does, and borrows that meanwhile.
unsafe impl Send for WindowGroups<'_> {}
// SAFETY: through a shared reference it only loads words, as a shared `LoadWindow`, which is `Sync`, does.
unsafe impl Sync for WindowGroups<'_> {}

impl WindowGroups<'_> {
    /// From `start` on the window has mapped so many groups of lines, which are aligned and which `kernel` may load and store.
    #[inline(always)]
    pub(crate) fn new(start: *mut u8, groups: u32, kernel: LoadKernel, exclusive: bool) -> Self {
        WindowGroups { start, groups, kernel, exclusive, window: PhantomData }
    }

    /// Where a group starts.
    #[inline(always)]
    pub(crate) fn place(&self, group: u32) -> *mut u8 {
        assert!(group < self.groups, "group {group} of {}", self.groups);
        self.start.wrapping_add(group as usize * (GROUP_LINES as usize * LINE_BYTES))
    }

    /// The exclusive or of the words of each line of a group, once no word of it equals `blank`: test and fold in one pass of the
    /// widest registers there are, which is all that a floor of streams does with a group before it is made free.
    #[inline(always)]
    pub fn sums(&mut self, group: u32, blank: u64) -> Option<[u64; GROUP_LINES as usize]> {
        let place = self.place(group);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.kernel != LoadKernel::Words {
            // SAFETY: `place` gives the start of whole lines that the window has mapped, aligned (`LoadWindow::groups`).
            return unsafe { self.kernel.group_sums(place, blank) };
        }
        let lines = WindowGroup::new(place);
        let mut has_arrived = true;
        let sums = core::array::from_fn(|ahead| {
            (0..8).fold(0, |all, word| {
                let found = lines.word(ahead as u32, word);
                has_arrived &= found != blank;
                all ^ found
            })
        });
        has_arrived.then_some(sums)
    }
}

/// A group of lines of a window, none of which is past its end.
#[derive(Clone, Copy, Debug)]
pub struct WindowGroup<'w> {
    start: *const u8,
    window: PhantomData<&'w [u64]>,
}

// SAFETY: it only loads words of a window, which any thread may do while the window is there (`LoadWindow` is `Sync`).
unsafe impl Send for WindowGroup<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for WindowGroup<'_> {}

impl WindowGroup<'_> {
    /// The group of lines that begins at `start`, which the window has mapped, aligned.
    #[inline(always)]
    pub(crate) fn new(start: *const u8) -> Self {
        WindowGroup { start, window: PhantomData }
    }

    #[inline(always)]
    fn line(self, ahead: u32) -> *const u8 {
        self.start.wrapping_add((ahead % GROUP_LINES) as usize * LINE_BYTES)
    }
}

impl Group for WindowGroup<'_> {
    #[inline(always)]
    fn word(self, ahead: u32, word: u32) -> u64 {
        let place = self.line(ahead).wrapping_add((word & 7) as usize * 8);
        // SAFETY: inside a line of the group, all of which the window has mapped (`LoadWindow::group`), aligned because the
        // line is (`with_kernel`).
        unsafe { words::load_word(place) }
    }
}

#[cfg(test)]
mod tests {
    use beeline_contract_memory::{Groups as _, LoadPort};

    use super::*;
    use crate::{LoadWindow, Region};

    /// Groups in a row are the same lines, each at its place.
    #[test]
    fn groups_in_a_row_are_tested_read_and_blanked_where_they_lie() {
        let region = Region::private(2048);
        let blank = 0x8123_4567_89ab_cdef;
        for kernel in LoadKernel::all() {
            let mut window = LoadWindow::with_kernel(region.span(0, 2048, 64), kernel);
            for word in 0..256 {
                region.word(word * 8).store(word as u64);
            }
            region.word((2 + 16) * 64).store(blank);
            let mut groups = window.groups(32 + 2, 3);
            assert_eq!(
                [0, 1, 2].map(|group| groups.arrived(group, blank)),
                [true, true, false],
                "{kernel:?}"
            );
            assert_eq!(groups.group(1).word(3, 4), (2 + 8 + 3) * 8 + 4);
            groups.prefetch(2);
            groups.blank(1, blank);
            groups.blank_line(0, 7, blank);
            for line in 0..32 {
                let is_blank = (9..18).contains(&line);
                let first = if line == 18 { blank } else { line * 8 };
                let expected = core::array::from_fn(|word| match (is_blank, word) {
                    (true, _) => blank,
                    (false, 0) => first,
                    _ => line * 8 + word as u64,
                });
                assert_eq!(window.load_line(line as u32), expected, "{kernel:?}, line {line}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "4 groups of lines from line 1 of 32")]
    fn groups_past_the_end_are_refused() {
        let _ = Region::private(2048).load_window(0, 32).groups(1, 4);
    }

    #[test]
    #[should_panic(expected = "group 3 of 3")]
    fn group_past_those_that_were_asked_for_is_refused() {
        let _ = Region::private(2048).load_window(0, 32).groups(1, 3).arrived(3, 1);
    }
}
