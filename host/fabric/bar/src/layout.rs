//! Where everything lies in the memory. All of it follows from four numbers, which the first member writes into the header.
//!
//! ```text
//! header | lines of links | slot 0: words, names, board, uses | slot 1 ... | area of slot 0 | area of slot 1 ...
//! ```
//!
//! Words of a slot are stored by the member that has it and by nobody else who is sound. A slot has, for each other one, what its member
//! claims of that one's.

use beeline_fabric::{COUNT_STRIDE, ENTRY_WORDS, HEADER_WORDS};
use beeline_heartbeat::MappedState;

/// Slots of a memory: members at the same time.
pub(crate) const MAX_MEMBERS: usize = 16;
/// Segments begin at multiples of this in their area (`beeline_fabric`, `bank.rs`).
pub(crate) const ALIGN: u64 = 64 << 10;
const PAGE: u64 = 4096;
const LINE: u64 = 64;
/// Entries of a board that are tried, the most that take no more than a quarter of the memory.
const ENTRIES: [u32; 4] = [4096, 1024, 256, 64];
/// Lines of a window for messages of data interrupts: one of the longest, or this many of up to 56 bytes.
pub(crate) const WINDOW_LINES: u32 = 64;
/// Memories that several members hold: how many lie in one slot's area, and how many one member uses at the same time.
pub(crate) const JOINTS: usize = 64;
/// Words that say of each memory in a slot's area what it is.
pub(crate) const JOINT_WORDS: usize = 4;
/// Where in the first page of a slot they lie, behind the lines for other slots: what its member uses, then what lies in its area.
const JOINT_USES: u64 = 2048 - JOINTS as u64 * 8;
const JOINT_TABLE: u64 = 2048;
/// The window, then the line of its credits.
const WINDOW_BYTES: u64 = LINE * (WINDOW_LINES as u64 + 1);

/// The numbers that everything follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Of the memory, as far as it is used.
    pub(crate) bytes: u64,
    /// Slots.
    pub(crate) members: usize,
    /// Entries of each board.
    pub(crate) entries: u32,
    /// Of each slot, for its segments.
    pub(crate) area_bytes: u64,
}

impl Layout {
    const MEMBERS: std::ops::RangeInclusive<usize> = 2..=MAX_MEMBERS;

    /// That of a memory which nobody has used yet; `None` if it is too small for so many members.
    pub(crate) fn new(bytes: u64, members: usize) -> Option<Self> {
        // Before the arithmetic: a program may ask for any number.
        if !Layout::MEMBERS.contains(&members) {
            return None;
        }
        let small = |entries: &u32| Layout::control_bytes(members, *entries) <= bytes / 4;
        let entries = ENTRIES.into_iter().find(small).unwrap_or(ENTRIES[ENTRIES.len() - 1]);
        Layout::of(bytes, members, entries)
    }

    /// The smallest memory of so many members; `None` if there is none of so many.
    pub(crate) fn least_bytes(members: usize) -> Option<u64> {
        let fewest = ENTRIES[ENTRIES.len() - 1];
        let is_sound = Layout::MEMBERS.contains(&members);
        is_sound.then(|| Layout::control_bytes(members, fewest) + members as u64 * ALIGN)
    }

    /// That of numbers which anybody may have written; `None` if there is none.
    pub(crate) fn of(bytes: u64, members: usize, entries: u32) -> Option<Self> {
        let is_sound = Layout::MEMBERS.contains(&members) && ENTRIES.contains(&entries);
        let rest = bytes.checked_sub(is_sound.then(|| Layout::control_bytes(members, entries))?)?;
        let area_bytes = rest / members as u64 / ALIGN * ALIGN;
        (area_bytes != 0).then_some(Layout { bytes, members, entries, area_bytes })
    }

    /// Everything but the areas.
    fn control_bytes(members: usize, entries: u32) -> u64 {
        let slots = Layout::slot_bytes(members, entries) * members as u64;
        (PAGE + Layout::links_bytes(members) + slots).next_multiple_of(ALIGN)
    }

    fn links_bytes(members: usize) -> u64 {
        let pairs = (members * (members - 1) / 2) as u64;
        (pairs * MappedState::BYTES as u64).next_multiple_of(PAGE)
    }

    fn slot_bytes(members: usize, entries: u32) -> u64 {
        let entries = u64::from(entries);
        let board = (u64::from(HEADER_WORDS) + u64::from(ENTRY_WORDS) * entries) * 8;
        let pair = Layout::use_bytes(entries) + Layout::yard_bytes(entries);
        (PAGE + NAME_BYTES * entries + board + pair * members as u64).next_multiple_of(PAGE)
    }

    /// Windows of a pair of slots, in one direction, for data interrupts.
    fn windows_of(entries: u64) -> u64 {
        match entries {
            4096 => 8,
            1024 => 4,
            256 => 2,
            _ => 1,
        }
    }

    /// The line that says what each window is for, and the windows.
    fn yard_bytes(entries: u64) -> u64 {
        LINE + WINDOW_BYTES * Layout::windows_of(entries)
    }

    fn use_bytes(entries: u64) -> u64 {
        (1 + u64::from(COUNT_STRIDE)) * 8 * entries
    }

    /// The two lines of a link between two slots.
    pub(crate) fn link(&self, one: usize, other: usize) -> u64 {
        let (low, high) = (one.min(other), one.max(other));
        PAGE + (high * (high - 1) / 2 + low) as u64 * MappedState::BYTES as u64
    }

    /// What a slot's member stores, up to [`Layout::slot_end`].
    pub(crate) fn slot(&self, slot: usize) -> u64 {
        let slots = Layout::slot_bytes(self.members, self.entries) * slot as u64;
        PAGE + Layout::links_bytes(self.members) + slots
    }

    pub(crate) fn slot_end(&self, slot: usize) -> u64 {
        self.slot(slot) + Layout::slot_bytes(self.members, self.entries)
    }

    /// The line of a slot for another one: whose memory it has mapped there.
    pub(crate) fn line(&self, from: usize, to: usize) -> u64 {
        self.slot(from) + LINE * (1 + to as u64)
    }

    /// The line in which somebody who takes no part asks a slot's member for something, behind those for other slots.
    pub(crate) fn asked(&self, slot: usize) -> u64 {
        self.line(slot, MAX_MEMBERS)
    }

    /// What a slot's member uses of memory that several hold: a word for each.
    pub(crate) fn joint_uses(&self, slot: usize) -> u64 {
        self.slot(slot) + JOINT_USES
    }

    /// What several hold of a slot's area.
    pub(crate) fn joints(&self, slot: usize) -> u64 {
        self.slot(slot) + JOINT_TABLE
    }

    pub(crate) fn names(&self, slot: usize) -> u64 {
        self.slot(slot) + PAGE
    }

    pub(crate) fn board(&self, slot: usize) -> u64 {
        self.names(slot) + NAME_BYTES * u64::from(self.entries)
    }

    /// What one slot's member uses of another's.
    pub(crate) fn uses(&self, from: usize, to: usize) -> u64 {
        let entries = u64::from(self.entries);
        let board = (u64::from(HEADER_WORDS) + u64::from(ENTRY_WORDS) * entries) * 8;
        self.board(from) + board + (Layout::use_bytes(entries) + Layout::yard_bytes(entries)) * to as u64
    }

    /// The windows that one slot's member sends another's messages through: the line that says what each is for.
    pub(crate) fn yard(&self, from: usize, to: usize) -> u64 {
        self.uses(from, to) + Layout::use_bytes(self.entries.into())
    }

    pub(crate) fn windows(&self) -> usize {
        Layout::windows_of(self.entries.into()) as usize
    }

    pub(crate) fn window(&self, (from, to): (usize, usize), window: usize) -> u64 {
        self.yard(from, to) + LINE + WINDOW_BYTES * window as u64
    }

    /// Where the segments of a slot's member lie.
    pub(crate) fn area(&self, slot: usize) -> u64 {
        Layout::control_bytes(self.members, self.entries) + self.area_bytes * slot as u64
    }

    /// Where in the memory a part of a segment is that begins at an offset of a slot's area; `None` if any of it is outside of the area.
    pub(crate) fn place(
        &self,
        slot: usize,
        offset: u64,
        part: beeline_fabric::Part,
    ) -> Option<(usize, usize)> {
        let start = offset.checked_add(part.offset)?;
        let end = start.checked_add(part.bytes)?;
        let is_inside = end <= self.area_bytes;
        is_inside.then(|| ((self.area(slot) + start) as usize, part.bytes as usize))
    }
}

/// A name, and the entry of the board that it is of.
const NAME_BYTES: u64 = 16;

#[cfg(test)]
mod tests {
    use beeline_fabric::Part;

    use super::*;

    /// Every range of a memory, by where it begins and ends.
    fn ranges(layout: &Layout) -> Vec<(u64, u64)> {
        let slots = 0..layout.members;
        let mut ranges = vec![(0, PAGE)];
        for one in slots.clone() {
            for other in slots.clone() {
                if other < one {
                    let link = layout.link(one, other);
                    assert_eq!(link, layout.link(other, one));
                    ranges.push((link, link + MappedState::BYTES as u64));
                }
                ranges.push((layout.line(one, other), layout.line(one, other) + LINE));
                let uses = layout.uses(one, other);
                ranges.push((uses, uses + Layout::use_bytes(layout.entries.into())));
                ranges.push((layout.yard(one, other), layout.yard(one, other) + LINE));
                let windows = (0..layout.windows()).map(|at| layout.window((one, other), at));
                ranges.extend(windows.map(|start| (start, start + WINDOW_BYTES)));
            }
            let slot = layout.slot(one);
            ranges.push((slot, slot + LINE));
            ranges.push((layout.asked(one), layout.asked(one) + LINE));
            let (uses, joints) = (layout.joint_uses(one), layout.joints(one));
            ranges.push((uses, uses + JOINTS as u64 * 8));
            ranges.push((joints, joints + (JOINTS * JOINT_WORDS) as u64 * 8));
            ranges.push((layout.names(one), layout.board(one)));
            ranges.push((layout.board(one), layout.uses(one, 0)));
            ranges.push((layout.area(one), layout.area(one) + layout.area_bytes));
            let last = layout.window((one, layout.members - 1), layout.windows() - 1);
            assert!(last + WINDOW_BYTES <= layout.slot_end(one) && layout.windows() <= 8);
        }
        ranges
    }

    #[test]
    fn nothing_lies_in_two_places_and_all_lies_inside() {
        for (bytes, members) in [(1 << 20, 2), (16 << 20, 8), (64 << 20, 16), (1 << 40, 16), (3_000_000, 3)] {
            let layout = Layout::new(bytes, members).unwrap();
            let mut ranges = ranges(&layout);
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{layout:?}");
            assert!(ranges.last().unwrap().1 <= bytes, "{layout:?}");
            assert!(ranges.iter().all(|(start, _)| start % LINE == 0));
            assert_eq!(Layout::of(bytes, members, layout.entries), Some(layout));
        }
    }

    #[test]
    fn numbers_that_make_no_layout_are_refused() {
        let sound = Layout::new(16 << 20, 8).unwrap();
        for members in [0, 1, 17, usize::MAX] {
            assert_eq!(Layout::of(16 << 20, members, 64), None);
            assert_eq!(Layout::new(16 << 20, members), None);
        }
        for entries in [0, 63, 128, 8192, u32::MAX] {
            assert_eq!(Layout::of(16 << 20, 8, entries), None);
        }
        let control = Layout::control_bytes(8, 64);
        assert_eq!(Layout::of(control + 8 * ALIGN - 1, 8, 64), None);
        assert_eq!(Layout::of(control + 8 * ALIGN, 8, 64).unwrap().area_bytes, ALIGN);
        assert_eq!((Layout::new(0, 2), sound.entries), (None, 256));
    }

    #[test]
    fn memory_of_the_least_bytes_has_a_layout_and_none_of_one_byte_less() {
        for members in 2..=16 {
            let least = Layout::least_bytes(members).unwrap();
            assert!(Layout::new(least, members).is_some(), "{members}");
            assert_eq!(Layout::new(least - 1, members), None, "{members}");
        }
        assert_eq!([0, 1, 17].map(Layout::least_bytes), [None; 3]);
    }

    #[test]
    fn part_that_reaches_out_of_its_area_is_nowhere() {
        let layout = Layout::new(16 << 20, 4).unwrap();
        let place = |offset, part_offset, bytes| layout.place(2, offset, Part { offset: part_offset, bytes });
        let start = layout.area(2) as usize;
        assert_eq!(place(64, 8, 16), Some((start + 72, 16)));
        assert_eq!(place(layout.area_bytes - 16, 0, 16), Some((start + layout.area_bytes as usize - 16, 16)));
        assert_eq!(place(layout.area_bytes - 16, 1, 16), None);
        assert_eq!(place(u64::MAX - 16, 0, 16), None);
        assert_eq!((place(u64::MAX, 1, 1), place(0, u64::MAX, 1), place(1, 1, u64::MAX)), (None, None, None));
    }
}
